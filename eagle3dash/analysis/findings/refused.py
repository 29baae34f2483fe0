"""Files that were given and that nobody can use: rows that no target computes, weights that nobody can supply.

Such a file is left out, and everything else is looked at without it. Rows are read by `formats.captures`, weights by
`formats.drafters`; what they refuse is told here.
"""

from __future__ import annotations

from eagle3dash.analysis.findings import fixes
from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.told import listed
from eagle3dash.formats.captures import ZEROS
from eagle3dash.records import BadRows, Finding, Refusal, Severity

SHOWN = 3  # names of weights in a title


def told(e: Evidence, identity: str) -> list[Finding]:
    """What was refused for the fault that a check of this id looks for."""
    found = []
    if identity == "corrupt-features":
        found = [_rows(role, e.refused[role]) for role in ("serving", "training") if role in e.refused]
    elif identity == "missing-weights" and "drafter" in e.refused:
        found = [_weights(e.refused["drafter"])]
    return found


def _rows(role: str, refusal: Refusal) -> Finding:
    whole = [each for each in refusal.rows if each.count == each.rows]
    worst = whole or sorted(refusal.rows, key=lambda each: -each.count)
    first = worst[0]
    same = [each.slot for each in refusal.rows if each.holds == first.holds and (each.count == each.rows) == bool(whole)]
    where = f"slot{'s' * (len(same) > 1)} {listed(same)}"
    share = "all" if whole else f"{first.count} of {first.rows}"
    title = f"{share[0].upper()}{share[1:]} rows of {where} hold {first.holds} in the {role} capture ({refusal.file})"
    severity: Severity = "error" if role == "serving" else "warning"
    rows = [
        {"slot": e.slot, "holds": e.holds, "first_row": e.first, "bad_rows": e.count, "of": e.rows} for e in refusal.rows
    ]
    evidence = {"file": refusal.file, "capture": role, "left_out": True, "rows_by_slot": rows}
    return Finding("corrupt-features", severity, title, evidence, _fix(role, first, bool(whole)))


def _fix(role: str, first: BadRows, whole: bool) -> str:
    zeros = fixes.NOTHING_CAPTURED if whole else fixes.NOT_WRITTEN
    why = zeros if first.holds == ZEROS else fixes.NOT_FINITE
    again = "Capture again." if role == "serving" else "Capture again, and don't train on this."
    return f"{why} {again}"


def _weights(refusal: Refusal) -> Finding:
    lacks = refusal.lacks
    shown = ", ".join(lacks[:SHOWN]) + (f" and {len(lacks) - SHOWN} more" if len(lacks) > SHOWN else "")
    title = f"The drafter's file lacks {shown}, without which it can't run"
    return Finding(
        "missing-weights", "error", title, {"file": refusal.file, "lacks": list(lacks), "left_out": True}, fixes.MISSING
    )
