"""Whether a drafter's tensors fit together, which of them are used, and which are missing."""

from __future__ import annotations

from typing import Any

from eagle3dash.errors import BadInput
from eagle3dash.formats.drafters.checkpoint import Checkpoint
from eagle3dash.records import DrafterSpec, TensorInfo

FLOATS = ("float16", "bfloat16", "float32", "float64")
MAPS = ("d2t", "t2d")


def check(checkpoint: Checkpoint, spec: DrafterSpec) -> None:
    """BadInput naming the first tensor that is missing, of another shape, or stored in a type that needs a scale."""
    _check_types(checkpoint)
    hidden = spec.hidden
    checkpoint.expect("layers.0.hidden_norm.weight", hidden)
    for layer in range(spec.depth):
        for name, shape in _layer(spec, hidden if layer else 2 * hidden).items():
            checkpoint.expect(f"layers.{layer}.{name}.weight", *shape)
            if checkpoint.has(f"layers.{layer}.{name}.bias") or _needs_bias(spec, name):
                checkpoint.expect(f"layers.{layer}.{name}.bias", shape[0])
    optional = {
        "norm.weight": (hidden,),
        "lm_head.weight": (spec.draft_vocab, hidden),
        "fc.bias": (hidden,),
        "input_norm.weight": (spec.num_aux * spec.target_hidden,),
    }
    optional |= {f"fc_norm.{i}.weight": (spec.target_hidden,) for i in range(spec.num_aux)}
    for name, shape in optional.items():
        if checkpoint.has(name):
            checkpoint.expect(name, *shape)
    if checkpoint.has("embed_tokens.weight"):
        checkpoint.expect("embed_tokens.weight", checkpoint.shape("embed_tokens.weight")[0], hidden)
    if not checkpoint.has("norm.weight") and checkpoint.flavour != "modelopt":
        checkpoint.shape("norm.weight", 1)


def _needs_bias(spec: DrafterSpec, name: str) -> bool:
    """Whether the others of its kind have one. o_proj may go without."""
    first = ("q_a_proj", "kv_a_proj_with_mqa") if spec.mla else ("q_proj", "k_proj", "v_proj")
    return (spec.attention_bias and name.removeprefix("self_attn.") in first) or (spec.mlp_bias and name.startswith("mlp."))


def _layer(spec: DrafterSpec, width: int) -> dict[str, tuple[int, ...]]:
    """Name -> shape of the weights of a layer whose attention reads `width` values."""
    hidden, inner = spec.hidden, spec.intermediate
    shapes: dict[str, tuple[int, ...]] = {
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    attention = _latent(spec, width) if spec.mla else _grouped(spec, width)
    return shapes | {f"self_attn.{name}": shape for name, shape in attention.items()}


def _grouped(spec: DrafterSpec, width: int) -> dict[str, tuple[int, ...]]:
    rows, kv_rows = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    norms = {"q_norm": (spec.head_dim,), "k_norm": (spec.head_dim,)} if spec.qk_norm else {}
    keys = {"k_proj": (kv_rows, width), "v_proj": (kv_rows, width)}
    return {"q_proj": (rows, width), "o_proj": (spec.hidden, rows)} | keys | norms


def _latent(spec: DrafterSpec, width: int) -> dict[str, tuple[int, ...]]:
    mla = spec.mla
    return {
        "q_a_proj": (mla.q_lora_rank, width),
        "q_a_layernorm": (mla.q_lora_rank,),
        "q_b_proj": (spec.heads * spec.head_dim, mla.q_lora_rank),
        "kv_a_proj_with_mqa": (mla.kv_lora_rank + mla.qk_rope_head_dim, width),
        "kv_a_layernorm": (mla.kv_lora_rank,),
        "kv_b_proj": (spec.heads * (mla.qk_nope_head_dim + mla.v_head_dim), mla.kv_lora_rank),
        "o_proj": (spec.hidden, spec.heads * mla.v_head_dim),
    }


def _check_types(checkpoint: Checkpoint) -> None:
    for name, stored in checkpoint.names.items():
        kind = dtype(checkpoint.tensors[stored].dtype)
        if name in MAPS and kind in FLOATS:
            raise BadInput(f"{stored} holds {kind} numbers; expected whole numbers (d2t: offsets, t2d: true or false).")
        if name not in MAPS and kind not in FLOATS:
            raise BadInput(
                f"{stored} is stored as {kind}; float16, bfloat16, float32 and float64 are read. "
                "Give the drafter before quantisation, or dequantise it first."
            )


def dtype(kind: object) -> str:
    """`torch.float32` -> `float32`."""
    return str(kind).removeprefix("torch.")


def missing(checkpoint: Checkpoint, spec: DrafterSpec, tensors: dict[str, Any]) -> list[str]:
    """Names that the file lacks; what nobody else can supply, and what is left over, is noted as a problem."""
    names = [name for name in ("embed_tokens.weight", "lm_head.weight") if name not in tensors]
    if "lm_head.weight" in names and spec.draft_vocab < spec.vocab:
        checkpoint.problem("The file has no lm_head.weight: engines then draft with a random or a borrowed head.")
    if "d2t" not in tensors and spec.draft_vocab < spec.vocab:
        names.append("d2t")
        checkpoint.problem(
            f"The file has no d2t although it drafts {spec.draft_vocab} of {spec.vocab} tokens; engines then take the "
            f"first {spec.draft_vocab} ids. Take d2t from the trainer's own checkpoint."
        )
    if not spec.head_norm:
        names.append("norm.weight")
    used = set(checkpoint.names.values())
    unused = sorted(name for name in checkpoint.tensors if name not in used)
    if unused:
        shown = ", ".join(name[:60] for name in unused[:4]) + (f" and {len(unused) - 4} more" if len(unused) > 4 else "")
        checkpoint.problem(f"Weights that the replay doesn't use: {shown}. What needs them computes something else.")
    return names


def listed(checkpoint: Checkpoint, absent: list[str]) -> tuple[TensorInfo, ...]:
    """Every tensor of the file with its use, and those that it lacks."""
    used = set(checkpoint.names.values())
    stored = [
        TensorInfo(name, tuple(int(n) for n in tensor.shape), dtype(tensor.dtype), "used" if name in used else "unused")
        for name, tensor in checkpoint.tensors.items()
    ]
    return tuple(stored + [TensorInfo(name, (), "", "missing") for name in absent])
