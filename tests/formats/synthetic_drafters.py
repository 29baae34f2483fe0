"""Drafter configs, and weights of the shapes that they name without storage (device meta)."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

GOLDEN = Path(__file__).parent.parent / "golden"
LLAMA = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 1,
    "rms_norm_eps": 1e-5,
    "vocab_size": 300,
    "draft_vocab_size": 120,
    "max_position_embeddings": 256,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}
BLOCK = (
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "num_hidden_layers",
    "rms_norm_eps",
    "vocab_size",
    "max_position_embeddings",
    "hidden_act",
    "model_type",
    "head_dim",
    "rope_theta",
    "rope_parameters",
)


def golden(case: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """(config, weights) of a golden case."""
    folder = GOLDEN / case
    binary = folder / "pytorch_model.bin"
    stored = torch.load(binary, weights_only=True) if binary.exists() else load_file(folder / "model.safetensors")
    return json.loads((folder / "config.json").read_text()), stored


def config(**changes: Any) -> dict[str, Any]:
    """A flat SpecForge config, changed."""
    return {**LLAMA, **changes}


def speculators(**changes: Any) -> dict[str, Any]:
    """The same drafter as speculators writes it: fields of the block in a config of their own."""
    flat = config(**changes)
    block = {key: value for key, value in flat.items() if key in BLOCK}
    top = {key: value for key, value in flat.items() if key not in BLOCK and key != "architectures"}
    kind = {"speculators_model_type": "eagle3", "architectures": ["Eagle3DraftModel"]}
    return {**kind, "transformer_layer_config": block, **top}


def weights(
    flat: dict[str, Any], layer: str = "midlayer", aux: int = 3, depth: int = 1, embed: bool = False
) -> dict[str, torch.Tensor]:
    """Weights that fit a flat config, named in one of the public styles: midlayer, layers.0, model.layers.0."""
    hidden, target = flat["hidden_size"], flat.get("target_hidden_size") or flat["hidden_size"]
    vocab, draft = flat["vocab_size"], flat.get("draft_vocab_size") or flat["vocab_size"]
    top = "model." if layer.startswith("model.") else ""
    named = {
        f"{top}fc.weight": empty(hidden, aux * target),
        f"{top}norm.weight": empty(hidden),
        "lm_head.weight": empty(draft, hidden),
    }
    for i in range(depth):
        at = layer if i == 0 else f"{top}layers.{i}"
        named |= {f"{at}.{name}": tensor for name, tensor in _layer(flat, hidden if i else 2 * hidden).items()}
    named[f"{layer}.hidden_norm.weight"] = empty(hidden)
    if embed:
        named[f"{top}embed_tokens.weight"] = empty(vocab, hidden)
    if draft < vocab:
        named |= {"d2t": torch.arange(draft), "t2d": (torch.arange(vocab) % 2 == 0) & (torch.arange(vocab) < 2 * draft)}
    return named


def _layer(flat: dict[str, Any], width: int) -> dict[str, torch.Tensor]:
    hidden, inner = flat["hidden_size"], flat["intermediate_size"]
    heads, kv = flat["num_attention_heads"], flat["num_key_value_heads"]
    head_dim = flat.get("head_dim") or hidden // heads
    shapes = {
        "self_attn.q_proj": (heads * head_dim, width),
        "self_attn.k_proj": (kv * head_dim, width),
        "self_attn.v_proj": (kv * head_dim, width),
        "self_attn.o_proj": (hidden, heads * head_dim),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
    }
    return {f"{name}.weight": empty(*shape) for name, shape in shapes.items()}


def empty(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")
