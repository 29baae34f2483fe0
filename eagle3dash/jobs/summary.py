"""A run in a few words, for lists: what it has and what it lacks."""

from __future__ import annotations

from typing import Any

from eagle3dash.records import Import, Run


def summary(run: Run) -> dict[str, Any]:
    """Names of the files in use by kind (None: not there), and the run's settings."""
    captures = {"training": run.capture("training"), "serving": run.capture("serving")}
    files = {"drafter": run.drafter, **captures, "target": run.target}
    return {
        "name": run.name,
        "created": run.created,
        **{kind: _name(item) for kind, item in files.items()},
        "logs": [log.name for log in run.logs],
        "settings": run.settings,
        "tags": list(run.tags),
        "notes": run.notes,
    }


def _name(item: Import | None) -> str | None:
    return item.name if item else None
