"""A run in a few words, for lists: what it has and what it lacks; and what a report says of it besides its diagnosis."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from eagle3dash import __version__
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


def about(run: Run, now: datetime) -> dict[str, Any]:
    """What a report says of the run: settings, every file with its hash, the versions that computed."""
    kinds = [(item.record.role or item.kind if item.kind == "capture" else item.kind, item) for item in run.imports]
    logs = [log.record for log in run.logs]
    known = {name: value for log in logs for name, value in log.settings.items() if not isinstance(value, (list, dict))}
    server = {"engine": next((log.engine for log in logs if log.engine), None)}
    server["version"] = next((log.version for log in logs if log.version), None)
    return {
        "run": run.name,
        "made": now.isoformat(sep=" ", timespec="minutes"),
        "settings": {**_told(run.settings), **{f"server: {name}": value for name, value in {**server, **known}.items()}},
        "notes": run.notes,
        "files": [
            {"kind": kind, "sources": [{"name": s.name, "bytes": s.bytes, "sha256": s.sha256} for s in item.sources]}
            for kind, item in kinds
        ],
        "versions": {"eagle3dash": __version__, "Python": platform.python_version(), **dict(_versions())},
    }


def _told(settings: dict[str, Any]) -> dict[str, Any]:
    """Without the files that were refused: those are findings."""
    return {name: value for name, value in settings.items() if name != "refused"}


def _versions() -> Iterator[tuple[str, str]]:
    for package in ("torch", "numpy", "safetensors", "plotly"):
        with suppress(PackageNotFoundError):
            yield package, version(package)


def _name(item: Import | None) -> str | None:
    return item.name if item else None
