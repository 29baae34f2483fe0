"""Which rows of a slot are wrong, and where: from a position on, in every chunk, in whole texts, or here and there.

Takes the error that the best explanation leaves on each row (see `forensics`). Position 0 is left out: a target's first
token is an outlier that kernels treat differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

WRONG, TIMES = 0.3, 5.0  # a row is wrong above this error, and above so many times that of the best rows
LEVEL, RATIO = 0.05, 3.0  # a break has a side above this error, and so many times the other side's
FEW, LEAST = 0.01, 3  # share and number of wrong rows that are no accident
CHUNKS = tuple(2**n for n in range(3, 14))  # 8 .. 8192 tokens
SIDE = 16  # rows on each side of a break
MOSTLY, HARDLY = 0.8, 0.2


@dataclass(frozen=True)
class Broken:
    """`rows`: bool [R], those that are wrong. pattern: a dict with "kind" (split, chunk, texts, scattered), or None."""

    rows: np.ndarray
    pattern: dict[str, Any] | None


def broken(error: np.ndarray, position: np.ndarray, sequence: np.ndarray, floor: float) -> Broken:
    """`floor`: the error of the rows that are right."""
    later = position > 0
    wrong = (error > max(WRONG, TIMES * floor)) & later
    split = _split(error[later], position[later])
    if split is not None:
        after = split["after"] > split["before"]
        return Broken(((position >= split["position"]) == after) & later, split)
    if wrong.sum() < max(LEAST, FEW * later.sum()):
        return Broken(wrong, None)
    numbers = {"wrong_rows": int(wrong.sum()), "share": float(wrong.mean())}
    found = _texts(wrong, sequence) or _chunks(wrong, position) or {"kind": "scattered"}
    return Broken(wrong, found | numbers)


def _split(error: np.ndarray, position: np.ndarray) -> dict[str, Any] | None:
    """The position that best splits the errors in two levels, by least squares of their logarithm."""
    if len(position) < 2 * SIDE:
        return None
    logs = np.log(np.maximum(error, 1e-6))
    count, total = np.bincount(position).astype(float), np.bincount(position, weights=logs)
    left_n, left = np.cumsum(count)[:-1], np.cumsum(total)[:-1]
    right_n, right = count.sum() - left_n, total.sum() - left
    usable = (left_n >= SIDE) & (right_n >= SIDE)
    if not usable.any():
        return None
    gain = np.where(usable, left**2 / np.maximum(left_n, 1) + right**2 / np.maximum(right_n, 1), -np.inf)
    at = int(gain.argmax()) + 1
    side = position >= at
    means = [float(np.median(error[side == later])) for later in (False, True)]
    low, high = sorted(means)
    above = error > np.sqrt(max(low, 1e-6) * max(high, 1e-6))
    rates = [float(above[side == later].mean()) for later in (False, True)]
    if high < LEVEL or high < RATIO * low or min(rates) > HARDLY or max(rates) < MOSTLY:
        return None
    rows = [int((~side).sum()), int(side.sum())]
    return {"kind": "split", "position": at, "before": means[0], "after": means[1], "rows": rows}


def _texts(wrong: np.ndarray, sequence: np.ndarray) -> dict[str, Any] | None:
    """Some texts nearly all wrong, the others hardly."""
    names = np.unique(sequence)
    rates = np.array([wrong[sequence == name].mean() for name in names])
    bad = rates > 0.5
    inside = wrong[np.isin(sequence, names[bad])].sum()
    if len(names) < 2 or not bad.any() or bad.all() or inside < MOSTLY * wrong.sum() or rates[bad].mean() < MOSTLY:
        return None
    return {"kind": "texts", "texts": [int(name) for name in names[bad]]}


def _chunks(wrong: np.ndarray, position: np.ndarray) -> dict[str, Any] | None:
    """The same places of every chunk: the smallest power of two whose places tell wrong rows from right ones."""
    for chunk in CHUNKS:
        if 2 * chunk > position.max() + 1:
            return None
        place = position % chunk
        seen = np.bincount(place, minlength=chunk)
        rate = np.bincount(place, weights=wrong, minlength=chunk) / np.maximum(seen, 1)
        bad = rate > 0.5
        if not bad.any() or bad.mean() > 0.75:
            continue
        inside = bad[place]
        if wrong[inside].mean() >= MOSTLY and wrong[~inside].mean() <= FEW:
            places = np.flatnonzero(bad)
            return {"kind": "chunk", "chunk": chunk, "places": [int(places[0]), int(places[-1])]}
    return None


def places(pattern: dict[str, Any]) -> str:
    """Of a chunk pattern, places from 0 on: place 31 of every 32 tokens; places 0 to 3 of every 64 tokens."""
    low, high = pattern["places"]
    where = f"place {low}" if low == high else f"places {low} to {high}"
    return f"{where} of every {pattern['chunk']:,} tokens"


def where(pattern: dict[str, Any] | None) -> str:
    """Which rows of a slot are wrong, in words; empty for none."""
    if pattern is None:
        return ""
    if pattern["kind"] == "split":
        after = pattern["after"] > pattern["before"]
        return f"{'from' if after else 'before'} position {pattern['position']:,}{' on' if after else ''}"
    if pattern["kind"] == "chunk":
        return f"at {places(pattern)}"
    if pattern["kind"] == "texts":
        return f"in all of the texts {', '.join(map(str, pattern['texts']))}"
    return f"in {pattern['share']:.0%} of its rows, here and there"
