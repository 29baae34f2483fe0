"""Whether a drafter's tensors fit together, and which switches they show."""

from __future__ import annotations

from eagle3dash.errors import BadInput
from eagle3dash.formats.drafters.checkpoint import Checkpoint
from eagle3dash.records import DrafterSpec, TensorInfo

FLOATS = ("float16", "bfloat16", "float32", "float64")
MAPS = ("d2t", "t2d")


def check(checkpoint: Checkpoint, spec: DrafterSpec) -> None:
    """BadInput naming the first tensor that is missing, of another shape, or stored in a type that needs a scale."""
    hidden, inner = spec.hidden, spec.intermediate
    checkpoint.expect("layers.0.hidden_norm.weight", hidden)
    for i in range(spec.depth):
        layer = f"layers.{i}."
        checkpoint.expect(f"{layer}input_layernorm.weight", hidden)
        checkpoint.expect(f"{layer}post_attention_layernorm.weight", hidden)
        for name, shape in (("gate", (inner, hidden)), ("up", (inner, hidden)), ("down", (hidden, inner))):
            checkpoint.expect(f"{layer}mlp.{name}_proj.weight", *shape)
        _check_attention(checkpoint, spec, f"{layer}self_attn.", hidden if i else 2 * hidden)
    optional = {"norm.weight": (hidden,), "lm_head.weight": (spec.draft_vocab, hidden), "fc.bias": (hidden,),
                "input_norm.weight": (spec.num_aux * spec.target_hidden,)}
    optional |= {f"fc_norm.{i}.weight": (spec.target_hidden,) for i in range(spec.num_aux)}
    for name, shape in optional.items():
        if checkpoint.has(name):
            checkpoint.expect(name, *shape)
    if checkpoint.has("embed_tokens.weight") and checkpoint.shape("embed_tokens.weight")[1] != hidden:
        raise BadInput(
            f"embed_tokens.weight is {checkpoint.shape('embed_tokens.weight')[1]} wide, the drafter {hidden}. "
            "The file mixes two models: export the checkpoint again."
        )
    _check_types(checkpoint)


def _check_attention(checkpoint: Checkpoint, spec: DrafterSpec, at: str, width: int) -> None:
    if spec.mla:
        m = spec.mla
        shapes = {"q_a_proj": (m.q_lora_rank, width), "q_b_proj": (spec.heads * spec.head_dim, m.q_lora_rank),
                  "kv_a_proj_with_mqa": (m.kv_lora_rank + m.qk_rope_head_dim, width),
                  "kv_b_proj": (spec.heads * (m.qk_nope_head_dim + m.v_head_dim), m.kv_lora_rank),
                  "o_proj": (spec.hidden, spec.heads * m.v_head_dim),
                  "q_a_layernorm": (m.q_lora_rank,), "kv_a_layernorm": (m.kv_lora_rank,)}
    else:
        rows, kv_rows = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
        shapes = {"q_proj": (rows, width), "k_proj": (kv_rows, width), "v_proj": (kv_rows, width), "o_proj": (spec.hidden, rows)}
        if spec.qk_norm:
            shapes |= {"q_norm": (spec.head_dim,), "k_norm": (spec.head_dim,)}
    for name, shape in shapes.items():
        checkpoint.expect(f"{at}{name}.weight", *shape)
        if checkpoint.has(f"{at}{name}.bias"):
            checkpoint.expect(f"{at}{name}.bias", shape[0])


def _check_types(checkpoint: Checkpoint) -> None:
    for name, stored in checkpoint.names.items():
        kind = dtype(checkpoint.tensors[stored].dtype)
        if name in MAPS:
            if kind in FLOATS:
                raise BadInput(f"{stored} holds {kind} numbers; expected whole numbers (d2t: offsets, t2d: true or false).")
        elif kind not in FLOATS:
            raise BadInput(
                f"{stored} is stored as {kind}; float16, bfloat16, float32 and float64 are read. "
                "Give the drafter before quantisation, or dequantise it first."
            )


def dtype(kind: object) -> str:
    """`torch.float32` -> `float32`."""
    return str(kind).removeprefix("torch.")


def has_any(checkpoint: Checkpoint, *ends: str) -> bool:
    return any(name.endswith(ends) for name in checkpoint.names)


def listed(checkpoint: Checkpoint, missing: list[str]) -> tuple[TensorInfo, ...]:
    """Every tensor of the file with its use, and those that the config promises but the file lacks."""
    used = set(checkpoint.names.values())
    stored = [TensorInfo(name, tuple(int(n) for n in tensor.shape), dtype(tensor.dtype), "used" if name in used else "unused")
              for name, tensor in checkpoint.tensors.items()]
    return tuple(stored + [TensorInfo(name, (), "", "missing") for name in missing])
