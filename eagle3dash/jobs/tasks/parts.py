"""The questions on which another question rests: answered before, or answered here and handed back to be kept.

A part that fails becomes a gap, "could not check", and never spoils the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eagle3dash.errors import Cancelled, Eagle3Error
from eagle3dash.jobs.answers import Answer
from eagle3dash.records import Progress

Task = Callable[[dict[str, Any], Progress, str], Answer]


class Gathering:
    """Answers the parts of one payload, one after another. `tasks`: what answers a kind of question."""

    def __init__(self, payload: dict[str, Any], tasks: Mapping[str, Task], progress: Progress, device: str):
        self._payload, self._tasks, self._progress, self._device = payload, tasks, progress, device
        self._known: dict[str, dict[str, Any]] = dict(payload.get("known", {}))
        self.documents: dict[str, dict[str, Any]] = {}
        self.gaps: dict[str, dict[str, Any]] = dict(payload.get("gaps", {}))
        self.made: list[Answer] = []
        self.finished, self.parts = 0, len(payload.get("parts", {})) + 1

    def answer(self, name: str, part: dict[str, Any]) -> None:
        """Puts the document of a part under `name`, or a gap."""
        known = self._known.get(part["key"])
        if known is None:
            known = self._ask(name, part)
        if known is not None:
            self.documents[name] = known
        self.finished += 1

    def _ask(self, name: str, part: dict[str, Any]) -> dict[str, Any] | None:
        asked = {**part, "paths": self._payload["paths"], "known": self._known}
        try:
            found = self._tasks[part["kind"]](asked, self._share, self._device)
        except Cancelled:
            raise
        except Eagle3Error as error:
            self.gaps[name] = {"message": str(error), "needs": getattr(error, "needs", None)}
            return None
        for answer in found.flat():
            self.made.append(answer)
            self._known[answer.key] = answer.document
        return found.document

    def _share(self, done: float, total: float, message: str) -> None:
        within = min(done / total, 1.0) if total else 0.0
        self._progress(min(self.finished + within, self.parts), self.parts, message)
