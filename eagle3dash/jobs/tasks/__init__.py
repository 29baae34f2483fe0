"""One module a kind of question. `run` takes a payload and gives the answer; it needs the tensor files, and no store."""

from __future__ import annotations

from typing import Any

from eagle3dash.jobs.answers import Answer
from eagle3dash.jobs.tasks import changes, diagnose, features, replay, sweep
from eagle3dash.records import Progress, no_progress

TASKS = {
    "replay": replay.run,
    "sweep": sweep.run,
    "features": features.run,
    "changes": changes.run,
    "diagnose": diagnose.run,
}


def run(payload: dict[str, Any], progress: Progress = no_progress, device: str = "cpu") -> Answer:
    """Answers one question on one device. Raises Eagle3Error for what the files cannot answer."""
    return TASKS[payload["kind"]](payload, progress, device)
