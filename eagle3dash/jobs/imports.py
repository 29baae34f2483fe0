"""Bringing files in: read them in the sandbox, put them into the store, in one transaction or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eagle3dash import formats
from eagle3dash.errors import NotFound
from eagle3dash.jobs import agreement
from eagle3dash.jobs.selection import likely_states
from eagle3dash.records import Capture, Progress, Run, no_progress
from eagle3dash.store import Store


def bring_in(
    store: Store,
    paths: Sequence[str | Path],
    run: str | None = None,
    role: str | None = None,
    states: Sequence[int] | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """{"run", "added": [{kind, name, sha256, known, inferred, problems, likely}]}. BadInput: nothing was stored.

    likely: the states, [{"states", "why"}], that a capture may hold which does not say; a person chooses.
    """
    before = _run(store, run)
    with store.staging() as staging:
        found = formats.read(
            [Path(path) for path in paths],
            staging,
            role=role,
            states=tuple(states) if states else None,
            width=before.drafter.record.spec.target_hidden if before and before.drafter else None,
            progress=progress,
        )
        agreement.check(before, found, _where(store, staging))
        added = store.add(run, found, staging)
    after = store.run(added[0].run)
    told = [
        {"inferred": _plain(item.inferred), "problems": list(item.problems), "likely": _likely(after, item.record)}
        for item in found
    ]
    rows = [
        {"kind": one.kind, "name": one.name, "sha256": one.sha256, "known": one.known, **more}
        for one, more in zip(added, told, strict=True)
    ]
    return {"run": added[0].run, "added": rows}


def _likely(run: Run, record: Any) -> list[dict[str, Any]]:
    found = likely_states(run, record) if isinstance(record, Capture) else []
    return [{"states": list(states), "why": why} for states, why in found]


def key(run: str | None, args: dict[str, Any]) -> str:
    """The same files for the same run, asked again while the first import is under way, are one job."""
    return hashlib.sha256(json.dumps(["import", run, args], sort_keys=True).encode()).hexdigest()


def _run(store: Store, name: str | None) -> Run | None:
    """The run as it is before the import, or None when the import will create it."""
    try:
        return store.run(name) if name is not None else None
    except NotFound:
        return None


def _where(store: Store, staging: Path) -> Callable[[str], Path]:
    """Where a tensor file lies: among those just read, else in the store."""

    def path(sha256: str) -> Path:
        new = staging / f"{sha256}.safetensors"
        return new if new.exists() else store.tensor_path(sha256)

    return path


def _plain(inferred: Sequence[Any]) -> list[dict[str, str]]:
    return [{"field": item.field, "value": item.value, "why": item.why} for item in inferred]
