"""From evidence to a verdict: the four numbers, every check, one sentence, and what could not be checked.

Faults stack: every check is made, whatever another found. Findings are told by severity, then nearest cause first. A
symptom that a cause explains is no second error, and one that the drafter itself explains is none at all.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from eagle3dash.analysis.changes import by_capture
from eagle3dash.analysis.findings import fixes, refused
from eagle3dash.analysis.findings.confidence import confidence
from eagle3dash.analysis.findings.drops import acceptance, drops
from eagle3dash.analysis.findings.evidence import Check, Evidence
from eagle3dash.analysis.findings.lengths import Length
from eagle3dash.analysis.findings.misread import CAUSES, FEEDS
from eagle3dash.analysis.findings.registry import CHECKS, lacking
from eagle3dash.analysis.findings.training import agrees
from eagle3dash.records import Finding, Gap, to_json

SYMPTOMS = {"dead-acceptance", "position-cliff"}  # what a log shows, whatever the cause
EXPLAINS = {  # a loss, and the causes that name it when a replay shows them
    "later-steps-loss": {"wrong-feedback-norm"},
    "engine-loss": {"later-steps-loss", *(CAUSES[switch][0] for switch in CAUSES if switch not in FEEDS)},
}
SERVED = ("accept_length", "low", "high", "rounds", "survival", "alpha", "histogram", "steps", "source", "label")
ORDER = {"error": 0, "warning": 1, "info": 2}


def diagnose(e: Evidence) -> dict[str, Any]:
    """The `diagnose` document, with "verdict", "drops", "changes", "acceptance", "checked", "notes", "wiring", "lengths".

    "changes": by capture, the rows of `analysis.changes` in order, the drafter as it is among them."""
    told = {check: _made(check, e) for check in CHECKS}
    findings = _weighed([each for found in told.values() for each in found if isinstance(each, Finding)])
    checked = [_outcome(check, found, findings) for check, found in told.items()]
    return {
        "verdict": verdict(e, findings),
        "numbers": numbers(e),
        "drops": drops(e, findings),
        "served": e.served and {name: e.served[name] for name in SERVED},
        "changes": by_capture(e.changes, e.sweep, e.wiring.declared, e.wiring.served),
        "acceptance": acceptance(e),
        "steps": e.steps,
        "findings": [to_json(finding) | {"confidence": confidence(e, finding)} for finding in findings],
        "could_not_check": [{"id": c["id"], "needs": c["needs"]} for c in checked if c["status"] == "could not check"],
        "checked": checked,
        "notes": notes(e),
        "wiring": _wiring(e),
        "lengths": {name: length.told() for name, length in _lengths(e).items() if length is not None},
    }


def _made(check: Check, e: Evidence) -> list[Finding | Gap]:
    """What a check finds, what it needs, or that a file was refused for what it looks for."""
    needs = lacking(check, e)
    return refused.told(e, check.id) or ([Gap(check.id, needs)] if needs else check.function(e))


def _outcome(check: Check, told: list[Finding | Gap], findings: list[Finding]) -> dict[str, Any]:
    """status: failed, noted (worth knowing only), passed or could not check; needs: what would let it be made."""
    needs = next((each.needs for each in told if isinstance(each, Gap)), None)
    severities = {finding.severity for finding in findings if finding.id == check.id}
    status = "failed" if severities - {"info"} else "noted" if severities else "could not check" if needs else "passed"
    return {"id": check.id, "family": check.family, "looks_at": check.looks_at, "status": status, "needs": needs}


def numbers(e: Evidence) -> dict[str, float | None]:
    """The four numbers (and the step from per row to per round) on K = steps; None: no data."""
    values = {name: length.value if length is not None else None for name, length in _lengths(e).items()}
    return {"expected": e.expected["accept_length"] if e.expected else None} | values


def _lengths(e: Evidence) -> dict[str, Length | None]:
    return {
        "replayed_training_rows": e.training_rows,
        "replayed_training": e.training_length,
        "replayed_serving": e.serving_length,
        "served": e.served_length,
    }


def _weighed(findings: list[Finding]) -> list[Finding]:
    """Symptoms step back behind causes; then by severity, in the order of the registry."""
    errors = {f.id for f in findings if f.severity == "error"}
    explained = bool(errors - SYMPTOMS) or any(f.id == "drafter-weak" for f in findings)
    unlike = any(f.id == "off-distribution" for f in findings)
    weighed = []
    for finding in findings:
        symptom = explained if finding.id in SYMPTOMS else unlike and _of_other_texts(finding)
        if symptom and finding.severity != "info":
            finding = dataclasses.replace(finding, severity="info", fix=fixes.EXPLAINED)
        elif finding.severity == "error" and errors & EXPLAINS.get(finding.id, set()):
            finding = dataclasses.replace(finding, severity="warning")
        elif finding.fix == fixes.WEAK and any(other.severity != "info" for other in findings):
            finding = dataclasses.replace(finding, fix=fixes.WEAK_TOO)
        weighed.append(finding)
    return sorted(weighed, key=lambda finding: ORDER[finding.severity])


def _of_other_texts(finding: Finding) -> bool:
    """Token ids differ, and no answers are the same: the captures may never have been meant to be of one text."""
    return finding.id == "tokens-differ" and not finding.evidence["same_answers"]


# ---- words ---------------------------------------------------------------------------------------------------------


def verdict(e: Evidence, findings: list[Finding]) -> str:
    """One sentence for a person, with the numbers that carry it."""
    worst = findings[0] if findings and findings[0].severity != "info" else None
    if worst is not None and worst.severity == "error":
        return f"{worst.title}{_cost(e)}."
    if worst is not None:
        return f"{worst.title}{_rest(e, worst)}."
    if e.training_length is None and e.serving_length is None:
        nowhere = "where tokens are lost cannot be said from these files"
        if e.served_length is None:
            return f"{nowhere[0].upper()}{nowhere[1:]}. {_first_gap(e)}"
        return f"The server reports an accept length of {e.served_length.text()}; {nowhere}. {_first_gap(e)}"
    if not agrees(e):
        return f"Tokens are lost{_cost(e)}, and these files do not say where. {_first_gap(e)}"
    if e.serving_length is None or e.served_length is None:
        return f"No fault found in what there is{_cost(e)}. {_first_gap(e)}"
    weak = next((f for f in findings if f.id == "drafter-weak"), None)
    if weak is not None:
        return f"No mismatch between training and serving{_cost(e)}. {weak.title}."
    return f"Healthy: the server accepts what the drafter can give{_cost(e)}."


def _rest(e: Evidence, worst: Finding) -> str:
    """Whether a warning is all there is: what a log shows is a loss already, whatever its cause."""
    losses = [loss for loss in (e.feature_loss, e.engine_loss) if loss is not None]
    in_log = any(check.id == worst.id and check.family == "engine" for check in CHECKS)
    if in_log or any(loss.shown for loss in losses):
        return _cost(e)
    return f"{_cost(e)}. It is not shown to cost acceptance now" if losses else _cost(e)


def _cost(e: Evidence) -> str:
    told = [length for length in (e.training_length, e.serving_length, e.served_length) if length is not None]
    text = ", ".join(f"{length.value:.2f} {length.source}" for length in told)
    return f" (accept length {text})" if told else ""


def _first_gap(e: Evidence) -> str:
    needs = next((needs for check in CHECKS if (needs := lacking(check, e))), None)
    return "" if needs is None else f"To find out: {needs.rstrip('.')}."


def notes(e: Evidence) -> list[str]:
    """How to read the numbers."""
    told = [f"All accept lengths are for K = {e.steps} drafted tokens and count the bonus token."]
    rows, rounds = e.training_rows, e.training_length
    if rows is not None and rounds is not None:
        told.append(
            f"From {rows.value:.2f} per row to {rounds.value:.2f} per round is no loss: a server starts fewer rounds in "
            "easy stretches, which it passes in long strides."
        )
    if e.expected:
        told.append(f"Expected: {e.expected['label']}.")
    if e.served:
        told.append(f"Served: {e.served['label']}.")
        if e.served_length is None:
            told.append(f"The server drafts {e.served['steps']} tokens a round: its number can't be had for K = {e.steps}.")
    rule = acceptance(e)
    if e.served and e.serving_length and rule["temperature"] != 0.0:
        known = f"It is {rule['temperature']:g} here." if rule["temperature"] else "It is not stated here."
        told.append(f"Replays are greedy; at a sampling temperature a server accepts less. {known}")
    if (e.wiring.trained_replay or {}).get("small_sample"):
        told.append("The replays rest on few rows: their intervals are rough.")
    return told


def _wiring(e: Evidence) -> dict[str, Any]:
    w = e.wiring
    return {
        "trained_states": list(w.trained) if w.trained else None,
        "trained_because": w.trained_why,
        "served_states": list(w.served) if w.served else None,
        "served_because": w.served_why,
        "declared_states": list(w.declared) if w.declared else None,
        "slots": [{"slot": s.slot, "state": s.state, "how": s.how, **s.numbers} for s in w.slots],
    }
