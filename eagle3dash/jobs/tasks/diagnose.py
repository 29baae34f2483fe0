"""Diagnose: gathers what a run has to show (replays, sweep, features, changes, logs) and lets the findings judge it.

Parts that were answered before are used as they are, the others are computed here and handed back to be kept. A part
that fails becomes a gap, "could not check", and never spoils the rest.
"""

from __future__ import annotations

from typing import Any

from eagle3dash.analysis.findings import Evidence, diagnose
from eagle3dash.jobs import payloads
from eagle3dash.jobs.answers import Answer
from eagle3dash.jobs.payloads import ROLES
from eagle3dash.jobs.tasks import changes, features, replay, sweep
from eagle3dash.jobs.tasks.parts import Gathering
from eagle3dash.jobs.tasks.texts import texts
from eagle3dash.records import Import, Progress, Refusal, from_json

TASKS = {"replay": replay.run, "sweep": sweep.run, "features": features.run, "changes": changes.run}


def run(payload: dict[str, Any], progress: Progress, device: str) -> Answer:
    """The `diagnose` document; its parts are the answers that were found on the way."""
    gathering = Gathering(payload, TASKS, progress, device)
    for name, part in payload["parts"].items():
        gathering.answer(name, part)
    best = _best(payload, gathering.documents)
    if best is not None:
        gathering.answer("best", best)
    documents = gathering.documents
    records = {name: from_json(Import, item) for name, item in payload["imports"].items() if name != "logs"}
    evidence = Evidence(
        steps=payload["args"]["steps"],
        **records,
        logs=tuple(from_json(Import, log) for log in payload["imports"]["logs"]),
        settings=payload["settings"],
        replays={name: documents[name] for name in ("training", "serving", "best") if name in documents},
        sweep=documents.get("sweep"),
        features=documents.get("features"),
        changes={role: found for role in ROLES if (found := documents.get(f"changes of {role}"))},
        texts=texts(payload, device),
        gaps=gathering.gaps,
        refused={role: from_json(Refusal, told) for role, told in payload["settings"].get("refused", {}).items()},
    )
    reading = evidence.spec_of.reading if evidence.spec_of else None
    document = diagnose(evidence) | {"reading": reading}
    return Answer(payload["key"], "diagnose", payload["args"], document, parts=tuple(gathering.made))


def _best(payload: dict[str, Any], documents: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    """The replay of the sweep's best combination, when it is clearly better than the one the capture's format names."""
    swept, usual = documents.get("sweep"), documents.get("training")
    rows = swept["rows"] if swept else []
    if not rows or usual is None or rows[0]["states"] == usual["states"]:
        return None
    if None in (rows[0]["low"], usual["row_high"]) or rows[0]["low"] <= usual["row_high"]:
        return None
    names = payload["parts"]["sweep"]["args"]["labels"]
    return payloads.replay_of(payload["imports"], "training", rows[0]["slots"], names, payload["args"]["steps"])
