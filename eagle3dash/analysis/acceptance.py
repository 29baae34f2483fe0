"""How many drafted tokens are accepted: from right/wrong tokens to counts, from counts to ratios.

Counts are summed over sequences first and divided once, at the end; a total of 0 gives None, never 0.
Two averages, never mixed: per row (over every counted row: what training metrics estimate) and per round (over the rows at
which a server would have started a round: what servers report). Definitions: ARCHITECTURE.md, "The replay".
Knows nothing of drafters, files or clocks: it takes the arrays `right` [K, S] that a replay returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eagle3dash.analysis.intervals import Interval, blocks, independent, interval
from eagle3dash.records import Counts


def countable(tokens: int, steps: int, loss_mask: np.ndarray | None = None) -> np.ndarray:
    """bool [S]: row t counts if its whole chain has labels (t+K+1 <= S-1) and its first label is trained on (mask[t+2])."""
    counted = np.zeros(tokens, dtype=bool)
    last = tokens - steps - 1  # first row that does not count
    if last > 0:
        counted[:last] = True if loss_mask is None else np.asarray(loss_mask)[2 : last + 2] == 1
    return counted


def count(right: np.ndarray, counted: np.ndarray, in_vocab: np.ndarray) -> tuple[Counts, np.ndarray, np.ndarray]:
    """One sequence. right bool [K, S], counted bool [S], in_vocab bool [S] (token s is in the draft vocabulary)
    -> (counts, visited bool [S]: rows at which a round starts, num_accepted int [S])."""
    steps, tokens = right.shape
    accepted = np.cumprod(right, axis=0, dtype=np.int64).sum(axis=0)  # [S]: leading right steps
    visited = visit(accepted, counted)
    rows = np.flatnonzero(counted)
    drafted_at = rows[None, :] + 2 + np.arange(steps)[:, None]  # [K, rows]: where the label of (step, row) stands
    counts = Counts(
        steps=steps,
        row_histogram=_histogram(accepted[counted], steps),
        histogram=_histogram(accepted[visited], steps),
        step_right=tuple(int(n) for n in right[:, counted].sum(axis=1)),
        in_vocab=int(np.asarray(in_vocab, dtype=bool)[drafted_at].sum()) if rows.size else 0,
    )
    return counts, visited, accepted


def visit(accepted: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """bool [S]: from the first row of every maximal run of counted rows, on by num_accepted + 1 until the run ends."""
    visited = np.zeros(len(counted), dtype=bool)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], counted.astype(np.int8), [0]])))  # start, end, start, end, ...
    jump = (accepted + 1).tolist()
    for start, end in edges.reshape(-1, 2).tolist():
        row = start
        while row < end:
            visited[row] = True
            row += jump[row]
    return visited


def merge(counts: Sequence[Counts]) -> Counts:
    """Counts of several sequences, pooled. They must share K."""
    if len({c.steps for c in counts}) != 1:
        raise ValueError("counts to merge need one and the same number of steps")
    return Counts(
        steps=counts[0].steps,
        row_histogram=_add(c.row_histogram for c in counts),
        histogram=_add(c.histogram for c in counts),
        step_right=_add(c.step_right for c in counts),
        in_vocab=sum(c.in_vocab for c in counts),
    )


def empty(steps: int) -> Counts:
    """Counts of nothing."""
    return Counts(steps, (0,) * (steps + 1), (0,) * (steps + 1), (0,) * steps, 0)


class Tally:
    """Counts and interval clusters of a replay, sequence by sequence. Small: three numbers a block of rows."""

    def __init__(self, steps: int):
        self.counts = empty(steps)
        self.sequences = 0
        self._rows: list[np.ndarray] = []
        self._rounds: list[np.ndarray] = []
        self._logprobs: list[np.ndarray] = []

    def add(
        self, right: np.ndarray, counted: np.ndarray, in_vocab: np.ndarray, logprob: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Adds one sequence (arguments as of `count`; logprob [S]: of the text's token at step 0, nats, NaN where it cannot
        be drafted) -> (visited, num_accepted)."""
        counts, visited, accepted = count(right, counted, in_vocab)
        self.counts = merge([self.counts, counts])
        self._rows.append(blocks(accepted, counted, self.sequences))
        self._rounds.append(blocks(accepted, visited, self.sequences))
        logprob = np.full(len(counted), np.nan) if logprob is None else logprob
        draftable = counted & ~np.isnan(logprob)
        self._logprobs.append(blocks(np.where(draftable, logprob, 0.0), draftable, self.sequences))
        self.sequences += 1
        return visited, accepted

    @property
    def row_interval(self) -> Interval:
        """Accept length per row."""
        return self._interval(self._rows, "rows")

    @property
    def round_interval(self) -> Interval:
        """Accept length per round."""
        return self._interval(self._rounds, "rows")

    @property
    def log_likelihood(self) -> Interval:
        """Mean log-probability of the text's own token at step 0, nats per row, over the rows that can be drafted."""
        return interval(_joined(self._logprobs), "rows")

    def ahead_of(self, other: Tally) -> Interval:
        """Mean by which this is ahead per row, paired on the same counted rows: far narrower than either interval, because
        what differs between texts drops out."""
        found = _paired(_joined(self._rows), _joined(other._rows))
        if found is None:
            raise ValueError("only replays of the same rows can be paired")
        return found

    def share_of(self, other: Tally) -> Interval | None:
        """Its accepted draft tokens as a share of the other's, on the same counted rows; None where that accepts none."""
        own, others = _joined(self._rows), _joined(other._rows)
        if own.shape != others.shape or not np.array_equal(own[:, [0, 2]], others[:, [0, 2]]) or not others[:, 1].any():
            return None
        return interval(np.column_stack([own[:, 0], own[:, 1], others[:, 1]]), "rows")

    def likelier_than(self, other: Tally) -> Interval | None:
        """Mean by which the text's own tokens are likelier at step 0, nats per row, paired; None where the two can draft
        different tokens."""
        return _paired(_joined(self._logprobs), _joined(other._logprobs))

    def signs(self, other: Tally, likelier: bool = False) -> tuple[int, int]:
        """Blocks of rows in which this is ahead (or its tokens likelier), and behind. Unlike a mean it is not ruled by one
        text that gains much."""
        own, others = (_joined(tally._logprobs if likelier else tally._rows) for tally in (self, other))
        return int((own[:, 1] > others[:, 1]).sum()), int((own[:, 1] < others[:, 1]).sum())

    def _interval(self, tables: list[np.ndarray], unit: str) -> Interval:
        return interval(_joined(tables), unit).shifted(1.0, self.counts.steps + 1.0)

    def document(self, states: Sequence[Any]) -> dict[str, Any]:
        """The `replay` document."""
        return replay_json(states, self.counts, self.row_interval, self.round_interval)


