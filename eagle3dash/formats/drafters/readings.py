"""How public code reads one and the same checkpoint: as its maker computes it, and as each engine serves it.

Facts (versions read: SGLang 0.5.23, vLLM 0.32, TensorRT-LLM, speculators 0.9, SpecForge 0.2, ModelOpt 0.47, AngelSlim 0.5):
* norm_output feeds the normed state back in speculators, NeMo Automodel, TorchSpec and every engine. In SpecForge it is
  another switch, true when absent: the norm before lm_head.
* norm_before_residual: speculators and vLLM have it. vLLM takes an absent key of a speculators config as true, speculators
  as false. SGLang and TensorRT-LLM always keep the raw residual (all that an engine leaves out: `formats.engines.servers`).
* ModelOpt norms the hidden half twice and writes a yarn scaling at export that it didn't train with.
* SafeAILab and AngelSlim train with base 10000 whatever rope_theta says (`traineagle3/cnets.py`,
  `train/models/draft/llama_eagle3.py`); their inference reads it unless RoPE is scaled.
"""

from __future__ import annotations

from dataclasses import replace

from eagle3dash.formats.drafters import rope
from eagle3dash.formats.drafters.checkpoint import Checkpoint
from eagle3dash.formats.engines import servers
from eagle3dash.records import DrafterSpec, Rope

TRAINERS = {
    "specforge": "SpecForge",
    "speculators": "speculators",
    "modelopt": "ModelOpt",
    "nemo": "NeMo Automodel",
    "torchspec": "TorchSpec",
}
FIXED_BASE = {"safeai": "SafeAILab", "angelslim": "AngelSlim"}
VLLM, SGLANG, TENSORRT = (f"as served by {engine}" for engine in (servers.VLLM, servers.SGLANG, servers.TENSORRT))
MODELOPT = "as trained by ModelOpt"
STORED = "as stored"
MODELOPT_TEMPLATE = "0.1.0.dev14"  # speculators_version that its examples/.../convert_to_vllm_ckpt.py writes


def all_of(checkpoint: Checkpoint, spec: DrafterSpec) -> tuple[str, DrafterSpec, dict[str, DrafterSpec]]:
    """(name of the default reading, its spec, every reading by name).

    `spec` holds sizes, the switches that tensors show, and RoPE as transformers reads it.
    """
    name, default = _own(checkpoint, spec)
    readings = {name: default}
    if checkpoint.flavour in FIXED_BASE:
        readings |= _fixed_base(checkpoint, default)
    if spec.head_norm:
        readings |= _served(checkpoint, spec)
    if checkpoint.flavour == "modelopt":
        readings.setdefault(MODELOPT, _modelopt(checkpoint, default))
    if checkpoint.fields.text("speculators_version") == MODELOPT_TEMPLATE:
        readings[MODELOPT] = replace(default, double_norm=True, residual_norm=False)
        why = "this speculators_version may be ModelOpt's template, whose norm_before_residual isn't what ModelOpt trains"
        checkpoint.infer("reading", name, why)
    return name, default, readings


def _own(checkpoint: Checkpoint, spec: DrafterSpec) -> tuple[str, DrafterSpec]:
    """(name, spec) of the default reading."""
    flavour, post = checkpoint.flavour, checkpoint.fields.flag("norm_output")
    raw = checkpoint.fields.flag("norm_before_residual")
    if spec.mla:
        spec = replace(spec, rope=rope.as_served(spec.rope, spec.mla.qk_rope_head_dim, latent=True))
    if flavour in FIXED_BASE:
        return f"as served by {FIXED_BASE[flavour]}", replace(spec, rope=rope.as_safeai(spec.rope))
    name = f"as trained by {TRAINERS[flavour]}" if flavour in TRAINERS else STORED
    if flavour == "specforge":
        if post:
            why = "in SpecForge norm_output is the norm before lm_head; engines feed the normed state back instead"
            checkpoint.infer("feedback_norm", False, why)
        shaped = rope.as_specforge(spec.rope, spec.head_dim)
        return name, replace(spec, head_norm=post is not False, rope=shaped)
    if flavour == "modelopt" and spec.mla:  # read as engines serve it; the second norm is a reading of its own
        return STORED, _served(checkpoint, spec)[VLLM]
    if flavour == "modelopt":
        return name, _modelopt(checkpoint, spec)
    return name, replace(spec, feedback_norm=bool(post), residual_norm=bool(raw) and flavour in ("speculators", "vllm"))


def _modelopt(checkpoint: Checkpoint, spec: DrafterSpec) -> DrafterSpec:
    """hidden_norm(input_layernorm(g)), and RoPE without the scaling that only the export adds."""
    fields = checkpoint.fields
    added = spec.rope.kind == "yarn" and "rope_scaling.rope_theta" not in fields.leaves and not spec.mla
    if added:
        note = "ModelOpt adds this at export; it trains with the default RoPE"
        checkpoint.infer("rope", f"default, theta {spec.rope.theta:g}", note)
        for path in fields.leaves:
            if path.startswith("rope_scaling."):
                fields.ignore(path, note)
    return replace(spec, double_norm=True, rope=Rope(theta=spec.rope.theta) if added else spec.rope)


def _fixed_base(checkpoint: Checkpoint, spec: DrafterSpec) -> dict[str, DrafterSpec]:
    maker = FIXED_BASE[checkpoint.flavour]
    if spec.rope.theta != 10000.0:
        checkpoint.problem(
            f"config.json says rope_theta {spec.rope.theta:g}, but {maker} trains with 10000 whatever it says. "
            f"Compare the reading 'as trained by {maker}'; if it fits better, set rope_theta to 10000."
        )
    return {f"as trained by {maker}": replace(spec, rope=replace(spec.rope, theta=10000.0))}


def _served(checkpoint: Checkpoint, spec: DrafterSpec) -> dict[str, DrafterSpec]:
    """Readings by engine."""
    fields = checkpoint.fields
    post = bool(fields.flag("norm_output"))
    raw = fields.flag("norm_before_residual")
    residual = checkpoint.flavour == "speculators" if raw is None else raw
    dims = spec.mla.qk_rope_head_dim if spec.mla else spec.head_dim
    engine = replace(spec, feedback_norm=post, rope=rope.as_served(spec.rope, dims, spec.mla is not None))
    after = bool(fields.flag("eagle_config.return_hidden_post_norm"))
    return {
        VLLM: _without(replace(engine, residual_norm=residual), servers.VLLM),
        SGLANG: _without(engine, servers.SGLANG),
        TENSORRT: _without(
            replace(engine, feedback_norm=post or after, input_norm=spec.input_norm and not spec.fc_norm), servers.TENSORRT
        ),
    }


def _without(spec: DrafterSpec, engine: str) -> DrafterSpec:
    """The spec without what the newest version of the engine leaves out."""
    return replace(spec, **dict.fromkeys(servers.latest(engine).drops, False))
