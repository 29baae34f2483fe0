"""What the line readers gather: windows, requests, start-up facts, definitions, problems. Bounded, however long the log is.

It doesn't know any engine's words. A log of more than `MOST` windows is thinned by averaging neighbours of the same rank.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from eagle3dash.records import Inferred, Log, Request, Window

MOST = 40_000  # windows kept
MOST_ROUNDS = 4_000_000
MOST_PROBLEMS = 20
SIZES = ("num_speculative_tokens", "num_steps", "topk", "num_draft_tokens")  # one server has one of each
RANK = re.compile(r"\b(DP|TP|PP|EP|CP|ATTN_TP|MOE_EP)[ _-]?(\d{1,5})\b")


class Parsed(NamedTuple):
    """A log, what it doesn't say outright, and what is wrong with it."""

    log: Log
    inferred: tuple[Inferred, ...]
    problems: tuple[str, ...]


@dataclass
class Windows:
    """Windows in the order of the file, thinned when there are too many. `lines`: how many were added."""

    kept: list[Window] = field(default_factory=list)
    lines: int = 0

    def add(self, window: Window) -> None:
        self.lines += 1
        self.kept.append(window)
        if len(self.kept) > MOST:
            self.kept = thin(self.kept)

    @property
    def accepting(self) -> bool:
        return any(window.accept_length is not None or window.accepted is not None for window in self.kept)


@dataclass
class Found:
    """Everything that the readers found so far.

    server: acceptance lines of the server. plain: its lines without acceptance, used when there is nothing else.
    bench: a client's summary of the same traffic, used when the server wrote nothing.
    """

    engine: str | None = None
    version: str | None = None
    steps: int | None = None
    kind: str | None = None
    server: Windows = field(default_factory=Windows)
    plain: Windows = field(default_factory=Windows)
    bench: Windows = field(default_factory=Windows)
    requests: list[Request] = field(default_factory=list)
    rounds: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)
    inferred: list[Inferred] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    more_problems: int = 0
    state: dict[str, Any] = field(default_factory=dict)  # what a reader keeps between lines, by reader

    def problem(self, text: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(text)
        else:
            self.more_problems += 1

    def infer(self, name: str, value: Any, why: str) -> None:
        self.inferred.append(Inferred(name, str(value), why))

    def request(self, request: Request) -> None:
        self.rounds += len(request.accepted)
        if self.rounds <= MOST_ROUNDS:
            self.requests.append(request)

    def set(self, name: str, value: Any) -> None:
        """A start-up fact. The first value stays: later lines repeat it for the drafter or other ranks."""
        if value is None or len(self.settings) >= 200:
            return
        known = self.settings.setdefault(name, value)
        if name in SIZES and known != value and name not in self.state:
            self.state[name] = value
            self.problem(f"{name} is {known} first and {value} later: two server starts in one log? The first is used.")

    def warn(self, name: str, line: int, fact: str, rank: str | None = None) -> None:
        """A warning that matters: its id, where it stood, and the fact in our words."""
        known = self.settings.setdefault("warnings", [])
        if len(known) < 50 and not any(w["id"] == name and w["rank"] == rank and w["fact"] == fact for w in known):
            known.append({"id": name, "line": line, "rank": rank, "fact": fact})


def thin(windows: Sequence[Window]) -> list[Window]:
    """Half as many: neighbours of the same rank become one. Counts are summed, the rest averaged by rounds or equally."""
    waiting: dict[tuple, Window] = {}
    kept = []
    for window in windows:
        key = (window.rank, window.cumulative, window.accept_length is None, window.survival and len(window.survival))
        first = waiting.pop(key, None)
        if first is None:
            waiting[key] = window
        else:
            kept.append(_joined(first, window))
    return sorted([*kept, *waiting.values()], key=lambda w: w.line)


def _joined(a: Window, b: Window) -> Window:
    sizes = [w.extra.get("merged", 1) for w in (a, b)]
    weights = [w.rounds for w in (a, b)] if a.rounds and b.rounds else sizes

    def mean(x: float | None, y: float | None) -> float | None:
        if x is None or y is None:
            return x if y is None else y
        return (x * weights[0] + y * weights[1]) / sum(weights)

    def total(x: int | None, y: int | None) -> int | None:
        return None if x is None or y is None else x + y

    running = mean(a.running, b.running)
    survival = tuple(mean(x, y) for x, y in zip(a.survival, b.survival, strict=True)) if a.survival and b.survival else None
    rate = mean(a.extra.get("accept_rate"), b.extra.get("accept_rate"))
    extra = {"merged": sum(sizes)} | ({} if rate is None else {"accept_rate": rate})
    return replace(
        a,
        accept_length=mean(a.accept_length, b.accept_length),
        acceptance_rate=mean(a.acceptance_rate, b.acceptance_rate),
        accepted=total(a.accepted, b.accepted),
        drafted=total(a.drafted, b.drafted),
        rounds=total(a.rounds, b.rounds),
        survival=survival,
        running=None if running is None else round(running),
        throughput=mean(a.throughput, b.throughput),
        warmup=a.warmup and b.warmup,
        extra=extra,
    )


def ranks(text: str) -> dict[str, int]:
    """Parallel ranks named in `text`: {"dp": 1, "tp": 3}."""
    return {name.lower(): int(value) for name, value in RANK.findall(text)}


def one_tensor_rank(windows: Sequence[Window]) -> tuple[list[Window], int]:
    """(windows of the lowest tensor-parallel rank of every data-parallel rank, how many others were left out)."""
    lowest: dict[int | None, tuple[int, int]] = {}
    places = []
    for window in windows:
        at = ranks(window.rank or "")
        group, place = at.get("dp"), (at.get("pp", 0), at.get("tp", at.get("attn_tp", 0)))
        places.append((window, group, place))
        lowest[group] = min(place, lowest.get(group, place))
    kept = [window for window, group, place in places if place == lowest[group]]
    return kept, len(windows) - len(kept)