def _joined(tables: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(tables) if tables else np.zeros((0, 3))


def _paired(own: np.ndarray, others: np.ndarray) -> Interval | None:
    if own.shape != others.shape or not np.array_equal(own[:, [0, 2]], others[:, [0, 2]]):
        return None
    return interval(np.column_stack([own[:, 0], own[:, 1] - others[:, 1], own[:, 2]]), "rows")


# ---- ratios --------------------------------------------------------------------------------------------------------


def ratio(part: float, total: float) -> float | None:
    """The one place that divides counts."""
    return part / total if total else None


def accept_length(histogram: Sequence[int]) -> float | None:
    """1 + mean(num_accepted): tokens a round, bonus token included."""
    mean = ratio(sum(n * value for n, value in enumerate(histogram)), sum(histogram))
    return None if mean is None else 1.0 + mean


def survival(histogram: Sequence[int]) -> list[float | None]:
    """[K]: P(positions 0..i all accepted)."""
    total = sum(histogram)
    return [ratio(sum(histogram[i + 1 :]), total) for i in range(len(histogram) - 1)]


def alpha(histogram: Sequence[int]) -> list[float | None]:
    """[K]: P(position i accepted given that 0..i-1 were). None where no round got that far."""
    return [ratio(sum(histogram[i + 1 :]), sum(histogram[i:])) for i in range(len(histogram) - 1)]


def alpha_of(survived: Sequence[float | None]) -> list[float | None]:
    """survival [K] -> alpha [K], where only the ratios are known."""
    before = [1.0, *survived[:-1]]
    return [None if s is None or not b else min(1.0, s / b) for s, b in zip(survived, before, strict=True)]


def interval_of(histogram: Sequence[int], unit: str = "rounds") -> Interval:
    """Accept length with an interval that takes rounds as independent: for when only the histogram is left."""
    total = sum(histogram)
    if not total:
        return interval(np.zeros((0, 3)))
    values = np.arange(len(histogram))
    mean = float((values * histogram).sum() / total)
    variance = float(((values - mean) ** 2 * histogram).sum() / total)
    return independent(mean, variance, total, unit).shifted(1.0, float(len(histogram)))


def replay_json(
    states: Sequence[Any], counts: Counts, rows: Interval | None = None, rounds: Interval | None = None
) -> dict[str, Any]:
    """The `replay` document of the command line contract, with intervals where the caller has clusters of rows."""
    rows = rows or interval_of(counts.row_histogram, "rows")
    rounds = rounds or interval_of(counts.histogram)
    return {
        "states": list(states),
        "steps": counts.steps,
        "rounds": counts.rounds,
        "accept_length": accept_length(counts.histogram),
        "low": rounds.low,
        "high": rounds.high,
        "survival": survival(counts.histogram),
        "alpha": alpha(counts.histogram),
        "histogram": list(counts.histogram),
        "rows": counts.rows,
        "row_accept_length": accept_length(counts.row_histogram),
        "row_low": rows.low,
        "row_high": rows.high,
        "row_survival": survival(counts.row_histogram),
        "row_histogram": list(counts.row_histogram),
        "step_accuracy": [ratio(n, counts.rows) for n in counts.step_right],
        "coverage": ratio(counts.in_vocab, counts.rows * counts.steps),
        "interval_method": {"rows": rows.method, "rounds": rounds.method},
        "small_sample": rows.small or rounds.small,
    }


def _histogram(values: np.ndarray, steps: int) -> tuple[int, ...]:
    return tuple(int(n) for n in np.bincount(values, minlength=steps + 1))


def _add(tuples: Any) -> tuple[int, ...]:
    return tuple(sum(column) for column in zip(*tuples, strict=True))
