"""Random drafters of any spec, in float64, and random texts for them."""

import math
from dataclasses import replace

import torch

from eagle3dash.drafter.model import Model
from eagle3dash.records import DrafterSpec, Mla, Rope

torch.set_num_threads(1)
PLAIN = DrafterSpec(
    hidden=32, target_hidden=32, num_aux=3, intermediate=48, heads=4, kv_heads=2, head_dim=8, vocab=50, draft_vocab=20
)
YARN = Rope("yarn", factor=8.0, original_max_position=16, mscale=1.0, mscale_all_dim=0.5)
SPECS = {
    "plain": PLAIN,
    "one kv head": replace(PLAIN, kv_heads=1),
    "two layers": replace(PLAIN, depth=2),
    "three layers, biases": replace(PLAIN, depth=3, attention_bias=True, mlp_bias=True, fc_bias=True),
    "residual norm": replace(PLAIN, residual_norm=True),
    "input norm, fc bias": replace(PLAIN, input_norm=True, fc_bias=True),
    "feedback norm, fc norm": replace(PLAIN, feedback_norm=True, fc_norm=True),
    "no head norm": replace(PLAIN, head_norm=False),
    "double norm": replace(PLAIN, double_norm=True),
    "query and key norms": replace(PLAIN, qk_norm=True),
    "four states, other width": replace(PLAIN, num_aux=4, target_hidden=24),
    "one state": replace(PLAIN, num_aux=1),
    "yarn": replace(PLAIN, rope=YARN),
    "llama3": replace(PLAIN, rope=Rope("llama3", 5e5, 8.0, original_max_position=16)),
    "linear, gelu": replace(PLAIN, rope=Rope("linear", factor=4.0), activation="gelu"),
    "latent": replace(PLAIN, mla=Mla(16, 12, 8, 6, 10), rope=replace(YARN, interleaved=True)),
    "latent, two layers": replace(PLAIN, mla=Mla(16, 12, 8, 6, 10), depth=2, feedback_norm=True),
}


def tensors(spec: DrafterSpec, seed: int = 0) -> dict[str, torch.Tensor]:
    """Canonical tensors of `spec`, float64. The vocabulary map keeps no order."""
    made = torch.Generator().manual_seed(seed)

    def matrix(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=made, dtype=torch.float64) / math.sqrt(shape[-1])

    def norm(width: int) -> torch.Tensor:
        return 1 + 0.3 * torch.randn(width, generator=made, dtype=torch.float64)

    ids = torch.randperm(spec.vocab, generator=made)[: spec.draft_vocab]
    wide = spec.num_aux * spec.target_hidden
    found = {
        "fc.weight": matrix(spec.hidden, wide), "fc.bias": norm(spec.hidden), "input_norm.weight": norm(wide),
        "norm.weight": norm(spec.hidden), "lm_head.weight": 3 * matrix(spec.draft_vocab, spec.hidden),
        "embed_tokens.weight": matrix(spec.vocab, spec.hidden), "d2t": ids - torch.arange(spec.draft_vocab),
    }  # fmt: skip
    found |= {f"fc_norm.{i}.weight": norm(spec.target_hidden) for i in range(spec.num_aux)}
    for i in range(spec.depth):
        found |= {f"layers.{i}.{k}": v for k, v in _layer(spec, i, matrix, norm).items()}
    return found


def _layer(spec: DrafterSpec, index: int, matrix, norm) -> dict[str, torch.Tensor]:
    width, inner, mla = spec.hidden * (1 if index else 2), spec.intermediate, spec.mla
    sizes = {"q": spec.heads * spec.head_dim, "k": spec.kv_heads * spec.head_dim, "v": spec.kv_heads * spec.head_dim}
    found = {f"{x}.weight": norm(spec.hidden) for x in ("input_layernorm", "hidden_norm", "post_attention_layernorm")}
    found |= {f"mlp.{x}_proj.weight": matrix(inner, spec.hidden) for x in ("gate", "up")}
    found |= {"mlp.down_proj.weight": matrix(spec.hidden, inner), "mlp.down_proj.bias": norm(spec.hidden)}
    found |= {f"mlp.{x}_proj.bias": norm(inner) for x in ("gate", "up")}
    if mla is None:
        found |= {f"self_attn.{x}_proj.weight": matrix(size, width) for x, size in sizes.items()}
        found |= {f"self_attn.{x}_proj.bias": norm(size) for x, size in sizes.items()}
        found |= {f"self_attn.{x}_norm.weight": norm(spec.head_dim) for x in "qk"}
        found |= {"self_attn.o_proj.bias": norm(spec.hidden)}
        return found | {"self_attn.o_proj.weight": matrix(spec.hidden, sizes["q"])}
    seen, plain = mla.qk_rope_head_dim, mla.qk_nope_head_dim
    return found | {
        "self_attn.q_a_proj.weight": matrix(mla.q_lora_rank, width),
        "self_attn.q_a_layernorm.weight": norm(mla.q_lora_rank),
        "self_attn.q_b_proj.weight": matrix(spec.heads * (plain + seen), mla.q_lora_rank),
        "self_attn.kv_a_proj_with_mqa.weight": matrix(mla.kv_lora_rank + seen, width),
        "self_attn.kv_a_layernorm.weight": norm(mla.kv_lora_rank),
        "self_attn.kv_b_proj.weight": matrix(spec.heads * (plain + mla.v_head_dim), mla.kv_lora_rank),
        "self_attn.o_proj.weight": matrix(spec.hidden, spec.heads * mla.v_head_dim),
    }


def drafter(spec: DrafterSpec, seed: int = 0) -> Model:
    return Model(spec, tensors(spec, seed), dtype=torch.float64)


def text(spec: DrafterSpec, rows: int, states: int | None = None, seed: int = 1) -> tuple[list[torch.Tensor], torch.Tensor]:
    """(states [rows, Ht], token ids [rows + 1]). The first row is an outlier, as in real captures."""
    made = torch.Generator().manual_seed(seed)
    shape = (states or spec.num_aux, rows, spec.target_hidden)
    found = torch.randn(shape, generator=made, dtype=torch.float64)
    found[:, 0] *= 300
    return list(found), torch.randint(spec.vocab, (rows + 1,), generator=made)
