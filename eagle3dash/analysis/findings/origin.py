"""Whether the training capture holds what the drafter was trained on: what the server feeds may prove that it does not.

A drafter works on the features it was trained on and on hardly any others. Where the serving features make it accept
clearly more than anything that the training capture holds, in whatever order and reading, no state of that capture can
be called the trained one, and nothing is said from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eagle3dash.analysis.findings.evidence import Evidence

SAME_TEXT = 0.9  # share of the serving tokens that both captures hold
PART, OTHER_TEXT = 0.5, 0.25  # of the tokens accepted on serving features; less where the texts are others
MOVED = 0.9  # of the same, where the captures are moved against each other: a later token's state gives some away


def best_of_training(e: Evidence) -> dict[str, Any] | None:
    """What accepts most on training features: a row of the sweep, or the drafter read otherwise."""
    found = [row for row in (e.sweep or {}).get("rows", []) if row["row_accept_length"] is not None][:1]
    corrected = (e.changes.get("training") or {}).get("best")
    found += [corrected] if corrected and corrected["row_accept_length"] is not None else []
    return max(found, key=lambda each: each["row_accept_length"], default=None)


def foreign(e: Evidence) -> bool:
    """The intervals per row lie apart, and serving features give at least twice the accepted tokens. Where one capture is
    moved against the other, the one that gives more on the same rows is the right one."""
    fed, best = e.replays.get("serving"), best_of_training(e)
    if fed is None or best is None or None in (fed["row_accept_length"], fed["row_low"]):
        return False
    told = (e.features or {}).get("alignment") or {}
    same = (told.get("aligned_tokens") or 0) >= SAME_TEXT * max(told.get("serving_tokens") or 0, 1)
    highest = best["row_accept_length"] if best["high"] is None else best["high"]
    if same and e.features.get("lag"):
        return best["row_accept_length"] < 1.0 + MOVED * (fed["row_accept_length"] - 1.0)
    most = 1.0 + (PART if same else OTHER_TEXT) * (fed["row_accept_length"] - 1.0)
    return highest < fed["row_low"] and best["row_accept_length"] < most
