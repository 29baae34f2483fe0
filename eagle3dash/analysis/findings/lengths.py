"""Accept lengths with their intervals, and when one counts as lower than another. All on one K.

A loss is shown when it is large enough to matter (LOSS of the accepted draft tokens) and no accident: it exceeds the 95 %
interval of the difference, or both numbers are of the very same rows (two captures of the same tokens), where only
features differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

LOSS = 0.10  # of accept length - 1. Two bf16 implementations differ by 0.3 % on the demo, one wrong layer by 10 % and more
LEAST = 0.03  # tokens: below that no one would act


@dataclass(frozen=True)
class Length:
    """An accept length (bonus counted). low, high: None where the source gives no interval."""

    value: float
    low: float | None
    high: float | None
    n: int | None
    unit: str
    source: str

    def told(self) -> dict[str, Any]:
        """For a finding's evidence."""
        return {"accept_length": self.value, "low": self.low, "high": self.high, self.unit: self.n, "from": self.source}

    def text(self) -> str:
        """ "1.75 (1.62..1.87, 736 rounds)"."""
        width = "" if self.low is None or self.high is None else f"{self.low:.2f}..{self.high:.2f}, "
        count = "" if self.n is None else f"{self.n} {self.unit}"
        inside = (width + count).strip(", ")
        return f"{self.value:.2f}" + (f" ({inside})" if inside else "")


@dataclass(frozen=True)
class Loss:
    """From `before` to `after`. share: of the accepted draft tokens; shown: large enough and no accident."""

    before: Length
    after: Length
    share: float
    shown: bool

    def text(self) -> str:
        """For a title or a verdict."""
        return f"accept length {self.before.text()} {self.before.source}, {self.after.text()} {self.after.source}"


def per_round(document: dict[str, Any] | None, source: str) -> Length | None:
    """Of a replay document."""
    if document is None or document.get("accept_length") is None:
        return None
    return Length(document["accept_length"], document["low"], document["high"], document["rounds"], "rounds", source)


def per_row(document: dict[str, Any] | None, source: str) -> Length | None:
    """Of a replay document."""
    if document is None or document.get("row_accept_length") is None:
        return None
    width = document["row_low"], document["row_high"]
    return Length(document["row_accept_length"], *width, document["rows"], "rows", source)


def of_change(numbers: dict[str, Any], source: str) -> Length | None:
    """Per round, of a baseline or a best of the `changes` document."""
    if numbers["accept_length"] is None:
        return None
    width = numbers["round_low"], numbers["round_high"]
    return Length(numbers["accept_length"], *width, numbers["rounds"], "rounds", source)


def of_row(row: dict[str, Any]) -> dict[str, Any]:
    """A sweep's row in the words of a replay document."""
    same = "states", "slots", "rounds", "rows", "accept_length", "survival", "row_accept_length", "row_survival", "coverage"
    document = {name: row.get(name) for name in same}
    return document | {
        "low": row.get("round_low"),
        "high": row.get("round_high"),
        "row_low": row["low"],
        "row_high": row["high"],
    }


def on_steps(answer: dict[str, Any] | None, steps: int) -> Length | None:
    """The served accept length on K = steps. Survival is unconditional, so a longer chain's can be cut; a shorter one can't
    be extended: then None."""
    if answer is None or answer["accept_length"] is None:
        return None
    served_steps, survived = answer["steps"], answer["survival"]
    length = answer["accept_length"]
    if served_steps is not None and served_steps != steps:
        if served_steps < steps or not survived:
            return None
        length = 1.0 + sum(survived[:steps])
        return Length(length, None, None, answer["rounds"], "rounds", f"served (first {steps} of {served_steps} positions)")
    return Length(length, answer["low"], answer["high"], answer["rounds"], "rounds", "served")


def costs(before: float, after: float, least: float = LOSS) -> bool:
    """Enough accepted draft tokens to matter are lost from one accept length to another."""
    return before - after >= LEAST and before > 1.0 and before - after >= least * (before - 1.0)


def loss(before: Length | None, after: Length | None, same_rows: bool = False, least: float = LOSS) -> Loss | None:
    """None when either number is missing."""
    if before is None or after is None:
        return None
    drop = before.value - after.value
    share = drop / (before.value - 1.0) if before.value > 1.0 else 0.0
    known = None not in (before.low, after.high)
    # half-widths add in quadrature; without intervals only a large drop counts
    apart = drop > math.hypot(before.value - before.low, after.high - after.value) if known else share >= 2.5 * least
    return Loss(before, after, share, costs(before.value, after.value, least) and (same_rows or apart))
