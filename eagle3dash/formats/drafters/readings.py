"""How public code reads one and the same checkpoint: as trained, and as each engine serves it.

Facts (versions read: SGLang 0.5.23, vLLM 0.32, TensorRT-LLM, speculators 0.9, SpecForge 0.2, ModelOpt 0.47):
* norm_output feeds the normed state back in speculators, NeMo Automodel, TorchSpec and every engine. In SpecForge it is
  another switch, true when absent: the norm before lm_head.
* norm_before_residual: speculators and vLLM have it. vLLM takes an absent key of a speculators config as true, speculators
  as false. SGLang and TensorRT-LLM always keep the raw residual.
* ModelOpt norms the hidden half twice and writes a yarn scaling at export that it didn't train with.
"""

from __future__ import annotations

from dataclasses import replace

from eagle3dash.formats.drafters import rope
from eagle3dash.formats.drafters.checkpoint import Checkpoint
from eagle3dash.records import DrafterSpec, Rope

TRAINERS = {"safeai": "SafeAILab", "specforge": "SpecForge", "speculators": "speculators", "modelopt": "ModelOpt",
            "nemo": "NeMo Automodel", "angelslim": "AngelSlim", "torchspec": "TorchSpec"}
VLLM, SGLANG, TENSORRT = "as served by vLLM", "as served by SGLang", "as served by TensorRT-LLM"
STORED = "as stored"


def trained(checkpoint: Checkpoint, spec: DrafterSpec) -> tuple[str, DrafterSpec]:
    """(name, spec) of the default reading: how the library that wrote the file computes it."""
    flavour = checkpoint.flavour
    raw = checkpoint.fields.flag("norm_before_residual")
    post = checkpoint.fields.flag("norm_output")
    name = f"as trained by {TRAINERS[flavour]}" if flavour in TRAINERS else STORED
    if spec.mla:
        spec = replace(spec, rope=rope.as_vllm(spec.rope, spec.mla.qk_rope_head_dim, latent=True))
    if flavour in ("speculators", "vllm"):
        spec = replace(spec, residual_norm=bool(raw))
    if flavour in ("speculators", "vllm", "nemo", "torchspec", "sglang"):
        return name, replace(spec, feedback_norm=bool(post))
    if flavour == "specforge":
        if post:
            checkpoint.infer("head_norm", True, "norm_output in SpecForge is the norm before lm_head; engines feed back the normed state")
        return name, replace(spec, head_norm=spec.head_norm and post is not False, rope=rope.as_specforge(spec.rope, spec.head_dim))
    if flavour == "safeai":
        return name, replace(spec, rope=rope.as_safeai(spec.rope))
    if spec.mla and flavour not in ("nemo", "torchspec"):
        return STORED, replace(spec, feedback_norm=bool(post))
    return (name, modelopt(checkpoint, spec)) if flavour == "modelopt" else (name, spec)


def modelopt(checkpoint: Checkpoint, spec: DrafterSpec) -> DrafterSpec:
    """As ModelOpt trains: hidden_norm(input_layernorm(g)), and RoPE without the scaling that only its export adds."""
    stated = checkpoint.fields.leaves
    added = spec.rope.kind == "yarn" and "rope_scaling.rope_theta" not in stated and not spec.mla
    if added:
        note = "ModelOpt adds this at export; it trains with the default RoPE"
        checkpoint.infer("rope", f"default, theta {spec.rope.theta:g}", note)
        for path in stated:
            if path.startswith("rope_scaling."):
                checkpoint.fields.ignore(path, note)
    return replace(spec, double_norm=True, rope=Rope(theta=spec.rope.theta) if added else spec.rope)


def served(checkpoint: Checkpoint, spec: DrafterSpec) -> dict[str, DrafterSpec]:
    """Readings by engine. `spec` holds sizes, the switches that tensors show, and RoPE as transformers reads it."""
    fields = checkpoint.fields
    post = bool(fields.flag("norm_output"))
    raw = fields.flag("norm_before_residual")
    absent = checkpoint.flavour == "speculators" if raw is None else raw
    engine = replace(spec, head_norm=True, feedback_norm=post, rope=rope.as_vllm(spec.rope, spec.head_dim, spec.mla is not None))
    after = bool(fields.flag("eagle_config.return_hidden_post_norm"))
    return {
        VLLM: replace(engine, residual_norm=absent),
        SGLANG: replace(engine, attention_bias=False, qk_norm=False),
        TENSORRT: replace(engine, feedback_norm=post or after, input_norm=spec.input_norm and not spec.fc_norm),
    }


def all_of(checkpoint: Checkpoint, spec: DrafterSpec) -> tuple[str, DrafterSpec, dict[str, DrafterSpec]]:
    """(name of the default reading, its spec, every reading by name)."""
    name, default = trained(checkpoint, spec)
    readings = {name: default} | (served(checkpoint, spec) if spec.head_norm else {})
    maker = f"as trained by {TRAINERS['modelopt']}"
    version = checkpoint.fields.text("speculators_version")
    if checkpoint.flavour == "modelopt" and maker not in readings:
        readings[maker] = modelopt(checkpoint, spec)
    if version == "0.1.0.dev14":  # the template of ModelOpt's convert_to_vllm_ckpt.py
        readings[maker] = replace(modelopt(checkpoint, spec), residual_norm=False)
    return name, default, readings
