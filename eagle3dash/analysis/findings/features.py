"""The server feeds the right states, but not as training did: moved, changed, noisy, torn, or of other tokens.

Severity: error where acceptance is lost between replayed training features and replayed serving features (or, without a
serving replay, what was served) beyond noise; else warning. What each fault leaves behind is in `analysis.forensics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eagle3dash.analysis.findings import fixes
from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.told import accept_lengths, feature_loss_shown, feature_severity, listed, triples
from eagle3dash.analysis.findings.wiring import Slot
from eagle3dash.records import Finding, Gap

QUANTISED = 0.03  # relative error above what bf16 rounding leaves (0.005..0.015 on the demo's 30 layers)
DRIFT = 0.10  # relative error of the worse side of a position ..
DRIFT_RATIO = 3.0  # .. and that many times the better side's
REPEATED = 0.01  # share of rows
IN_PROMPT = 0.5  # share of pairs


def corrupt_features(e: Evidence) -> list[Finding | Gap]:
    """Rows that repeat where training's do not, or rows that are wrong here and there: a buffer that was not written."""
    found, total = e.features, e.features["aligned_tokens"]
    repeated = [slot for slot, n in enumerate(found["repeated_rows"]) if n >= max(3, REPEATED * total)]
    torn = [] if drifts(e) else [slot for slot in e.wiring.slots if slot.how == "partly"]
    if not repeated and not torn:
        return []
    title = f"The serving capture repeats rows in slots {listed(repeated)}: one state stands for different tokens"
    if not repeated:
        wrong = 1.0 - min(slot.numbers["share_at_noise"] for slot in torn)
        title = f"{wrong:.0%} of the rows in slots {_slots(torn)} differ from training, the others are equal to it"
    evidence = {"repeated_rows": found["repeated_rows"], "torn_slots": [slot.slot for slot in torn]}
    evidence |= {"aligned_tokens": total, **accept_lengths(e)}
    return [Finding("corrupt-features", feature_severity(e), title, evidence, fixes.REPEATED_ROWS)]


def tokens_differ(e: Evidence) -> list[Finding | Gap]:
    """The captures are not of the same token ids. Answers that part ways after the prompt are no fault."""
    told = e.features.get("alignment")
    if told is None or not (told["differing_pairs"] or told["unpaired_serving"]):
        return []
    keys = "aligned_tokens", "compared_tokens", "serving_tokens", "pairs", "differing_pairs", "differ_in_prompt"
    evidence = {key: told[key] for key in keys}
    evidence |= {"unpaired_serving": len(told["unpaired_serving"]), "first_difference": told["first_difference"]}
    if told["aligned_tokens"] == 0:
        title = "The serving capture has other token ids than the training capture, from the first token on"
        return [Finding("tokens-differ", "warning", title, evidence, fixes.OTHER_TOKENS)]
    if told["differ_in_prompt"] >= IN_PROMPT * max(1, told["pairs"]):
        at = told["first_difference"]["position"]
        title = f"{told['differ_in_prompt']} of {told['pairs']} prompts differ between captures, the first at token {at}"
        return [Finding("tokens-differ", "warning", title, evidence, fixes.OTHER_TOKENS)]
    title = f"The captures' texts agree for {told['aligned_tokens']} of {told['serving_tokens']} tokens, then part ways"
    return [Finding("tokens-differ", "info", title, evidence, fixes.OTHER_ANSWERS)]


def shifted_features(e: Evidence) -> list[Finding | Gap]:
    """Features of another token than training pairs them with."""
    found, fed = e.features, [slot.slot for slot in e.wiring.slots]
    moved = {slot: found["lag"] or found["slot_lags"][slot] for slot in fed if found["lag"] or found["slot_lags"][slot]}
    if not moved:
        return []
    which = "All slots" if len(moved) == len(fed) else f"Slots {listed(moved)}"
    by = listed(f"{lag:+d}" for lag in sorted(set(moved.values())))
    title = f"{which} of the serving features are shifted by {by} tokens against training"
    evidence = {"lag": found["lag"], "slot_lags": found["slot_lags"], "relative_error_by_lag": found["lags"]}
    evidence |= accept_lengths(e)
    return [Finding("shifted-features", feature_severity(e), title, evidence, fixes.SHIFTED)]


