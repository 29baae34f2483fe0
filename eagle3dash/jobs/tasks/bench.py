"""A capture on which wirings of a drafter are tried: what a replay of some of its texts gives, text after text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from eagle3dash.analysis import sweep as ranking
from eagle3dash.analysis import trials
from eagle3dash.analysis.acceptance import Tally, countable
from eagle3dash.drafter.changes import Change, Features, Parts
from eagle3dash.drafter.replay import drafts
from eagle3dash.drafter.sweep import Sweep
from eagle3dash.jobs.tasks.inputs import Inputs
from eagle3dash.jobs.tasks.masks import masks
from eagle3dash.records import Progress

Outcome = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # right [K, S], counted [S], in_vocab [S], logprob [S]


@dataclass(frozen=True)
class Wired:
    """The drafter and what feeds it, with the changes made so far (`on`)."""

    parts: Parts
    slots: tuple[int, ...]
    features: tuple[Callable[[Features], Features], ...] = ()
    on: tuple[Change, ...] = ()

    def changed(self, change: Change) -> Wired:
        """With one more change."""
        made = (*self.features, change.features)
        return replace(self, parts=change.parts(self.parts), features=made, on=(*self.on, change))

    @property
    def names(self) -> tuple[str, ...]:
        """The changes made."""
        return tuple(change.name for change in self.on)


@dataclass
class Bench:
    """A capture on which to try. Progress is counted in texts replayed; `total` grows as more turns out to be worth it."""

    inputs: Inputs
    capture: str
    steps: int
    progress: Progress
    counted: dict[int, np.ndarray] = field(default_factory=dict)  # text -> bool [S]
    done: int = 0
    total: int = 0

    def __post_init__(self) -> None:
        known, _ = masks(self.inputs, self.capture)
        tokens = [sequence.tokens for sequence in self.inputs.record(self.capture).sequences]
        for index in ranking.sample(tokens):
            self.counted[index] = countable(tokens[index], self.steps, known.get(index))
        self.everything = len(self.counted) == len(tokens)
        self.all = list(self.counted)

    def some(self, budget: int) -> list[int]:
        """Texts with about `budget` counted rows."""
        rows = [int(counted.sum()) for counted in self.counted.values()]
        return [self.all[at] for at in trials.sample(rows, budget)]

    def tally(self, wired: Wired, which: Sequence[int], words: str) -> Tally:
        """Counts of one wiring over the named texts."""
        return tallied(self.outcomes(wired, which, words), self.steps)

    def outcomes(self, wired: Wired, which: Sequence[int], words: str) -> Iterator[Outcome]:
        """Text after text, what a tally takes."""
        model = wired.parts.model(self.inputs.device)
        self.total = max(self.total, self.done + len(which))
        for text in self.inputs.texts(self.capture, which):
            self._told(words)
            counted = self.counted[text.index]
            states = [text.state(slot) for slot in wired.slots]  # A x [S, Ht]
            for change in wired.features:
                states = change(states)
            rows = torch.from_numpy(np.flatnonzero(counted))
            made = drafts(model, states, text.tokens, self.steps, rows, leading=True)
            yield made.right, counted, model.in_vocab(text.tokens).cpu().numpy(), made.logprob

    def choices(self, wired: Wired, labels: int, which: Sequence[int]) -> dict[tuple[int, ...], Tally]:
        """Counts of every ordered choice of states with the changes made so far."""
        model, choices = wired.parts.model(self.inputs.device), ranking.combinations(labels, wired.parts.spec.num_aux)
        found = {choice: Tally(self.steps) for choice in choices}
        self.total += len(choices) * len(which)
        for text in self.inputs.texts(self.capture, which):
            states = [text.state(slot) for slot in range(labels)]
            for change in wired.features:
                states = change(states)
            counted, shared = self.counted[text.index], Sweep(model, states, text.tokens, self.steps)
            rows, in_vocab = torch.from_numpy(np.flatnonzero(counted)), model.in_vocab(text.tokens).cpu().numpy()
            for choice, tally in found.items():
                self._told(f"{len(choices)} combinations of states")
                made = shared.drafts(choice, rows, leading=True)
                tally.add(made.right, counted, in_vocab, made.logprob)
        return found

    def _told(self, words: str) -> None:
        self.progress(self.done, self.total, f"trying {words}")
        self.done += 1


def tallied(outcomes: Iterable[Outcome], steps: int) -> Tally:
    """All of them in one tally."""
    tally = Tally(steps)
    for outcome in outcomes:
        tally.add(*outcome)
    return tally
