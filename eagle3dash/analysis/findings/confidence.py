"""How sure a finding is: what it rests on, and what would confirm it.

shown: the loss was measured where this fault acts. likely: the fault was seen, or follows from the files; its cost was not
measured. fact: worth knowing, blamed for nothing.
"""

from __future__ import annotations

from typing import Any

from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.registry import CHECKS, lacking
from eagle3dash.analysis.findings.told import feature_loss_shown
from eagle3dash.records import Finding

LEVELS = {"error": "shown", "warning": "likely", "info": "fact"}
FAMILY = {check.id: check.family for check in CHECKS}
BY_ID = {check.id: check for check in CHECKS}
DECLARED = "a serving capture: only features show what is really fed"
SAME_TRAFFIC = "a serving capture of the very requests that the log counts"


def confidence(e: Evidence, finding: Finding) -> dict[str, Any]:
    """level, because (what it rests on), confirm (what would make it surer; None: nothing is missing)."""
    if finding.evidence.get("left_out"):
        return {"level": LEVELS[finding.severity], "because": "the file itself, read row by row", "confirm": None}
    because, confirm = {
        "features": _features,
        "drafter file": _drafter_file,
        "engine": _engine,
        "training": _training,
    }[FAMILY[finding.id]](e, finding)
    return {"level": LEVELS[finding.severity], "because": because, "confirm": confirm}


def _features(e: Evidence, finding: Finding) -> tuple[str, str | None]:
    if not (e.features or {}).get("aligned_tokens"):
        if finding.id == "tokens-differ":
            return "token ids of both captures", None
        return "the config, and a replay of every combination on training features", DECLARED
    seen = f"{e.features['aligned_tokens']:,} tokens that both captures share, compared state by state"
    if feature_loss_shown(e):
        return f"{seen}; replays of both captures differ by more than chance", None
    if e.feature_loss is None:
        return f"{seen}; its cost was not measured", _missing(e, "later-steps-loss")
    return f"{seen}; the loss is within chance ({max(e.feature_loss.share, 0.0):.0%} of the accepted tokens)", "more texts"


def _drafter_file(e: Evidence, finding: Finding) -> tuple[str, str | None]:
    told = finding.evidence
    if "after" in told:
        return f"the drafter replayed with that alone changed, on the same {told['after']['rows']:,} rows", None
    if "replay" in told:
        return "a replay with that alone changed accepts, step by step, what the server reports", SAME_TRAFFIC
    missing = _missing(e, "wrong-rope") if not e.changes else None
    return "the file itself, without a replay that shows the cost", missing


def _engine(e: Evidence, finding: Finding) -> tuple[str, str | None]:
    rounds = f"{e.served['rounds']:,} served rounds" if e.served and e.served["rounds"] else "the log"
    if e.serving_length is None:
        return f"{rounds} alone", _missing(e, "engine-loss")
    if finding.id in ("engine-loss", "later-steps-loss"):
        return f"{rounds} against {e.serving_length.n or 0:,} replayed on serving features", SAME_TRAFFIC
    return rounds, None


def _training(e: Evidence, finding: Finding) -> tuple[str, str | None]:
    rows = e.training_rows.n if e.training_rows else None
    if finding.id != "drafter-weak" or rows is None:
        return "the captures' token ids and masks", None
    return f"{rows:,} rows of the training capture replayed", _missing(e, "engine-loss")


def _missing(e: Evidence, check: str) -> str | None:
    return lacking(BY_ID[check], e)
