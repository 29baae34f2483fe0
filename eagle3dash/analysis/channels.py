"""The ratio of a served slot to a training state, channel by channel: a norm's weight, or a scale, shows itself.

s [R, Ht] served rows, t [R, Ht] the state of the same tokens, float32. Least squares of s = w * t, one weight a channel,
every row at the same weight, twice: the second time on the half of the rows that fit best, since rows may be torn.
"""

from __future__ import annotations

from typing import Any

import torch

POINTS = 101  # of the curve of sorted weights: its percentiles
LEAST = 32  # rows below which nothing is said
TINY = 1e-30


def ratios(s: torch.Tensor, t: torch.Tensor, normed: bool) -> dict[str, Any] | None:
    """The sorted weights of the channels as POINTS percentiles, with `of`: what they are of. `normed`: against t / rms(t),
    so that they are the weights of the norm; else against t itself. None where too few rows tell."""
    if len(s) < LEAST:
        return None
    size = t.norm(dim=-1, keepdim=True).clamp_min(TINY)  # [R, 1]
    if normed:
        size_s = s.norm(dim=-1, keepdim=True).clamp_min(TINY)
        x, y = t / size * t.shape[-1] ** 0.5 / size_s, s / size_s  # [R, Ht], in units of the served norm
    else:
        x, y = t / size, s / size
    kept = torch.ones(len(s), dtype=torch.bool)
    for _ in range(2):
        w = (x[kept] * y[kept]).sum(0) / x[kept].square().sum(0).clamp_min(TINY)  # [Ht]
        left = (y - w * x).norm(dim=-1)
        kept = left <= left.median()
    curve = torch.quantile(w.double(), torch.linspace(0, 1, POINTS, dtype=torch.float64))
    return {"of": "weight of a norm" if normed else "serving / training", "channels": len(w), "percentiles": curve.tolist()}
