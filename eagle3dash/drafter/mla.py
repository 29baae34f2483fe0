"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434 section 2.1) as MLA drafters have it.

Only the projections differ from grouped-query attention: queries and keys-values pass through low ranks, the rotary
part of the key is shared by all heads. Facts: vLLM `deepseek_eagle3.py`, `deepseek_v2.py`; SGLang `kimi_k25_eagle3.py`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from eagle3dash.drafter.norm import rms_norm
from eagle3dash.drafter.rope import Rotary, score_factor
from eagle3dash.drafter.weights import Weights
from eagle3dash.records import DrafterSpec


class Latent:
    """The two down-projections stacked [q_lora + kv_lora + rope, in]; same methods as `attention.GroupedQuery`."""

    def __init__(self, spec: DrafterSpec, weights: Weights, prefix: str):
        mla = spec.mla
        self.heads, self.kv_heads, self.dims, self.eps = spec.heads, spec.heads, mla, spec.rms_eps
        self.rotary_dim, self.query_width = mla.qk_rope_head_dim, mla.q_lora_rank
        self.scale = (mla.qk_nope_head_dim + mla.qk_rope_head_dim) ** -0.5 * score_factor(spec.rope)
        down = (f"{prefix}.q_a_proj", f"{prefix}.kv_a_proj_with_mqa")
        self.weight = torch.cat([weights[f"{name}.weight"] for name in down])
        self.bias = torch.cat([weights[f"{name}.bias"] for name in down]) if spec.attention_bias else None
        self.norms = [weights[f"{prefix}.{x}_a_layernorm.weight"] for x in ("q", "kv")]
        self.up = [weights[f"{prefix}.{x}_b_proj.weight"] for x in ("q", "kv")]
        self.output = weights[f"{prefix}.o_proj.weight"]
        self.output_bias = weights.optional(f"{prefix}.o_proj.bias") if spec.attention_bias else None

    def queries(self, projected: Tensor, rotary: Rotary, positions: Tensor) -> Tensor:
        """projected [R, q_lora] -> [nh, R, nope + rope], scaled."""
        q = F.linear(rms_norm(projected, self.norms[0], self.eps), self.up[0]).unflatten(-1, (self.heads, -1))
        plain, turned = q.split([self.dims.qk_nope_head_dim, self.rotary_dim], -1)
        return torch.cat([plain, rotary.turn(turned, positions)], -1).transpose(0, 1) * self.scale

    def keys_values(self, projected: Tensor, rotary: Rotary, positions: Tensor) -> tuple[Tensor, Tensor]:
        """projected [R, kv_lora + rope] -> keys [nh, R, nope + rope] and values [nh, R, v]."""
        latent, shared = projected.split([self.dims.kv_lora_rank, self.rotary_dim], -1)
        kv = F.linear(rms_norm(latent, self.norms[1], self.eps), self.up[1]).unflatten(-1, (self.heads, -1))
        plain, v = kv.split([self.dims.qk_nope_head_dim, self.dims.v_head_dim], -1)
        turned = rotary.turn(shared[:, None], positions).expand(-1, self.heads, -1)
        return torch.cat([plain, turned], -1).transpose(0, 1), v.transpose(0, 1)

    def out(self, attended: Tensor) -> Tensor:
        return F.linear(attended, self.output, self.output_bias)
