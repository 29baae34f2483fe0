"""The server feeds the right states, but not as training did: moved, changed, noisy, torn, or of other tokens.

Severity: error where acceptance is lost between replayed training features and replayed serving features (or, without a
serving replay, what was served) beyond noise; else warning. What each fault leaves behind is in `analysis.forensics`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from eagle3dash.analysis import difference
from eagle3dash.analysis.breaks import places
from eagle3dash.analysis.findings import fixes
from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.slots import GRID
from eagle3dash.analysis.findings.told import accept_lengths, feature_loss_shown, feature_severity, listed
from eagle3dash.analysis.findings.wiring import Slot
from eagle3dash.records import Finding, Gap, Severity

QUANTISED = 0.03  # relative error above what bf16 rounding leaves (0.005..0.015 on the demo's 30 layers)
COARSE = 0.10  # relative error that is worth a warning though it costs nothing here: targets served in fp8 are below
SCALED = 0.02  # a factor that near to 1 is none
REPEATED = 0.01  # share of rows
FIRST_ROW = 0.5  # relative error of the first row; another kernel makes it 0.01 and the demo's engines 0.007
IN_PROMPT = 0.5  # share of pairs


def corrupt_features(e: Evidence) -> list[Finding | Gap]:
    """Rows that repeat where training's do not, rows that are wrong here and there, or whole texts: a buffer that was not
    written, or not for this text."""
    found, total, repeated = e.features, e.features["aligned_tokens"], _repeated(e)
    torn, dead, first = breaks(e, "scattered", "texts"), _dead(e), _first_rows(e)
    if not (repeated or torn or dead or first):
        return []
    evidence: dict[str, Any] = {"repeated_rows": found["repeated_rows"], "aligned_tokens": total}
    evidence |= {"dead_channels": dead} if dead else {}
    evidence |= {"first_row_error": first} if first else {}
    evidence |= {"by_slot": [{"slot": slot, **torn[slot]} for slot in torn], **accept_lengths(e)}
    if repeated:
        title = f"The serving capture repeats rows in {_slots(repeated)}: one state stands for different tokens"
    elif dead:
        worst = max(dead.values(), key=lambda told: told["count"])
        span = f"{worst['count']} of {worst['of']} channels ({worst['first']} to {worst['last']})"
        title = f"{span} are zero for every token in {_slots(dead)}: a part of the state was not filled"
    elif not torn:
        title = f"The first token's row differs from training's by {max(first.values()):.0%} in {_slots(first)}"
    else:
        worst = max(torn.values(), key=lambda pattern: pattern["share"])
        where = f", all in texts {listed(worst['texts'])}" if worst["kind"] == "texts" else ""
        title = f"{worst['share']:.0%} of the rows in {_slots(torn)} are wrong{where}; the others equal training's"
    return [Finding("corrupt-features", feature_severity(e), title, evidence, fixes.REPEATED_ROWS)]


def _dead(e: Evidence) -> dict[int, dict[str, int]]:
    """Slots with channels that hold nothing."""
    return {s.slot: dead for s in e.wiring.slots if (dead := s.numbers.get("dead_channels"))}


def _first_rows(e: Evidence) -> dict[int, float]:
    """Slots whose first rows are not training's, though all others are; clipped ones are told as such."""
    known = {s.slot: s.numbers for s in e.wiring.slots if s.how in ("match", "noisy")}
    known = {slot: numbers for slot, numbers in known.items() if not (numbers.get("clipped") or numbers.get("break"))}
    errors = {slot: (numbers.get("first_row") or {}).get("relative_error") for slot, numbers in known.items()}
    return {slot: error for slot, error in errors.items() if error is not None and error >= FIRST_ROW}


def _repeated(e: Evidence) -> list[int]:
    """Slots with rows that repeat where training's do not."""
    least = max(3, REPEATED * e.features["aligned_tokens"])
    return [slot for slot, n in enumerate(e.features["repeated_rows"]) if n >= least]


