"""Which states was this drafter trained on: every ordered choice of A out of N captured states, ranked.

A choice is a tuple of slots, in the order in which fc reads them. On a large capture all choices are first ranked on
sampled sequences, with intervals; only the contenders are then counted on every row. Takes replays' outcomes, runs none.
Two choices may accept alike and still be told apart: training made the text's own tokens likely with the states it fed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import permutations
from math import perm
from typing import Any

from eagle3dash.analysis.acceptance import Tally, accept_length, ratio, survival
from eagle3dash.analysis.intervals import Interval
from eagle3dash.errors import BadInput

Choice = tuple[int, ...]
SAMPLE_TOKENS = 8192
MOST_CONTENDERS = 6
MOST_CHOICES = 5000
LIKELIER = 0.02  # nats a row: bf16 rounding and fp8 features move the demo's likelihood by 0.003


def combinations(states: int, aux: int) -> list[Choice]:
    """All ordered choices of `aux` different slots out of `states`, in lexicographic order. BadInput if there are none."""
    if aux > states:
        raise BadInput(f"The drafter reads {aux} states and the capture holds {states}; capture at least {aux} of them.")
    if perm(states, aux) > MOST_CHOICES:
        raise BadInput(f"{states} states give {perm(states, aux)} ordered choices of {aux}; the limit is {MOST_CHOICES}.")
    return list(permutations(range(states), aux))


def sample(tokens: Sequence[int], budget: int = SAMPLE_TOKENS) -> list[int]:
    """Which sequences to rank on: evenly spread over the capture, about `budget` tokens; all when that is not many more."""
    total = sum(tokens)
    if total <= 2 * budget:
        return list(range(len(tokens)))
    wanted = max(1, round(len(tokens) * budget / total))
    return sorted({index * len(tokens) // wanted for index in range(wanted)})


def is_sampled(tokens: Sequence[int]) -> bool:
    """Whether a capture is so large that only contenders are counted on every row."""
    return len(sample(tokens)) < len(tokens)


def contenders(tallies: Mapping[Choice, Tally], always: Iterable[Choice] = (), most: int = MOST_CONTENDERS) -> list[Choice]:
    """The choices that may be the best, best first: those that are not clearly behind the leader, paired on the same rows.
    `always`: choices that are worth an exact number in any case (the declared one, the capture's own)."""
    order = sorted(tallies, key=lambda choice: (-_mean(tallies[choice]), choice))
    if not order:
        return []
    behind = {choice: tallies[order[0]].ahead_of(tallies[choice]).low for choice in order}
    near = [choice for choice in order if behind[choice] is not None and behind[choice] <= 0.0][:most]
    return near + [choice for choice in dict.fromkeys(always) if choice in tallies and choice not in near]


def document(
    capture: str, labels: Sequence[Any], tallies: Mapping[Choice, Tally], exact: Collection[Choice], steps: int
) -> dict[str, Any]:
    """The `sweep` document: one row a choice, best first. Those not in `exact` were ranked on a sample only. behind: the
    leader's tokens per row minus its own; kept: its accepted tokens as a share of the leader's; both on the same rows."""
    order = sorted(tallies, key=lambda choice: (-_mean(tallies[choice]), choice))
    rows = [_row(choice, labels, tallies[choice], choice in exact) for choice in order]
    for choice, row in zip(order, rows, strict=True):
        row["behind"] = _behind(tallies[order[0]], tallies[choice])
        row["kept"] = row["behind"] and _told(tallies[choice].share_of(tallies[order[0]]))
    tied = [choice for choice, row in zip(order, rows, strict=True) if _tied(row, rows[0])]
    likeliest = max(tied, key=lambda choice: _likelihood(tallies[choice]), default=None)
    for choice, row in zip(order, rows, strict=True):
        row["less_likely"] = _told(likeliest and tallies[likeliest].likelier_than(tallies[choice]))
    return {"capture": capture, "steps": steps, "labels": list(labels), "rows": rows}


def as_good(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of the document that may be the best, the likeliest first: not clearly behind the leader in accepted tokens,
    nor clearly less likely than the likeliest of those."""
    tied = [row for row in rows if _tied(row, rows[0])]
    able = [row for row in tied if not (row.get("less_likely") and _less(row["less_likely"]))]
    return sorted(able, key=lambda row: (row.get("less_likely") or {}).get("mean") or 0.0)


def as_many(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of the document that are not clearly behind the leader in accepted tokens, in their order."""
    return [row for row in rows if _tied(row, rows[0])]


def _tied(row: Mapping[str, Any], leader: Mapping[str, Any]) -> bool:
    """Paired on the same rows where both were counted there, else by their intervals."""
    if row["row_accept_length"] is None:
        return False
    behind = row.get("behind")
    return row["high"] >= leader["low"] if behind is None else behind["low"] <= 0.0


def _less(told: Mapping[str, float]) -> bool:
    return told["mean"] is not None and told["mean"] >= LIKELIER and told["low"] > 0.0


def _behind(leader: Tally, tally: Tally) -> dict[str, float | None] | None:
    """Leader minus this, per row, paired; None where they were counted on other rows (a sample against all)."""
    return None if leader.counts.rows != tally.counts.rows else _told(leader.ahead_of(tally))


def _told(found: Interval | None) -> dict[str, float | None] | None:
    return None if found is None else {"mean": found.mean, "low": found.low, "high": found.high}


def _row(choice: Choice, labels: Sequence[Any], tally: Tally, exact: bool) -> dict[str, Any]:
    rows, rounds, counts = tally.row_interval, tally.round_interval, tally.counts
    return {
        "states": [labels[slot] for slot in choice],
        "slots": list(choice),
        "row_accept_length": rows.mean,
        "low": rows.low,
        "high": rows.high,
        "row_survival": survival(counts.row_histogram),
        "rows": counts.rows,
        "log_likelihood": tally.log_likelihood.mean,
        # a server's rounds run through whole texts, so a sample of rows has none
        "accept_length": accept_length(counts.histogram) if exact else None,
        "round_low": rounds.low if exact else None,
        "round_high": rounds.high if exact else None,
        "survival": survival(counts.histogram) if exact else None,
        "rounds": counts.rounds if exact else None,
        "coverage": ratio(counts.in_vocab, counts.rows * counts.steps),
        "small_sample": rows.small,
        "exact": exact,
    }


def _likelihood(tally: Tally) -> float:
    mean = tally.log_likelihood.mean
    return -math.inf if mean is None else mean


def _mean(tally: Tally) -> float:
    mean = tally.row_interval.mean
    return 0.0 if mean is None else mean
