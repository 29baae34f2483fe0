"""The drops between neighbours of the four numbers: how much, which finding explains it, and what stays unexplained.

All numbers are on one K and one rule of acceptance (`acceptance`); what differs from it at the server is said. A finding
explains a drop only where its fault acts there; its size is the replay of the served states on training features where
that is known, else the whole drop is its. Knows neither replays nor pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eagle3dash.analysis.findings import lengths
from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.lengths import Length, Loss
from eagle3dash.analysis.findings.registry import CHECKS
from eagle3dash.records import Finding

COUNTING = "replayed_training"  # the number that differs from the one before by the way of counting only
REACHES = {  # family of a fault -> the numbers below the drops that it can cause
    "training": ("replayed_training_rows",),
    "drafter file": ("replayed_training_rows", "served"),
    "features": ("replayed_serving",),
    "engine": ("served",),
}
ELSEWHERE = {"not-portable": ("served",), "low-vocab-coverage": ("replayed_training_rows",)}
NO_CAUSE = {"metric-definition", "speed-not-acceptance", "config-contradicts-weights", "unused-weights"}
NO_CAUSE |= {"dead-acceptance", "pinned-acceptance", "position-cliff", "engine-loss"}  # the drop itself in other words
ORDER = ("expected", "replayed_training_rows", "replayed_training", "replayed_serving", "served")
ONLY = {"expected": ("replayed_training_rows",), "replayed_training_rows": (COUNTING,)}  # per row: to be compared with
IMPOSSIBLE = 0.3  # share of the served draft tokens above a replay, that other texts do not explain
LEAST = 0.005  # tokens: a smaller drop is 0.00 to a reader
WHY_COUNTING = "no fault: a server starts fewer rounds in easy stretches, which it passes in long strides"


def drops(e: Evidence, findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """One entry for each two neighbours that are known: from, to, tokens (lost; negative: gained), kind (counting, loss,
    gain, none), shown (more than chance), explained_by (ids of errors), may_explain (ids of warnings), explained and
    unexplained (tokens), why (a sentence)."""
    known = {"expected": _expected(e), COUNTING: e.training_length, "replayed_training_rows": e.training_rows}
    known |= {"replayed_serving": e.serving_length, "served": e.served_length}
    names = [name for name in ORDER if known[name] is not None]
    return [
        _drop(e, findings, before, after, (known[before], known[after]))
        for before, after in zip(names, names[1:], strict=False)
        if after in ONLY.get(before, (after,))
    ]


def acceptance(e: Evidence) -> dict[str, Any]:
    """The rule that all bars share, and what is known of the server's: temperature (None: not stated), its source, text."""
    logged = e.served["settings"] if e.served else {}
    set_by_hand = e.settings.get("temperature")
    temperature = logged.get("temperature") if set_by_hand is None else set_by_hand
    source = None if temperature is None else "the run's settings" if set_by_hand is not None else "the log"
    told = "not stated" if temperature is None else f"{float(temperature):g} (by {source})"
    threshold = min((logged[n] for n in _THRESHOLDS if isinstance(logged.get(n), (int, float))), default=None)
    relaxed = f"; it accepts from a probability of {threshold:g} on" if threshold is not None and threshold < 1 else ""
    return {
        "steps": e.steps,
        "rule": "a drafted token is accepted when it is the target's own next token (greedy)",
        "temperature": None if temperature is None else float(temperature),
        "temperature_from": source,
        "threshold": threshold,
        "text": f"K = {e.steps} and greedy acceptance on every bar; the server's sampling temperature: {told}{relaxed}",
    }


_THRESHOLDS = ("accept_threshold_single", "accept_threshold_acc")


def _expected(e: Evidence) -> Length | None:
    if e.expected is None:
        return None
    value = e.expected["accept_length"]
    return Length(value, value, value, None, "rows", "expected")