def tokens_differ(e: Evidence) -> list[Finding | Gap]:
    """The captures are not of the same token ids. Answers that part ways after the prompt are no fault."""
    told = e.features.get("alignment")
    if told is None or not (told["differing_pairs"] or told["unpaired_serving"]):
        return []
    first = told["first_difference"] or {}
    keys = "aligned_tokens", "compared_tokens", "serving_tokens", "pairs", "differing_pairs", "differ_in_prompt"
    evidence = {key: told[key] for key in keys} | {"unpaired_serving": len(told["unpaired_serving"])}
    evidence |= {"same_answers": told["same_ends"], "tokens_behind_not_compared": told["tokens_behind"]}
    evidence |= difference.told(first)
    differing = told["differing_pairs"] + len(told["unpaired_serving"])
    at, what = first.get("position"), difference.OTHER.get(first.get("what"), "another prompt")
    if told["same_ends"] >= IN_PROMPT * differing:
        severity: Severity = "error" if feature_loss_shown(e) else "warning"
        if "first token" in (first["what"] or ""):
            title = f"The same texts, but {first['what']}"
        else:
            title = f"The same answers behind {what}: {difference.counted(first)}"
        return [Finding("tokens-differ", severity, title, evidence, fixes.OTHER_TOKENS)]
    if told["aligned_tokens"] == 0:
        title = "The serving capture has other token ids than the training capture, from the first token on"
        return [Finding("tokens-differ", "warning", title, evidence, fixes.OTHER_TOKENS)]
    if told["differ_in_prompt"] >= IN_PROMPT * max(1, told["pairs"]):
        named = f" ({difference.counted(first)})" if first.get("what") not in (None, "answer") else ""
        title = f"{told['differ_in_prompt']} of {told['pairs']} prompts differ between captures, the first at token {at}"
        return [Finding("tokens-differ", "warning", title + named, evidence, fixes.OTHER_TOKENS)]
    title = f"The captures' texts agree for {told['aligned_tokens']} of {told['serving_tokens']} tokens, then part ways"
    return [Finding("tokens-differ", "info", title, evidence, fixes.OTHER_ANSWERS)]


def shifted_features(e: Evidence) -> list[Finding | Gap]:
    """Features of another token than training pairs them with."""
    found, fed = e.features, [slot.slot for slot in e.wiring.slots]
    moved = {slot: found["slot_lags"][slot] for slot in fed if found["slot_lags"][slot]}
    if not moved:
        return []
    which = "all slots" if len(moved) == len(fed) else _slots(moved)
    by, tokens = (
        listed(f"{lag:+d}" for lag in sorted(set(moved.values()))),
        "token" if set(moved.values()) <= {1, -1} else "tokens",
    )
    title = f"The serving features of {which} are shifted by {by} {tokens} against training"
    evidence = {"lag": found["lag"], "slot_lags": found["slot_lags"], "relative_error_by_lag": found["lags"]}
    evidence |= accept_lengths(e)
    return [Finding("shifted-features", feature_severity(e), title, evidence, fixes.SHIFTED)]


def normed_features(e: Evidence) -> list[Finding | Gap]:
    """A norm, or its weights, between the layer and the drafter."""
    slots = [slot for slot in e.wiring.slots if slot.how in ("normed", "raw", "channel")]
    title = f"The server feeds {_slots(slots)} after a norm; training used the raw residual stream"
    if slots and all(slot.how == "raw" for slot in slots):
        title = f"The training capture holds what the server feeds in {_slots(slots)} after a norm; the server feeds it raw"
    return _forensic(e, "normed-features", slots, title, fixes.NORMED)


def missing_residual(e: Evidence) -> list[Finding | Gap]:
    """The layer's own output without the stream it is added to."""
    slots = [slot for slot in e.wiring.slots if slot.how in ("residual", "output")]
    title = f"{_verb(slots, 'holds', 'hold')} a layer's output without the residual stream it is added to"
    return _forensic(e, "missing-residual", slots, title, fixes.RESIDUAL)


def scaled_features(e: Evidence) -> list[Finding | Gap]:
    """The right direction at another scale, whatever else was done to it."""
    at = {s.slot: abs(s.numbers["weight"] - 1.0) for s in e.wiring.slots if s.how in ("scaled", "blocks")}
    slots = [s for s in e.wiring.slots if s.slot in at and at[s.slot] >= SCALED + _error(s) ** 2]  # noise shortens, too
    factors = listed(f"{slot.numbers['weight']:.3g}" for slot in slots)
    title = f"{_verb(slots, 'is', 'are')} served {factors} times as large as in training"
    return _forensic(e, "scaled-features", slots, title, fixes.SCALED)


