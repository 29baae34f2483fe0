"""Something brought in with its sources, and a run: one configuration under study."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from eagle3dash.records.captures import Capture, Role, Target
from eagle3dash.records.drafters import Drafter
from eagle3dash.records.logs import Log

Kind = Literal["drafter", "capture", "log", "target"]


@dataclass(frozen=True)
class Source:
    """One original file as it was brought in. `name` is a label only, never used as a path."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Inferred:
    """Something the file does not say outright: the field, the value taken, and why."""

    field: str
    value: str
    why: str


@dataclass(frozen=True)
class Import:
    """One thing brought in: a record with its sources. `sha256` identifies the content, whatever the file was called."""

    kind: Kind
    name: str
    sha256: str
    sources: tuple[Source, ...]
    record: Drafter | Capture | Log | Target
    inferred: tuple[Inferred, ...] = ()
    problems: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()  # every tensor file that belongs to it, by SHA-256


@dataclass(frozen=True)
class Run:
    """One configuration under study. Imports in the order they were attached; the newest of a kind is the one in use."""

    name: str
    created: str
    imports: tuple[Import, ...] = ()
    # expected, expected_kind, steps, engine, temperature; refused: {role: Refusal}, files a diagnosis went on without
    settings: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    notes: str = ""

    def _newest(self, kind: Kind, role: Role | None = None) -> Import | None:
        fits = [i for i in self.imports if i.kind == kind and (role is None or i.record.role == role)]
        return fits[-1] if fits else None

    @property
    def drafter(self) -> Import | None:
        return self._newest("drafter")

    @property
    def target(self) -> Import | None:
        return self._newest("target")

    def capture(self, role: Role) -> Import | None:
        return self._newest("capture", role)

    @property
    def logs(self) -> tuple[Import, ...]:
        return tuple(i for i in self.imports if i.kind == "log")
