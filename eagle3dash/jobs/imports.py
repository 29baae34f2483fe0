"""Bringing files in: read them in the sandbox, put them into the store, in one transaction or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eagle3dash import formats
from eagle3dash.errors import NotFound
from eagle3dash.records import Progress, no_progress
from eagle3dash.store import Store


def bring_in(
    store: Store,
    paths: Sequence[str | Path],
    run: str | None = None,
    role: str | None = None,
    states: Sequence[int] | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """{"run", "added": [{kind, name, sha256, known, inferred, problems}]}. BadInput: nothing was stored."""
    with store.staging() as staging:
        found = formats.read(
            [Path(path) for path in paths],
            staging,
            role=role,
            states=tuple(states) if states else None,
            width=_width(store, run),
            progress=progress,
        )
        added = store.add(run, found, staging)
    told = [{"inferred": _plain(item.inferred), "problems": list(item.problems)} for item in found]
    rows = [
        {"kind": one.kind, "name": one.name, "sha256": one.sha256, "known": one.known, **more}
        for one, more in zip(added, told, strict=True)
    ]
    return {"run": added[0].run, "added": rows}


def key(run: str | None, args: dict[str, Any]) -> str:
    """The same files for the same run, asked again while the first import is under way, are one job."""
    return hashlib.sha256(json.dumps(["import", run, args], sort_keys=True).encode()).hexdigest()


def _width(store: Store, run: str | None) -> int | None:
    """Ht, as the run's drafter has it: needed to split states that were stored side by side."""
    known = None
    if run is not None:
        try:
            known = store.run(run).drafter
        except NotFound:
            return None  # the import will create it
    return known.record.spec.target_hidden if known else None


def _plain(inferred: Sequence[Any]) -> list[dict[str, str]]:
    return [{"field": item.field, "value": item.value, "why": item.why} for item in inferred]