def permuted_features(e: Evidence) -> list[Finding | Gap]:
    """Blocks of the hidden dimension in another order."""
    slots = [slot for slot in e.wiring.slots if slot.how == "blocks"]
    title = f"{_verb(slots, 'holds the right state', 'hold the right states')} with blocks of the hidden dimension in "
    title += "another order"
    return _forensic(e, "permuted-features", slots, title, fixes.PERMUTED)


def precision_loss(e: Evidence) -> list[Finding | Gap]:
    """The right states with more noise than rounding: activations, weights or caches of fewer bits."""
    clipped = [slot for slot in e.wiring.slots if slot.numbers.get("clipped")]
    if clipped:
        return [_clipped(e, clipped)]
    same = ("match", "scaled", "blocks")
    noisy = [slot for slot in e.wiring.slots if slot.how == "noisy" or (slot.how in same and _error(slot) >= QUANTISED)]
    if not noisy:
        return []
    worst, grid = max(_error(slot) for slot in noisy), [s for s in noisy if s.numbers["levels"] < GRID]
    title = f"Serving features differ from training's by {worst:.1%} in {_slots(noisy)}: more than bf16 rounding leaves"
    if grid:
        title += "; their values lie on a coarse grid"
    evidence = {"relative_error": {s.slot: _error(s) for s in e.wiring.slots}, "by_slot": _told(noisy), **accept_lengths(e)}
    severity: Severity = "error" if feature_loss_shown(e) else "warning" if worst >= COARSE else "info"
    return [Finding("precision-loss", severity, title, evidence, fixes.PRECISION)]


def _clipped(e: Evidence, slots: Sequence[Slot]) -> Finding:
    heights = listed(sorted({f"{slot.numbers['clipped']['at']:g}" for slot in slots}))
    title = f"Values are cut off at {heights} in {_slots(slots)}; training's go on above"
    evidence = {"clipped": {s.slot: s.numbers["clipped"] for s in slots}, "by_slot": _told(slots), **accept_lengths(e)}
    return Finding("precision-loss", feature_severity(e), title, evidence, fixes.CLIPPED)


def drifting_features(e: Evidence) -> list[Finding | Gap]:
    """Right up to a position and wrong after it, or the reverse, or wrong at the same place of every chunk."""
    found = {slot: d for slot, d in breaks(e, "split", "chunk").items() if d["kind"] == "split" or slot not in _repeated(e)}
    if not found:
        return []
    first = min(found.values(), key=lambda d: d.get("position", 0))
    if first["kind"] == "chunk":
        title = f"Serving features differ from training at {places(first)}"
    else:
        side = "from" if first["after"] > first["before"] else "before"
        title = f"Serving features differ from training {side} position {first['position']}"
        title += " on" if side == "from" else ""
    evidence = {"by_slot": [{"slot": slot, **drift} for slot, drift in found.items()], **accept_lengths(e)}
    return [Finding("drifting-features", feature_severity(e), f"{title}, in {_slots(found)}", evidence, fixes.DRIFT)]


def breaks(e: Evidence, *kinds: str) -> dict[int, dict[str, Any]]:
    """Slot -> where its rows are wrong, for the slots that feed fc and whose other rows are explained."""
    known = {s.slot: s.numbers.get("break") for s in e.wiring.slots if s.how not in ("unknown", "near")}
    return {slot: found for slot, found in known.items() if found and found["kind"] in kinds}


def _error(slot: Slot) -> float:
    return slot.numbers.get("error") or 0.0


def _told(slots: Sequence[Slot]) -> list[dict[str, Any]]:
    return [{"slot": s.slot, "state": s.state, "how": s.how, **s.numbers} for s in slots]


def _slots(slots: Iterable[Slot | int]) -> str:
    """slot 2; slots 0, 1."""
    numbers = [slot.slot if isinstance(slot, Slot) else slot for slot in slots]
    return f"slot{'s' * (len(numbers) != 1)} {listed(numbers)}"


def _verb(slots: Sequence[Slot], one: str, several: str) -> str:
    words = _slots(slots)
    return f"{words[0].upper()}{words[1:]} {one if len(slots) == 1 else several}"


def _forensic(e: Evidence, name: str, slots: Sequence[Slot], title: str, fix: str) -> list[Finding | Gap]:
    if not slots:
        return []
    evidence = {"slots": _told(slots), **accept_lengths(e)}
    return [Finding(name, feature_severity(e), title, evidence, fix)]
