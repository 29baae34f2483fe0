"""What the largest values of a serving slot tell: a format that clips them, and first rows that are not training's.

A target's first token is an outlier, hundreds of times as large as all others in a few channels, and every later token
attends to it: one wrong row costs acceptance on all. Facts: largest values of fp8 e4m3 (448, 240 without the codes of
infinity), e5m2 (57344) and fp16 (65504).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from eagle3dash.analysis.pairs import Aligned, lagged

LARGEST = (448.0, 240.0, 57344.0, 65504.0)
ENTRIES = 3  # values at the very same height that are no accident
BEYOND = 1.02  # training goes on above it
FIRST_TEXTS = 64  # texts whose first rows are looked at


def outliers(pairs: Callable[[], Iterable[Aligned]], slot: int, state: int, lag: int) -> dict[str, Any]:
    """Of one serving slot against the training state it holds: clipped (None, or {"at", "entries", "channels"}) and
    first_row (median relative error of the first rows, of how many texts; None where a lag leaves none)."""
    top, errors = 0.0, []
    for pair in pairs():
        t, s = lagged(pair.training[state], pair.serving[slot], pair.tokens, lag)
        if not len(s):
            continue
        top = max(top, float(s.abs().max()))
        if lag == 0 and len(errors) < FIRST_TEXTS:
            first = t[0].float()
            errors.append(float((s[0].float() - first).norm() / first.norm().clamp_min(1e-30)))
    median = sorted(errors)[len(errors) // 2] if errors else None
    first_row = None if median is None else {"relative_error": median, "texts": len(errors)}
    return {"clipped": _clipped(pairs, slot, state, lag, top), "first_row": first_row}


def _clipped(pairs: Callable[[], Iterable[Aligned]], slot: int, state: int, lag: int, top: float) -> dict[str, Any] | None:
    """Values pile up at `top`, the largest there is, where training's go on above it."""
    entries, beyond, channels = 0, 0, set()
    for pair in pairs():
        t, s = lagged(pair.training[state], pair.serving[slot], pair.tokens, lag)
        at_top = (s.abs().float() == top).nonzero()  # [n, (row, channel)]
        if len(at_top):
            entries += len(at_top)
            beyond += int((t[at_top[:, 0], at_top[:, 1]].abs().float() > BEYOND * top).sum())
            channels |= set(at_top[:, 1].tolist())
    known = len(channels) > 1 or top in LARGEST
    if top == 0.0 or entries < ENTRIES or 2 * beyond < entries or not known:
        return None
    return {"at": top, "entries": entries, "channels": len(channels)}
