"""Which training state a serving slot holds, from the cells of one slot (see `features`). Knows no tensors.

By lowest relative error, not by highest cosine: neighbouring layers of a residual stream are nearly parallel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

MATCH = 0.35  # a slot whose lowest relative error is above this matches no training state
DIRECTION = 0.15  # the same by direction alone (sine of the angle), for slots at another scale
CLEAR = 2.0  # the second lowest error must be so many times the lowest
# Below this (or twice the lowest seen) an error is the noise of two implementations in bf16: 0.005..0.015 between vLLM and
# transformers on a 30-layer target. Other layers of that target are at 0.7 and more.
NOISE = 0.05
PART = 0.05  # share of tokens at noise, from which a slot that matches nothing on the whole is that state in part


def best_of(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The cell of lowest relative error of one slot, and how sure that is.

    `clear`: the next state is at least CLEAR times as far; `noise`: as near as two implementations of one state come;
    `matches`: clear and below MATCH. Where nothing matches: the state that a share of the tokens equals, and no other, is
    it in part (`partly`); else the one that has the slot's direction, clearly, is it at another scale (`scaled`)."""
    known = sorted((c for c in cells if c["relative_error"] is not None), key=lambda c: c["relative_error"])
    if not known:
        nothing = dict.fromkeys(("clear", "noise", "matches", "scaled", "partly"), False)
        return {**cells[0], "next_error": None, **nothing}
    near = _ranked(known, lambda c: c["relative_error"])
    turned = _ranked(known, lambda c: math.sqrt(max(0.0, 1.0 - c["cosine"] ** 2)))
    matches = near.clear and near.value < MATCH
    equal = [cell for cell in known if (cell.get("share_at_noise") or 0.0) >= PART]
    partly = not matches and len(equal) == 1
    scaled = not matches and not partly and turned.clear and turned.value < DIRECTION
    cell = equal[0] if partly else turned.cell if scaled else near.cell
    others = [c["relative_error"] for c in known if c is not cell]
    return {
        **cell,
        "next_error": min(others, default=None),
        "clear": near.clear or partly or scaled,
        "noise": cell["relative_error"] < NOISE,
        "matches": matches or partly or scaled,
        "scaled": scaled,
        "partly": partly,
    }


@dataclass(frozen=True)
class Ranked:
    """The nearest cell by some distance, that distance, and whether it is clearly nearer than the next."""

    cell: dict[str, Any]
    value: float
    clear: bool


def _ranked(cells: Sequence[dict[str, Any]], distance: Callable[[dict[str, Any]], float]) -> Ranked:
    order = sorted(cells, key=distance)
    value, following = distance(order[0]), distance(order[1]) if len(order) > 1 else None
    return Ranked(order[0], value, following is None or following > CLEAR * value)
