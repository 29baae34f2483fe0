"""Aligned texts of both captures, and at which lag they belong together.

Lag L means: serving row t + L holds what training has at row t. It is tested on a sample, by the rows that fit best, since
other rows may be torn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from eagle3dash.analysis.matches import CLEAR, MATCH

LAGS = tuple(range(-4, 5))
LAG_TOKENS = 2048  # looked at
LAG_QUANTILE = 0.25  # of the rows: those that tell the lag
FIRST = 4  # first row looked at for lags and forensics: the first are unlike all others, and the same in many texts
CHUNK = 4096  # rows compared at a time

Values = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Aligned:
    """Tensors of one pair of sequences: N training states and M serving slots, each [>= tokens, Ht]."""

    sequence: int
    tokens: int
    training: Sequence[torch.Tensor]
    serving: Sequence[torch.Tensor]


Pairs = Callable[[], Iterable[Aligned]]


def per_token(s: torch.Tensor, t: torch.Tensor) -> Values:
    """s, t [n, Ht] of any float dtype -> cosine, relative error, norm ratio, each float32 [n]."""
    parts = []
    for start in range(0, len(t), CHUNK):
        a, b = s[start : start + CHUNK].float(), t[start : start + CHUNK].float()  # [chunk, Ht]
        size_a, size_b = a.norm(dim=-1), b.norm(dim=-1).clamp_min(1e-30)  # [chunk]
        cosine = (a * b).sum(-1) / (size_a.clamp_min(1e-30) * size_b)
        parts.append((cosine.clamp(-1, 1), (a - b).norm(dim=-1) / size_b, size_a / size_b))
    if not parts:
        return torch.zeros(0), torch.zeros(0), torch.zeros(0)
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))  # type: ignore[return-value]


def lagged(t: torch.Tensor, s: torch.Tensor, tokens: int, lag: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of t and s that belong together under a lag."""
    low, high = max(0, -lag), max(max(0, -lag), min(tokens, tokens - lag))
    return t[low:high], s[low + lag : high + lag]


def lag_errors(pairs: Iterable[Aligned], shape: tuple[int, int]) -> dict[int, np.ndarray]:
    """{lag: [M]}: what the best rows of each slot differ from their nearest state, by direction or as they are."""
    errors: dict[tuple[int, int, int], list[torch.Tensor]] = {}
    for pair in _sample(pairs, LAG_TOKENS):
        for lag in LAGS:
            for n, m in np.ndindex(shape):
                # without the first rows: few of them would decide a short sample
                t, s = lagged(pair.training[n][FIRST:], pair.serving[m][FIRST:], max(0, pair.tokens - FIRST), lag)
                cosine, error, _ = per_token(s, t)
                errors.setdefault((lag, n, m), []).append(torch.minimum(error, (1.0 - cosine.square()).clamp_min(0).sqrt()))
    out = {lag: np.full(shape[1], np.inf) for lag in LAGS}
    for (lag, _, m), parts in errors.items():
        values = torch.cat(parts)
        if len(values):
            out[lag][m] = min(out[lag][m], float(values.quantile(LAG_QUANTILE)))
    return out


def _sample(pairs: Iterable[Aligned], budget: int) -> Iterator[Aligned]:
    left = budget
    for pair in pairs:
        if left <= 0:
            return
        yield Aligned(pair.sequence, min(pair.tokens, left), pair.training, pair.serving)
        left -= pair.tokens


def choose_lag(errors: dict[int, np.ndarray]) -> tuple[int, list[int]]:
    """{lag: lowest error of each serving slot [M]} -> (the lag that all slots have, else 0; lag of each slot).

    Another lag than 0 must halve the error at least: repeated tokens make neighbours alike."""

    def pick(values: dict[int, float]) -> int | None:
        """None: the slot is like no state at any lag."""
        known = {lag: value for lag, value in values.items() if np.isfinite(value)}
        best = min(known, key=lambda lag: (known[lag], abs(lag)), default=0)
        if not known or known[best] >= MATCH:
            return None
        return best if known[best] * CLEAR < known.get(0, np.inf) else 0

    picked = [pick({lag: float(values[m]) for lag, values in errors.items()}) for m in range(len(errors[0]))]
    told = {lag for lag in picked if lag is not None}
    shared = told.pop() if len(told) == 1 else 0
    return shared, [shared if lag is None else lag for lag in picked]


def unlike(errors: dict[int, np.ndarray]) -> list[int]:
    """Slots that are like no state at any lag."""
    return [m for m in range(len(errors[0])) if min(float(values[m]) for values in errors.values()) >= MATCH]
