"""What a run has to show: records, and the documents of the questions that were answered about it. No judgement here.

Documents are those of the command line contract (`replay`, `sweep`, `features`), so cached answers serve as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from eagle3dash.analysis.findings import lengths, origin
from eagle3dash.analysis.findings.lengths import Length, Loss
from eagle3dash.analysis.findings.wiring import Wiring, wiring
from eagle3dash.analysis.served import expected, served
from eagle3dash.records import Capture, Drafter, Finding, Gap, Import, Log, Refusal

SAME_TEXT = 0.9  # share of the serving tokens that are aligned, from which two replays are of the same rows

Label = int | str


@dataclass(frozen=True)
class Evidence:
    """Everything about one run. All accept lengths in it are on the same K = steps.

    replays: documents by name, "training" and "serving" (default slots), "best" (the sweep's best, where it is another).
    texts: of both captures' token ids ("mask", "unlike": see `analysis.texts`).
    sweep: of the training capture. changes: documents by capture (see `analysis.changes.document`). gaps: for a part that
    could not be answered ("training", "serving", "sweep", "features"), a dict with "message" and "needs". refused: by role
    (drafter, training, serving), a file that was given and that nobody can use.
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
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    features: dict[str, Any] | None = None
    texts: dict[str, Any] = field(default_factory=dict)
    gaps: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[str, Refusal] = field(default_factory=dict)

    @cached_property
    def served(self) -> dict[str, Any] | None:
        """The served acceptance (see `analysis.served`)."""
        return served([log.record for log in self.logs])

    @cached_property
    def expected(self) -> dict[str, Any] | None:
        """What the training run's own accuracy promises, per row."""
        return expected(self.settings, self.steps)

    @cached_property
    def wiring(self) -> Wiring:
        """Which states were trained on, are served, are declared."""
        return wiring(self)

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

    @property
    def model(self) -> str | None:
        """The target as a log names it."""
        return next((str(log.settings["model"]) for log in self.log_records if log.settings.get("model")), None)

    # ---- the numbers, on K = steps

    @property
    def training_length(self) -> Length | None:
        """Per round, on training features, with the states the drafter was trained on."""
        return lengths.per_round(self.wiring.trained_replay, "replayed on training features")

    @property
    def training_rows(self) -> Length | None:
        """The same per row."""
        return lengths.per_row(self.wiring.trained_replay, "replayed on training features, per row")

    @property
    def serving_length(self) -> Length | None:
        """Per round, on what the server fed."""
        return lengths.per_round(self.replays.get("serving"), "replayed on serving features")

    @property
    def served_length(self) -> Length | None:
        """What the server reports."""
        return lengths.on_steps(self.served, self.steps)

    @property
    def same_rows(self) -> bool:
        """Both replays counted the same rows of the same tokens, nearly, so that only features differ."""
        told = (self.features or {}).get("alignment") or {}
        same_text = (told.get("aligned_tokens") or 0) >= SAME_TEXT * max(told.get("serving_tokens") or 0, 1)
        a, b = ((d or {}).get("rows") or 0 for d in (self.wiring.trained_replay, self.replays.get("serving")))
        return same_text and min(a, b) >= SAME_TEXT * max(a, b)

    @property
    def feature_loss(self) -> Loss | None:
        """From training features to serving features; to what was served where there is no serving replay."""
        if self.correction and "serving" in self.changes:  # what other features cost a drafter that is read right
            same = _corrected(self.changes["serving"], self.correction["changes"])
            before = lengths.of_change(self.correction, "replayed on training features, read right")
            after = lengths.of_change(same, "replayed on serving features, read right")
            return lengths.loss(before, after)
        found = lengths.loss(self.training_length, self.serving_length, self.same_rows)
        return found or lengths.loss(self.training_length, self.served_length)

    @property
    def correction(self) -> dict[str, Any] | None:
        """What must be set differently from the drafter's files for it to work best on training features; None: nothing,
        or nothing that these features could tell."""
        return None if self.foreign else (self.changes.get("training") or {}).get("best")

    @cached_property
    def foreign(self) -> bool:
        """The training capture is not of what the drafter was trained on."""
        return origin.foreign(self)

    @property
    def engine_loss(self) -> Loss | None:
        """From the replay on serving features to what was served."""
        return lengths.loss(self.serving_length, self.served_length)


def _corrected(serving: dict[str, Any], changes: list[str]) -> dict[str, Any]:
    """The serving capture's numbers with the changes that the training capture calls for, as far as they were tried."""
    if serving["best"] and serving["best"]["changes"] == changes:
        return serving["best"]
    row = next((row for row in serving["rows"] if [row["change"]] == changes[:1]), None)
    return {**serving["baseline"], "accept_length": row["accept_length"]} if row else serving["baseline"]


@dataclass(frozen=True)
class Check:
    """One thing that is looked at. `looks_at` is for people; `needs` names what must be there for it to run at all: files
    (drafter, training, serving, log, target, expected) or answers (replay_training, replay_serving, sweep, features)."""

    id: str
    family: str
    looks_at: str
    needs: tuple[str, ...]
    function: Callable[[Evidence], list[Finding | Gap]]
