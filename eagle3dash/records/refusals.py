"""Why a file of the right kind cannot be used: what an import says when it refuses it, and a diagnosis as a finding."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BadRows:
    """Rows of one slot that no target computes. `holds`: what stands in them; `first`: the first such row."""

    slot: int
    holds: str
    first: int
    count: int
    rows: int  # that the slot has


@dataclass(frozen=True)
class Refusal:
    """`file`: its label. `rows`: of a capture's text; `lacks`: weights of a drafter that nobody can supply."""

    file: str
    rows: tuple[BadRows, ...] = ()
    lacks: tuple[str, ...] = ()
