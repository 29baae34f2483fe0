"""What an analysis answers: counts before ratios, findings, and checks that could not be made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
Progress = Callable[[float, float, str], None]
"""progress(done, total, message). May raise `errors.Cancelled`."""


def no_progress(done: float, total: float, message: str) -> None:
    """The progress callback of somebody who does not watch."""


@dataclass(frozen=True)
class Counts:
    """Outcome of a chain replay, as counts. Index of a histogram = num_accepted (0..K), bonus not counted.

    row_*: over every counted row. histogram: over the rounds a server would have started (see
    ARCHITECTURE.md, "The replay").
    step_right[j]: counted rows whose step j is right, whatever came before. in_vocab: counted (row, step) tokens that the
    draft vocabulary holds, out of rows * K.
    """

    steps: int
    row_histogram: tuple[int, ...]
    histogram: tuple[int, ...]
    step_right: tuple[int, ...]
    in_vocab: int

    @property
    def rows(self) -> int:
        return sum(self.row_histogram)

    @property
    def rounds(self) -> int:
        return sum(self.histogram)


@dataclass(frozen=True)
class Finding:
    """A broken link. `evidence`: numbers by name; `fix`: what to change, per engine where it differs."""

    id: str
    severity: Severity
    title: str
    evidence: dict[str, Any]
    fix: str


@dataclass(frozen=True)
class Gap:
    """A check that could not be made, and the file that would allow it."""

    id: str
    needs: str
