"""Rows behind a difference of two texts: the same tokens on another prefix. They tell which state a slot is, and no more.

A state depends on all tokens before it, so these rows are never equal; but a layer is nearer to itself on another prefix
than to another layer. HF[0], the embedding, does not depend on the prefix at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from eagle3dash.analysis.matches import MATCH, best_of
from eagle3dash.analysis.pairs import Aligned, per_token

LEAST = 32  # rows that tell something
MOST = 4096  # rows looked at
FIRST = 4  # rows left out behind a difference: the most changed by it


def behind(
    pairs: Iterable[Aligned], training_labels: Sequence[Any], serving_labels: Sequence[Any]
) -> dict[str, Any] | None:
    """pairs: with the states of the last rows only, from a difference on, as many on both sides. -> tokens, and the nearest
    state of each slot: `state` (None: none is clearly nearer than the others), cosine, relative_error. None: few rows."""
    shape = len(training_labels), len(serving_labels)
    total, rows = np.zeros((*shape, 3)), 0  # [N, M, (cosine, relative error, norm ratio)]
    for pair in pairs:
        if rows >= MOST or pair.tokens <= FIRST:
            continue
        for n, m in np.ndindex(shape):
            values = per_token(pair.serving[m][FIRST:], pair.training[n][FIRST:])
            total[n, m] += [float(v.double().sum()) for v in values]
        rows += pair.tokens - FIRST
    if rows < LEAST:
        return None
    means = total / rows
    slots = [best_of([_cell(means[n, m], n, m, state) for n, state in enumerate(training_labels)]) for m in range(shape[1])]
    keys = ("serving_slot", "cosine", "relative_error")
    told = [
        {"state": best["training_state"] if best["clear"] and best["relative_error"] < 2 * MATCH else None}
        | {key: best[key] for key in keys}
        for best in slots
    ]
    return {"tokens": rows, "slots": told}


def _cell(means: np.ndarray, n: int, m: int, state: Any) -> dict[str, Any]:
    named = dict(zip(("cosine", "relative_error", "norm_ratio"), map(float, means), strict=True))
    return named | {"training_slot": n, "training_state": state, "serving_slot": m}
