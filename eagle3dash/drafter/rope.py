"""Rotary position embedding: the frequencies of every kind seen in drafters, and the rotation.

Facts: `transformers.modeling_rope_utils` (default, linear, dynamic, llama3, yarn), YaRN (arXiv 2309.00071) and DeepSeek's
`mscale` form of it as SpecForge `modeling/draft/llama3_eagle.py` and vLLM `deepseek_scaling_rope.py` have it.
Angles are taken in float64: an engine's float32 angles differ by about 1e-3 at position 32,000.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from eagle3dash.errors import BadInput
from eagle3dash.records import Rope


def yarn_mscale(factor: float, mscale: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1.0


def score_factor(rope: Rope) -> float:
    """What multi-head latent attention multiplies its scores by (DeepSeek): m^2 with m from `mscale_all_dim`."""
    return yarn_mscale(rope.factor, rope.mscale_all_dim or 0.0) ** 2 if rope.kind == "yarn" else 1.0


def frequencies(rope: Rope, dim: int, length: int) -> tuple[Tensor, float]:
    """Angle per position of each pair [dim / 2], float64, and the factor on cos and sin.

    `length`: positions in the sequence; only kind "dynamic" depends on it (beyond `original_max_position`).
    """
    plain = rope.theta ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    if rope.kind == "default":
        return plain, 1.0
    if rope.kind == "linear":
        return plain / rope.factor, 1.0
    if rope.kind == "dynamic":
        stretch = max(1.0, rope.factor * length / (rope.original_max_position or length) - (rope.factor - 1))
        return plain * stretch ** -(torch.arange(0, dim, 2, dtype=torch.float64) / (dim - 2)), 1.0
    if rope.kind == "llama3":
        return _llama3(rope, plain), 1.0
    if rope.kind == "yarn":
        return _yarn(rope, plain, dim), _yarn_factor(rope)
    raise BadInput(f"The drafter's RoPE is of kind {rope.kind!r}; known: default, linear, dynamic, llama3, yarn.")


def _llama3(rope: Rope, plain: Tensor) -> Tensor:
    turns = rope.original_max_position * plain / (2 * math.pi)  # full turns within the original context
    keep = ((turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)).clamp(0, 1)
    return plain * (keep + (1 - keep) / rope.factor)


def _yarn(rope: Rope, plain: Tensor, dim: int) -> Tensor:
    def pair_with(turns: float) -> float:  # the pair that makes `turns` full turns within the original context
        return dim * math.log(rope.original_max_position / (turns * 2 * math.pi)) / (2 * math.log(rope.theta))

    low = max(math.floor(pair_with(rope.beta_fast)), 0)
    high = min(math.ceil(pair_with(rope.beta_slow)), dim - 1)
    ramp = (torch.arange(dim // 2, dtype=torch.float64) - low) / ((high - low) or 0.001)
    keep = 1 - ramp.clamp(0, 1)
    return plain * (keep + (1 - keep) / rope.factor)


def _yarn_factor(rope: Rope) -> float:
    if rope.attention_factor is not None:
        return rope.attention_factor
    over, under = 1.0 if rope.mscale is None else rope.mscale, rope.mscale_all_dim or 0.0
    return yarn_mscale(rope.factor, over) / yarn_mscale(rope.factor, under)


class Rotary:
    """cos and sin of positions 0..length-1, ready to turn vectors of width `dim`."""

    def __init__(self, rope: Rope, dim: int, length: int, device: torch.device, dtype: torch.dtype):
        angle, factor = frequencies(rope, dim, length)
        angle = torch.arange(length, dtype=torch.float64)[:, None] * angle  # [length, dim / 2]
        wide = torch.promote_types(dtype, torch.float32)
        self.cos, self.sin = ((f(angle) * factor).to(device, wide) for f in (torch.cos, torch.sin))
        self.interleaved = rope.interleaved

    def turn(self, x: Tensor, positions: Tensor) -> Tensor:
        """x [R, heads, dim] at positions [R] -> the same shape, turned."""
        cos, sin = self.cos[positions, None], self.sin[positions, None]  # [R, 1, dim / 2]
        if self.interleaved:
            a, b = x[..., 0::2], x[..., 1::2]
            return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2).to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)