def _drop(e: Evidence, findings: Sequence[Finding], before: str, after: str, pair: tuple[Length, Length]) -> dict[str, Any]:
    tokens = pair[0].value - pair[1].value
    told = {"from": before, "to": after, "tokens": tokens, "explained_by": [], "may_explain": []}
    told |= {"explained": 0.0, "unexplained": 0.0}
    if after == COUNTING and before == "replayed_training_rows":
        return told | {"kind": "counting", "shown": True, "explained": tokens, "why": WHY_COUNTING}
    if tokens < LEAST:
        return told | {"kind": "gain" if tokens <= -LEAST else "none", "shown": False, "why": _gain(pair, after)}
    same_rows = (before, after) == (COUNTING, "replayed_serving") and e.same_rows
    loss = lengths.loss(*pair, same_rows)
    fits = _fits(findings, before, after)
    causes = [f for f in fits if f.severity == "error"] if loss.shown else []
    size, by = _size(e, causes, pair[0].value, tokens)
    rest = tokens - size
    told |= {"explained_by": [f.id for f in causes], "may_explain": [f.id for f in fits if f.severity == "warning"]}
    told |= {"explained": size, "unexplained": rest if rest >= LEAST else 0.0}
    return told | {"kind": "loss", "shown": loss.shown, "why": _why(loss, told, by)}


def _gain(pair: tuple[Length, Length], after: str) -> str:
    """An engine can lose what features give, and add nothing to it."""
    if after != "served" or not lengths.costs(pair[1].value, pair[0].value, IMPOSSIBLE):
        return "nothing is lost here"
    return (
        "a server can't accept more than its features give: log and capture are not of the same server or traffic, or the "
        "drafter's file is read otherwise than there"
    )


def _fits(findings: Sequence[Finding], before: str, after: str) -> list[Finding]:
    """Findings whose fault acts between the two numbers."""
    family = {check.id: check.family for check in CHECKS}
    between = set(ORDER[ORDER.index(before) + 1 : ORDER.index(after) + 1])
    return [
        finding
        for finding in findings
        if finding.id not in NO_CAUSE
        and between.intersection(ELSEWHERE.get(finding.id) or REACHES.get(family.get(finding.id, ""), ()))
    ]


def _size(e: Evidence, causes: Sequence[Finding], before: float, tokens: float) -> tuple[float, str]:
    """(tokens that the causes explain, how that is known)."""
    if not causes:
        return 0.0, ""
    others = [f for f in causes if f.id not in ("wrong-aux-states", "aux-order")]
    fed = e.wiring.served or e.wiring.declared
    row = next((r for r in (e.sweep or {}).get("rows", ()) if fed is not None and tuple(r["states"]) == tuple(fed)), None)
    if len(causes) == 1 and (undone := _undone(e, causes[0].id)) is not None:
        return min(max(undone[1], 0.0), tokens), f"on serving features {undone[0]} gives that much back"
    if others or row is None or row.get("accept_length") is None:
        whose = "its own share was" if len(causes) == 1 else "their shares were"
        return tokens, f"{whose} not measured apart"
    size = min(max(before - row["accept_length"], 0.0), tokens)
    return size, f"the states it is served, replayed on training features, give {row['accept_length']:.2f}"


UNDONE = {
    "shifted-features": "lag",
    "scaled-features": "scales",
}  # what a change of the features sets, to take a fault back


def _undone(e: Evidence, identity: str) -> tuple[str, float] | None:
    """The change that takes a fault of the serving features back, and what it gains per round."""
    found = e.changes.get("serving")
    rows = [row for row in (found or {}).get("rows", ()) if set(row["sets"]) == {UNDONE.get(identity)}]
    best = max(
        (row for row in rows if row["accept_length"] is not None), key=lambda row: row["accept_length"], default=None
    )
    if best is None or found["baseline"]["accept_length"] is None:
        return None
    return best["change"], best["accept_length"] - found["baseline"]["accept_length"]


def _why(loss: Loss, told: dict[str, Any], by: str) -> str:
    if told["explained_by"]:
        rest = f"; {told['unexplained']:.2f} unexplained" if told["unexplained"] else ""
        return f"{', '.join(told['explained_by'])} explains {told['explained']:.2f} ({by}){rest}"
    maybe = f" ({', '.join(told['may_explain'])} may be why)" if told["may_explain"] else ""
    if not loss.shown:
        return f"{told['unexplained']:.2f} unexplained, and no more than chance or rounding does to two such numbers{maybe}"
    return f"{told['unexplained']:.2f} unexplained: no error was found that acts here{maybe}"
