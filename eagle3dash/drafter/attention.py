"""Grouped-query attention of a drafter layer, and how a chain looks back.

A row at step j sees the step-0 keys of rows 0..t and, of the later steps, only its own row's keys: the prefix that a
server recomputes from the target's true states, plus the chain it is drafting. Training-time test of EAGLE-3
(arXiv 2503.01840 section 3.2); same layout in SafeAILab `eagle/traineagle3/cnets.py` and SpecForge `llama3_eagle.py`.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from eagle3dash.drafter.memory import rows_that_fit
from eagle3dash.drafter.norm import rms_norm, widened
from eagle3dash.drafter.rope import Rotary
from eagle3dash.drafter.weights import Weights
from eagle3dash.records import DrafterSpec


class GroupedQuery:
    """q, k, v as one stacked projection [(nh + 2 nkv) hd, in]; the first `query_width` outputs are the queries."""

    def __init__(self, spec: DrafterSpec, weights: Weights, prefix: str):
        self.heads, self.kv_heads, self.head_dim = spec.heads, spec.kv_heads, spec.head_dim
        self.rotary_dim, self.eps, self.scale = spec.head_dim, spec.rms_eps, spec.head_dim**-0.5
        self.query_width = spec.heads * spec.head_dim
        self.weight = torch.cat([weights[f"{prefix}.{x}_proj.weight"] for x in "qkv"])  # [(nh + 2 nkv) hd, H or 2H]
        bias = [weights[f"{prefix}.{x}_proj.bias"] for x in "qkv"] if spec.attention_bias else None
        self.bias = torch.cat(bias) if bias else None
        self.output = weights[f"{prefix}.o_proj.weight"]
        self.output_bias = weights.optional(f"{prefix}.o_proj.bias") if spec.attention_bias else None
        self.norms = [weights[f"{prefix}.{x}_norm.weight"] for x in "qk"] if spec.qk_norm else None

    def queries(self, projected: Tensor, rotary: Rotary, positions: Tensor) -> Tensor:
        """projected [R, nh * hd] -> [nh, R, hd], scaled."""
        q = projected.unflatten(-1, (self.heads, self.head_dim))
        q = rms_norm(q, self.norms[0], self.eps) if self.norms else q
        return rotary.turn(q, positions).transpose(0, 1) * self.scale

    def keys_values(self, projected: Tensor, rotary: Rotary, positions: Tensor) -> tuple[Tensor, Tensor]:
        """projected [R, 2 nkv hd] -> keys [nkv, R, hd] and values [nkv, R, hd]."""
        k, v = projected.unflatten(-1, (2 * self.kv_heads, self.head_dim)).split(self.kv_heads, 1)
        k = rms_norm(k, self.norms[1], self.eps) if self.norms else k
        return rotary.turn(k, positions).transpose(0, 1), v.transpose(0, 1)

    def out(self, attended: Tensor) -> Tensor:
        return F.linear(attended, self.output, self.output_bias)


def look_back(q: Tensor, rows: Tensor, keys: Tensor, values: Tensor, own: list[tuple[Tensor, Tensor]]) -> Tensor:
    """q [nh, R, hd] of ascending `rows` [R >= 1]; keys, values [nkv, S, .] of step 0; own: of steps 1 to j, [nkv, R, .].

    Returns [R, nh * hv]. One softmax over t + 1 + j keys a row; never holds more than a chunk of [nh, R, S] scores.
    """
    # scores are passed over several times, so a CPU's cache should hold them: a small share
    size = rows_that_fit(q.device, 4 * q.shape[0] * (int(rows[-1]) + 1), share=16)
    parts = []
    for at in range(0, len(rows), size):
        cut = slice(at, at + size)
        parts.append(_chunk(q[:, cut], rows[cut], keys, values, [(k[:, cut], v[:, cut]) for k, v in own]))
    return torch.cat(parts)


def _chunk(q: Tensor, rows: Tensor, keys: Tensor, values: Tensor, own: list[tuple[Tensor, Tensor]]) -> Tensor:
    groups, first, last = keys.shape[0], int(rows[0]) + 1, int(rows[-1]) + 1
    q = q.unflatten(0, (groups, -1))  # [nkv, nh/nkv, R, hd]
    scores = q.flatten(1, 2) @ keys[:, :last].transpose(1, 2)  # [nkv, nh/nkv * R, last]
    scores = widened(scores).unflatten(1, q.shape[1:3])  # [nkv, nh/nkv, R, last]
    later = torch.arange(first, last, device=rows.device) > rows[:, None]  # [R, last - first]: keys still to come
    scores[..., first:].masked_fill_(later, -math.inf)
    chain = [widened((q * k[:, None]).sum(-1, keepdim=True)) for k, _ in own]  # j x [nkv, nh/nkv, R, 1]
    top = scores.amax(-1, keepdim=True)
    for score in chain:
        top = torch.maximum(top, score)
    scores.sub_(top).exp_()
    total = scores.sum(-1, keepdim=True)
    seen = (scores.to(values.dtype).flatten(1, 2) @ values[:, :last]).unflatten(1, q.shape[1:3])
    for score, (_, v) in zip(chain, own, strict=True):
        weight = (score - top).exp()
        total, seen = total + weight, seen + weight * v[:, None]
    return (seen / total).to(q.dtype).flatten(0, 1).transpose(0, 1).flatten(1)  # [R, nh * hv]
