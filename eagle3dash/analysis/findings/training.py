"""The drafter itself: no mismatch, it just is no better; or it does not reach the accuracy that its training reported."""

from __future__ import annotations

from typing import Any

from eagle3dash.analysis.findings import fixes
from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.lengths import Length
from eagle3dash.analysis.findings.origin import best_of_training
from eagle3dash.analysis.findings.told import accept_lengths, feature_loss_shown, listed
from eagle3dash.records import Finding, Gap

WEAK = 0.6  # acceptance of step 0 per row: published drafters for large targets reach 0.7 and more
SHORT = 0.8  # replayed / expected accuracy of step 0


def drafter_weak(e: Evidence) -> list[Finding | Gap]:
    """Replay on training features, replay on serving features and server agree, and all are low."""
    if e.correction:
        return []  # it is read wrongly, which others tell
    found = _nothing_works(e) or below_expectation(e)
    if found:
        return found
    replay, lengths = e.wiring.trained_replay, _chain(e)
    if replay is None or len(lengths) < 2 or not replay.get("row_survival") or replay["row_survival"][0] is None:
        return []
    first = replay["row_survival"][0]
    if first >= WEAK or not agrees(e):
        return []
    gets = "the server gets all it can give" if e.served_length else "serving features give the same"
    title = f"The drafter itself is weak: {first:.0%} of its first tokens are right, and {gets}"
    evidence = {"step_accuracy_0": first, "expected": e.expected, "coverage": replay.get("coverage"), **accept_lengths(e)}
    return [Finding("drafter-weak", "info", title, evidence, fixes.WEAK)]


def below_expectation(e: Evidence) -> list[Finding | Gap]:
    """The first step's accuracy on training features is clearly below what the training run reported."""
    rows, replay = e.training_rows, e.wiring.trained_replay
    if e.expected is None or rows is None or not replay.get("row_survival"):
        return []
    first, promised = replay["row_survival"][0], e.expected["alpha"][0]
    within = rows.high is None or rows.high >= e.expected["accept_length"]
    if first is None or first >= SHORT * promised or within:
        return []
    title = f"On training features {first:.0%} of the drafter's first tokens are right; training reported {promised:.0%}"
    evidence = {"expected": e.expected, "states": listed(replay["states"]), "row_survival": replay["row_survival"]}
    return [Finding("drafter-weak", "warning", title, evidence | accept_lengths(e), fixes.BELOW)]


def _nothing_works(e: Evidence) -> list[Finding | Gap]:
    """No combination of the captured states makes the drafter accept anything."""
    rows = (e.sweep or {}).get("rows")
    if e.wiring.trained is not None or not rows or rows[0]["row_accept_length"] is None:
        return []
    if e.foreign:
        return [_foreign(e)]
    best = rows[0]
    length = best["row_accept_length"]
    title = f"No combination of the captured states makes this drafter work: accept length {length:.2f} per row at best"
    evidence = {"best": best, "combinations": len(rows), **accept_lengths(e)}
    return [Finding("drafter-weak", "warning", title, evidence, fixes.BELOW)]


def _foreign(e: Evidence) -> Finding:
    """Serving features do what nothing in the training capture does."""
    fed, best = e.replays["serving"], best_of_training(e)
    title = (
        f"The serving features make the drafter work ({fed['row_accept_length']:.2f} tokens per row), no combination of "
        f"the training capture's states does ({best['row_accept_length']:.2f} at best): this training capture is not of "
        "what it was trained on"
    )
    names = ("row_accept_length", "low", "high", "rows", "states")
    evidence: dict[str, Any] = {"best_on_training_features": {name: best.get(name) for name in names}}
    evidence["on_serving_features"] = {
        "row_accept_length": fed["row_accept_length"], "low": fed["row_low"], "high": fed["row_high"], "rows": fed["rows"],
    }  # fmt: skip
    strange = [slot.slot for slot in e.wiring.slots if slot.how in ("unknown", "near")]
    evidence |= {"served_slots_that_it_lacks": strange} if strange else {}
    return Finding("drafter-weak", "warning", title, evidence | accept_lengths(e), fixes.FOREIGN)


def agrees(e: Evidence) -> bool:
    """Neither features nor engine lose anything that can be told from noise."""
    engine = e.engine_loss
    return not feature_loss_shown(e) and (engine is None or not (engine.shown or engine.share >= 0.3))


def _chain(e: Evidence) -> list[Length]:
    return [length for length in (e.training_length, e.serving_length, e.served_length) if length is not None]
