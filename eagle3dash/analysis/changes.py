"""The `changes` document: what each change gains or costs beside the drafter as it is, and the sweep's states among them.

Made of the stages that `analysis.trials` judges; for charts, reports and findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from eagle3dash.analysis.acceptance import Tally, survival
from eagle3dash.analysis.trials import Stage, plus

AS_IS = "as its files say"


def baseline_row(tally: Tally) -> dict[str, Any]:
    """The drafter as it is, in the words of a row."""
    rows, rounds, counts = tally.row_interval, tally.round_interval, tally.counts
    return {
        "row_accept_length": rows.mean,
        "low": rows.low,
        "high": rows.high,
        "row_survival": survival(counts.row_histogram),
        "accept_length": rounds.mean,
        "round_low": rounds.low,
        "round_high": rounds.high,
        "survival": survival(counts.histogram),
        "rows": counts.rows,
        "rounds": counts.rounds,
    }


def document(capture: str, states: Sequence[Any], steps: int, stages: Sequence[Stage], best: dict[str, Any] | None):
    """The `changes` document. rows: of the first stage; stacked: of those after it, on top of the best before.

    A row: change, family, sets, readings (known readings that come to the same), on, row_accept_length, low and high (the
    baseline plus the 95 % interval of the paired difference), difference, difference_low, difference_high, likelier and its
    interval (nats per row by which the text's own tokens are likelier at step 0, paired; null where other tokens can be
    drafted), rows,
    row_survival, accept_length and survival per round, clear (a gain beyond doubt), exact (every row; else a sample).
    best: {"changes", "sets", "states", and the numbers of a baseline} of everything that gains; None: as it is is best.
    """
    return {
        "capture": capture,
        "states": list(states),
        "steps": steps,
        "baseline": baseline_row(stages[0].baseline),
        "rows": stages[0].rows(),
        "stacked": [row for stage in stages[1:] for row in stage.rows()],
        "best": best,
    }


def ranked(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Every row of a `changes` document, best first, with the drafter as it is among them (family "baseline"). In stacked
    rows "on" names the changes made before, and difference is to those."""
    base = {"change": AS_IS, "family": "baseline", "sets": {}, "readings": [], "on": [], "clear": False, "exact": True}
    base |= {"difference": 0.0, "difference_low": 0.0, "difference_high": 0.0, **found["baseline"]}
    base |= {"likelier": 0.0, "likelier_low": 0.0, "likelier_high": 0.0}
    rows = [{**row, "name": _name(row)} for row in (base, *found["rows"], *found["stacked"])]
    return sorted(rows, key=lambda row: -(row["row_accept_length"] or 0.0))


def from_sweep(rows: Iterable[dict[str, Any]], states: Sequence[Any], keep: int = 3) -> list[dict[str, Any]]:
    """Rows of the `sweep` document as changes of the states: the best others, and those with ids one up or down."""
    rows = [row for row in rows if row["row_accept_length"] is not None]
    base = next((row for row in rows if row["states"] == list(states)), None)
    others = [row for row in rows if row is not base]
    shifted = [[s + by for s in states] for by in (-1, 1)] if all(isinstance(s, int) for s in states) else []
    kept = [row for at, row in enumerate(others) if at < keep or row["states"] in shifted]
    return [] if base is None else [_of_choice(row, base, base is rows[0]) for row in kept]


def _of_choice(row: dict[str, Any], base: dict[str, Any], leading: bool) -> dict[str, Any]:
    behind = row.get("behind") if leading else None
    mean = row["row_accept_length"] - base["row_accept_length"]
    low, high = (-behind["high"], -behind["low"]) if behind and behind["low"] is not None else (None, None)
    return {
        "change": "states " + ", ".join(str(state) for state in row["states"]),
        "family": "states",
        "sets": {"states": row["states"]},
        "readings": [],
        "on": [],
        "row_accept_length": row["row_accept_length"],
        "accept_length": row["accept_length"],
        "row_survival": row["row_survival"],
        "survival": row["survival"],
        "low": plus(base["row_accept_length"], low),
        "high": plus(base["row_accept_length"], high),
        "difference": mean,
        "difference_low": low,
        "difference_high": high,
        "likelier": None,
        "likelier_low": None,
        "likelier_high": None,
        "clear": False,
        "rows": row["rows"],
        "rounds": row["rounds"],
        "exact": row["exact"],
    }


def _name(row: dict[str, Any]) -> str:
    return " + ".join((*row["on"], row["change"])) + (" (sees the answer)" if row.get("leaks") else "")
