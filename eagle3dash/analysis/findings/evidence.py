"""What a run has to show: records, and the documents of the questions that were answered about it. No judgement here.

Documents are those of the command line contract (`replay`, `sweep`, `features`), so cached answers serve as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...records import Capture, Drafter, Finding, Gap, Import, Log
from ..served import expected, served

Label = int | str


@dataclass(frozen=True)
class Evidence:
    """Everything about one run. All accept lengths in it are on the same K = steps.

    replays: documents by name, "training" and "serving" (default slots); sweep: of the training capture; gaps: for a part
    that could not be answered ("training", "serving", "sweep", "features"), a dict with "message" and "needs".
    """

    steps: int
    drafter: Import | None = None
    training: Import | None = None
    serving: Import | None = None
    target: Import | None = None
    logs: tuple[Import, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    replays: dict[str, dict[str, Any]] = field(default_factory=dict)
    sweep: dict[str, Any] | None = None
    features: dict[str, Any] | None = None
    gaps: dict[str, dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def served(self) -> dict[str, Any] | None:
        """The served acceptance (see `analysis.served`)."""
        return served([log.record for log in self.logs])

    @cached_property
    def expected(self) -> dict[str, Any] | None:
        """What the training run's own accuracy promises, per row."""
        return expected(self.settings, self.steps)

    @property
    def spec_of(self) -> Drafter | None:
        """The drafter's record."""
        return self.drafter.record if self.drafter else None

    @property
    def log_records(self) -> list[Log]:
        """The logs' records."""
        return [log.record for log in self.logs]

    def capture(self, role: str) -> Capture | None:
        """The record of a capture."""
        found = self.training if role == "training" else self.serving
        return found.record if found else None

    @property
    def engine(self) -> str | None:
        """sglang, vllm, tensorrt-llm, ..: as set for the run, else as a log says."""
        named = self.settings.get("engine") or next((log.engine for log in self.log_records if log.engine), None)
        return str(named).lower() if named else None

    @property
    def version(self) -> str | None:
        """The engine's version, where a log says it."""
        return next((log.version for log in self.log_records if log.version), None)


@dataclass(frozen=True)
class Check:
    """One thing that is looked at. `looks_at` is for people; `needs` names what must be there for it to run at all: files
    (drafter, training, serving, log, target, expected) or answers (replay_training, replay_serving, sweep, features)."""

    id: str
    family: str
    looks_at: str
    needs: tuple[str, ...]
    function: Callable[[Evidence], list[Finding | Gap]]
