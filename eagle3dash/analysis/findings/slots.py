"""What each serving slot is: from its forensics to a state and a word for how it differs from it.

A slot that differs from its nearest state by more than two implementations do is either that state with noise, or another
layer beside it. Noise of rounded activations is the same for no two tokens. Rounded weights leave, as another layer does, a
part that all tokens share; but their error grows with depth from a small one, while a layer adds the more the shallower it
is and lengthens the stream. Measured on a 30-layer target with weights rounded to fp8, int8, int4 and int3: 0.01..0.23 at
HF[2] and 1.8 to 2.5 times that at HF[15]; one layer further: 0.39 at HF[2], 0.29 at HF[15].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eagle3dash.analysis.matches import NOISE

SHARED = 0.05  # share of the difference common to all tokens, above which it is no noise of activations
GRID = 0.5  # different values in a row, of those in training's: a quantised state
GROWTH = (1.3, 8.0)  # error of a slot of rounded weights, of that of a slot half as deep or less
LEAN = 0.3  # change of the norm, of the error: more than rounding does
EMBEDDING = 0.15  # no rounding of an embedding table is that far off
OUTPUT_SIZE, OUTPUT_COSINE = 0.6, 0.85  # of a layer's output against the stream it is added to
REORDERED = 0.5  # the same for another order of channels, which noise does not make up
EXPLAINED = 0.3  # error above which no scale or norm explains a slot
ADDED = ("normed", "raw", "channel", "residual", "blocks", "scaled")

Told = tuple[int, Any, str, dict[str, Any]]  # slot, state, how, numbers


def identified(features: dict[str, Any], fed: Sequence[int], trained: Sequence[Any] | None) -> list[Told]:
    """Slot, state, how and numbers of every slot that feeds fc. trained: what training fed in their places."""
    states = features["training_states"]
    found = {each["serving_slot"]: each for each in features.get("forensics", ())}
    tests = [found.get(slot, {"how": "unknown", "rows": 0}) for slot in fed]
    layers = _another_layer(tests, states)
    out: list[Told] = []
    for place, (slot, test) in enumerate(zip(fed, tests, strict=True)):
        cell = _cell(features, slot, test)
        numbers = {key: cell[key] for key in ("relative_error", "next_error", "cosine", "norm_ratio")}
        numbers |= {key: value for key, value in test.items() if key not in ("how", "nearest", "serving_slot")}
        state = states[test["training_slot"]] if "training_slot" in test else None
        own = trained[place] if trained and len(trained) == len(fed) and trained[place] in states else None
        if test.get("clipped") and test["how"] != "match":  # what is cut off looks like a norm, or like nothing
            out.append((slot, state if own is None else own, "noisy", numbers))
        elif test["how"] in ADDED and (test["error"] or 0.0) < (REORDERED if test["how"] == "blocks" else EXPLAINED):
            out.append((slot, state, test["how"], numbers))
        elif test["how"] == "match":
            how = "match" if test["error"] is None or test["error"] < NOISE else "near" if layers else "noisy"
            out.append((slot, state, how, numbers))
        else:
            how = "output" if own is not None and _output(test, states.index(own)) else "unknown"
            out.append((slot, own if how == "output" else None, how, numbers | {"nearest_state": state}))
    return out


def _cell(features: dict[str, Any], slot: int, test: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a slot against the state that the test names: behind a norm another state may be nearer."""
    best, named = features["best_cells"][slot], test.get("training_slot")
    if test["how"] == "unknown" or named is None or named == best["training_slot"]:
        return best
    row = [cell for cell in features["cells"] if cell["serving_slot"] == slot]
    others = [
        cell["relative_error"] for cell in row if cell["training_slot"] != named and cell["relative_error"] is not None
    ]
    return next(cell for cell in row if cell["training_slot"] == named) | {"next_error": min(others, default=None)}


def _another_layer(tests: Sequence[dict[str, Any]], states: Sequence[Any]) -> bool:
    """Whether the slots that are near a state, and not at it, are other layers: all or none, one cause for all."""
    near = [t for t in tests if t["how"] == "match" and (t["error"] or 0.0) >= NOISE]
    if not near or all(t["levels"] < GRID or t["systematic"] < SHARED for t in near):
        return False
    leans = sorted(t["lean"] for t in near)
    if leans[len(leans) // 2] >= LEAN:
        return True
    depth = {id(t): _depth(states, t["training_slot"]) for t in tests if t["how"] == "match"}
    if any(depth[id(t)] == 0 and t["error"] >= EMBEDDING for t in near):
        return True
    matched = sorted((t for t in tests if id(t) in depth and depth[id(t)] > 0), key=lambda t: depth[id(t)])
    for a, b in zip(matched, matched[1:], strict=False):
        growth = b["error"] / max(a["error"], 1e-6)
        far = depth[id(b)] >= 2 * depth[id(a)]
        if depth[id(b)] > depth[id(a)] and not (GROWTH[0] if far else 0.8) <= growth <= GROWTH[1]:
            return True
    return False


def _depth(states: Sequence[Any], slot: int) -> int:
    """The number of the state; by its place in the capture where it has none."""
    return states[slot] if isinstance(states[slot], int) else slot


def _output(test: dict[str, Any], own: int) -> bool:
    """Much smaller than the state training fed here and along no state: what a layer adds, not the stream."""
    nearest = test.get("nearest") or []
    if not nearest or nearest[own]["norm_ratio"] >= OUTPUT_SIZE:
        return False
    return max(each["cosine"] for each in nearest) < OUTPUT_COSINE
