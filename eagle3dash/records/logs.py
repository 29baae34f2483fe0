"""What a server wrote about acceptance, in one definition whatever its own was (accept length counts the bonus token)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Window:
    """Acceptance over a span of serving, from one log line or metrics snapshot. None where the line does not say.

    accept_length counts the bonus token; acceptance_rate = accepted / drafted in 0..1; survival[i] unconditional.
    `rounds` is the number of draft-verify cycles. `cumulative`: totals since the server started, not since the last line.
    """

    line: int
    time: str | None = None
    rank: str | None = None
    accept_length: float | None = None
    acceptance_rate: float | None = None
    accepted: int | None = None
    drafted: int | None = None
    rounds: int | None = None
    survival: tuple[float, ...] | None = None
    running: int | None = None
    throughput: float | None = None
    cumulative: bool = False
    warmup: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """One served request with the accepted count of each of its rounds: the true distribution. Bonus not counted."""

    name: str
    accepted: tuple[int, ...]
    drafted: tuple[int, ...]
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class Log:
    """What a server wrote about acceptance. `settings`: start-up facts by name (model, dtype, tp, method, ...)."""

    format: str
    engine: str | None
    version: str | None = None
    steps: int | None = None  # K
    windows: tuple[Window, ...] = ()
    requests: tuple[Request, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)