def normed_features(e: Evidence) -> list[Finding | Gap]:
    """A norm, or its weights, between the layer and the drafter."""
    slots = [slot for slot in e.wiring.slots if slot.how in ("normed", "channel")]
    title = f"The server feeds slots {_slots(slots)} after a norm; training used the raw residual stream"
    return _forensic(e, "normed-features", slots, title, fixes.NORMED)


def missing_residual(e: Evidence) -> list[Finding | Gap]:
    """The layer's own output without the stream it is added to."""
    slots = [slot for slot in e.wiring.slots if slot.how == "residual"]
    title = f"Slots {_slots(slots)} hold a layer's output without the residual stream it is added to"
    return _forensic(e, "missing-residual", slots, title, fixes.RESIDUAL)


def scaled_features(e: Evidence) -> list[Finding | Gap]:
    """The right direction at another scale."""
    slots = [slot for slot in e.wiring.slots if slot.how == "scaled"]
    factors = listed(f"{slot.numbers['weight']:.3g}" for slot in slots)
    title = f"Slots {_slots(slots)} are served {factors} times as large as in training"
    return _forensic(e, "scaled-features", slots, title, fixes.SCALED)


def permuted_features(e: Evidence) -> list[Finding | Gap]:
    """Blocks of the hidden dimension in another order."""
    slots = [slot for slot in e.wiring.slots if slot.how == "blocks"]
    title = f"Slots {_slots(slots)} hold the right state with blocks of the hidden dimension in another order"
    return _forensic(e, "permuted-features", slots, title, fixes.PERMUTED)


def precision_loss(e: Evidence) -> list[Finding | Gap]:
    """The right states, rightly placed, with more noise than rounding."""
    w = e.wiring
    rightly = w.slots and all(slot.how == "match" for slot in w.slots) and w.served == w.trained
    errors = {slot.slot: slot.numbers["relative_error"] for slot in w.slots}
    if not rightly or e.features["lag"] or max(errors.values()) < QUANTISED or drifts(e):
        return []
    title = f"Serving features equal the training features only to {max(errors.values()):.1%}: more than bf16 rounding"
    evidence = {"relative_error": list(errors.values()), **triples(e, w.served), **accept_lengths(e)}
    return [Finding("precision-loss", "error" if feature_loss_shown(e) else "info", title, evidence, fixes.PRECISION)]


def drifting_features(e: Evidence) -> list[Finding | Gap]:
    """Right up to a position and wrong after it, or the reverse: a chunk or cache boundary."""
    found = drifts(e)
    if not found:
        return []
    first = min(found.values(), key=lambda d: d["position"])
    side = "from" if first["after"] > first["before"] else "before"
    title = f"Serving features differ from training {side} position {first['position']} on, in slots {listed(found)}"
    evidence = {"by_slot": [{"slot": slot, **drift} for slot, drift in found.items()], **accept_lengths(e)}
    return [Finding("drifting-features", feature_severity(e), title, evidence, fixes.DRIFT)]


def drifts(e: Evidence) -> dict[int, dict[str, Any]]:
    """Slot -> its break, for the slots that feed fc and have one."""
    fed, found = {slot.slot for slot in e.wiring.slots}, {}
    for each in (e.features or {}).get("forensics", ()):
        drift = each.get("drift")
        if each["serving_slot"] not in fed or drift is None or min(drift["rows"]) < 16:
            continue
        low, high = sorted((drift["before"], drift["after"]))
        if low < DRIFT <= high and high >= DRIFT_RATIO * low:
            found[each["serving_slot"]] = drift
    return found


def _slots(slots: Sequence[Slot]) -> str:
    return listed(slot.slot for slot in slots)


def _forensic(e: Evidence, name: str, slots: Sequence[Slot], title: str, fix: str) -> list[Finding | Gap]:
    if not slots:
        return []
    evidence = {"slots": [{"slot": s.slot, "state": s.state, **s.numbers} for s in slots], **accept_lengths(e)}
    return [Finding(name, feature_severity(e), title, evidence, fix)]
