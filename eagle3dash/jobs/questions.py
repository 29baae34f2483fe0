"""Questions about a run: what they need, their identity, and the answer in this process.

A question becomes a payload (see `payloads`): records and the absolute paths of the tensor files, all that a worker needs.
Its key hashes the content of the files used, the settings and the code that computes (not names, not runs), so the same
question is answered once and a change of the code never serves old numbers (ARCHITECTURE.md, the way of the data).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from eagle3dash.errors import BadInput
from eagle3dash.jobs import payloads
from eagle3dash.jobs.answers import Answer
from eagle3dash.jobs.child import WAITING
from eagle3dash.jobs.selection import read_as
from eagle3dash.records import Progress, no_progress
from eagle3dash.store import Store

KINDS = {
    "replay": payloads.replay,
    "sweep": payloads.sweep,
    "features": payloads.features,
    "changes": payloads.changes,
    "diagnose": payloads.diagnose,
}
ARGUMENTS = {
    "replay": {"capture", "states", "steps", "reading"},
    "sweep": {"capture", "steps", "reading"},
    "features": set(),
    "changes": {"capture", "steps", "reading"},
    "diagnose": {"steps", "reading"},
}


@dataclass(frozen=True)
class Question:
    """`args` as on the command line: capture (training|serving), states, steps, reading. Those left out take their
    defaults."""

    kind: str
    run: str
    args: dict[str, Any] = field(default_factory=dict)


def payload(store: Store, question: Question) -> dict[str, Any]:
    """All that a task needs to answer. Missing, BadInput or NotFound when the run cannot answer it."""
    made = _asked(store, question)
    paths = {sha: str(store.tensor_path(sha)) for sha in _tensors(made["imports"])}
    return refreshed(store, {**made, "paths": paths})


def key(store: Store, question: Question) -> str:
    """The identity of the answer. Raises as `payload` does."""
    return _asked(store, question)["key"]


def cached(store: Store, question: Question) -> dict[str, Any] | None:
    """The document, if the question was answered before."""
    return store.result(key(store, question))


def _asked(store: Store, question: Question) -> dict[str, Any]:
    if question.kind not in KINDS:
        raise BadInput(f"There is no question {question.kind!r}; there are {', '.join(KINDS)}.")
    args = {name: value for name, value in question.args.items() if value is not None}
    unknown = set(args) - ARGUMENTS[question.kind]
    if unknown:
        raise BadInput(f"{question.kind} takes no {', '.join(sorted(unknown))}.")
    run = read_as(store.run(question.run), args.pop("reading", None))
    return KINDS[question.kind](run, args)


def refreshed(store: Store, made: dict[str, Any]) -> dict[str, Any]:
    """The payload with the answers that the store has by now to the questions a diagnosis rests on, by key."""
    known = {part["key"]: store.result(part["key"]) for part in _parts(made)}
    return {**made, "known": {name: document for name, document in known.items() if document is not None}}


def _parts(made: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts, and the parts of parts."""
    for part in made.get("parts", {}).values():
        yield part
        yield from _parts(part)


def answer(store: Store, question: Question, progress: Progress = no_progress, device: str = "cpu") -> dict[str, Any]:
    """The document: from the store, or computed in this process and then kept."""
    asked = payload(store, question)
    known = store.result(asked["key"])
    if known is not None:
        return known
    os.environ.update({**WAITING, **os.environ})  # read when torch is loaded
    from eagle3dash.jobs import tasks  # here, as that takes seconds and a dashboard never computes
    from eagle3dash.jobs.tasks.shortage import shortage_told

    with shortage_told(device):
        found = tasks.run(asked, progress, device)
    keep(store, question.run, list(found.flat()))
    return store.result(asked["key"])


def keep(store: Store, run: str, answers: list[Answer]) -> None:
    """Stores answers and their frames, each in its own transaction; those already known are left alone."""
    for each in answers:
        if store.result(each.key) is None:
            store.add_result(each.key, each.kind, run, each.document, each.frames)


def _tensors(imports: dict[str, Any]) -> set[str]:
    return {sha for name, item in imports.items() if name != "logs" for sha in item["tensors"]}
