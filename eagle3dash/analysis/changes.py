"""The `changes` document: what each change gains or costs beside the drafter as it is, and the sweep's states among them.

Made of the stages that `analysis.trials` judges; for charts, reports and findings. What people read of it is in
`analysis.telling`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eagle3dash.analysis.acceptance import Tally, accept_length, survival
from eagle3dash.analysis.sweep import LIKELIER
from eagle3dash.analysis.trials import Stage, Trial

Row = dict[str, Any]
BASELINE = "baseline"
ELSEWHERE = "other states"  # what a dead drafter was tried with besides
UNCHANGED = {"training": "unchanged", "serving": "unchanged, as the server fed it"}


def baseline_row(tally: Tally) -> Row:
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


def document(capture: str, states: Sequence[Any], steps: int, stages: Sequence[Stage], best: Row | None) -> Row:
    """The `changes` document. rows: of the first stage; stacked: of those after it, on top of the best before.

    A row: change, family, sets, readings (known readings that come to the same), on, row_accept_length, low and high (95 %,
    with the baseline's number taken as given, 1 to K+1), difference, difference_low, difference_high (the same, minus the
    baseline's number), likelier and its interval (nats per row by which the text's own tokens are likelier at step 0,
    paired; null where other tokens can be drafted), rows, row_survival, accept_length and survival per round, clear (a gain
    beyond doubt), exact (every row; else a sample).
    best: {"changes", "sets", "states", and the numbers of a baseline} of everything that gains; None: as it is is best.
    """
    return {
        "capture": capture,
        "states": list(states),
        "steps": steps,
        "baseline": baseline_row(stages[0].baseline),
        "rows": _rows(stages[0], steps),
        "stacked": [row for stage in stages[1:] for row in _rows(stage, steps)],
        "best": best,
    }


def _rows(stage: Stage, steps: int) -> list[Row]:
    trials = {trial.told["change"]: trial for trial in stage.trials}
    base = accept_length(stage.baseline.counts.row_histogram)
    return [{**row, **_width(row, trials[row["change"]], base, steps)} for row in stage.rows()]


def _width(row: Row, trial: Trial, base: float | None, steps: int) -> Row:
    """Of a gain, the paired difference; of a loss, the share of the accepted tokens that is kept: a change that accepts
    nothing is as certain as the rows are many, however much texts differ."""
    if None in (base, row["difference"]):
        return {}
    if row["difference"] < 0.0 and (kept := trial.tally.share_of(trial.against)) is not None:
        return _kept(kept.low, kept.high, base, steps)
    return _between(base, base + row["difference_low"], base + row["difference_high"], steps)


def _kept(low: float, high: float, base: float, steps: int) -> Row:
    return _between(base, 1.0 + (base - 1.0) * low, 1.0 + (base - 1.0) * high, steps)


def _between(base: float, low: float, high: float, steps: int) -> Row:
    low, high = (min(max(bound, 1.0), steps + 1.0) for bound in (low, high))
    return {"low": low, "high": high, "difference_low": low - base, "difference_high": high - base}


# ---- among the others: states of the sweep -------------------------------------------------------------------------


def from_sweep(
    rows: Iterable[Row], states: Sequence[Any], steps: int, keep: int = 3, always: Sequence[Sequence[Any] | None] = ()
) -> list[Row]:
    """Rows of the `sweep` document as changes of the states: the best others, those with ids one up or down, `always`."""
    rows = [row for row in rows if row["row_accept_length"] is not None]
    base = next((row for row in rows if row["states"] == list(states)), None)
    others = [row for row in rows if row is not base]
    wanted = [[s + by for s in states] for by in (-1, 1)] if all(isinstance(s, int) for s in states) else []
    wanted += [list(each) for each in always if each is not None]
    kept = [row for at, row in enumerate(others) if at < keep or row["states"] in wanted]
    return [] if base is None else [_of_choice(row, base, steps, base is rows[0]) for row in kept]


def _of_choice(row: Row, base: Row, steps: int, leading: bool) -> Row:
    """Paired where the baseline leads the sweep, for all others are paired with that; else by its own interval."""
    length = base["row_accept_length"]
    width = {"low": row["low"], "high": row["high"], "difference_low": None, "difference_high": None}
    if leading and row.get("kept"):
        width = _kept(row["kept"]["low"], row["kept"]["high"], length, steps)
    names = ("row_accept_length", "accept_length", "row_survival", "survival", "rows", "rounds", "exact")
    return {
        "change": "states " + ", ".join(str(state) for state in row["states"]),
        "family": "states",
        "sets": {"states": row["states"]},
        "readings": [],
        "on": [],
        **{name: row[name] for name in names},
        **width,
        "difference": row["row_accept_length"] - length,
        **_likelier(row.get("less_likely"), base.get("less_likely")),
        "clear": False,
    }


def _likelier(row: Mapping[str, Any] | None, base: Mapping[str, Any] | None) -> Row:
    """Against the baseline, where that is the likeliest, with which all others are paired."""
    if not row or not base or base["mean"] != 0.0 or row["mean"] is None:
        return {"likelier": None, "likelier_low": None, "likelier_high": None}
    return {"likelier": -row["mean"], "likelier_low": -row["high"], "likelier_high": -row["low"]}


# ---- in order --------------------------------------------------------------------------------------------------------


def by_capture(
    documents: Mapping[str, Row],
    sweep: Mapping[str, Any] | None,
    declared: Sequence[Any] | None,
    served: Sequence[Any] | None,
) -> dict[str, list[Row]]:
    """The rows of each capture's document, in order (see `ranked`)."""
    rows = sweep["rows"] if sweep else ()
    return {role: ranked(found, rows if role == "training" else (), declared, served) for role, found in documents.items()}


def ranked(
    found: Row,
    swept: Iterable[Row] = (),
    declared: Sequence[Any] | None = None,
    served: Sequence[Any] | None = None,
) -> list[Row]:
    """Every row of a `changes` document in order, the drafter as it is among them (family "baseline"): by accept length,
    but what makes no difference comes after what it changes. In stacked rows "on" names the changes made before, and
    difference is to those. Each has besides: name, marks ("declared", "served": whose states they are; also the sweep's row
    of them), outcome (see `outcome`) and best ("single", "pair" or None)."""
    base = _baseline(found)
    known = [row["sets"].get("states") for row in found["rows"]]
    more = from_sweep(swept, found["states"], found["steps"], 0, (declared, served))
    stacked = [{**row, "on": row["on"] or [ELSEWHERE]} for row in found["stacked"]]
    whose = {"declared": declared, "served": served} if found["capture"] == "training" else {}
    rows = [base, *found["rows"], *(row for row in more if row["sets"]["states"] not in known), *stacked]
    rows = [{**row, **_named(row, found["capture"], whose), "best": None} for row in rows]
    _mark_best(rows, (found["best"] or {}).get("changes") or [])
    return sorted(rows, key=_place)


def _baseline(found: Row) -> Row:
    base = {"change": "", "family": BASELINE, "sets": {}, "readings": [], "on": [], "clear": False, "exact": True}
    for name in ("difference", "likelier"):
        base |= {name: 0.0, f"{name}_low": 0.0, f"{name}_high": 0.0}
    return {**base, "states": found["states"], **found["baseline"]}


def _named(row: Row, capture: str, whose: Mapping[str, Sequence[Any] | None]) -> Row:
    states = row.get("states") or row["sets"].get("states")
    marks = [mark for mark, its in whose.items() if its is not None and states == list(its)]
    name = " + ".join((*row["on"], row["change"]))
    if row["family"] == BASELINE:
        told = f", states {', '.join(map(str, states))}" if capture == "training" else ""
        name = UNCHANGED[capture] + told
    return {"name": name + (f" ({' and '.join(marks)})" if marks else ""), "marks": marks, "outcome": outcome(row)}


def outcome(row: Row) -> str:
    """What a row shows, in words: unchanged, gains, likelier (by likelihood, beyond doubt), no clear difference, less
    likely, loses, "gains, too little to tell", "sees the answer" (no gain), or not paired."""
    low, high = row["difference_low"], row["difference_high"]
    if row["family"] == BASELINE:
        return "unchanged"
    if row.get("leaks"):
        return "sees the answer"
    if row["clear"]:
        return "gains" if low > 0.0 or row["likelier"] is None or row["likelier_low"] <= 0.0 else "likelier"
    likelier = row["likelier"]
    if (low is None or low <= 0.0 <= high) and likelier is not None and likelier <= -LIKELIER and row["likelier_high"] < 0:
        return "less likely"
    if low is None:
        return "not paired"
    return "gains, too little to tell" if low > 0.0 else "loses" if high < 0.0 else "no clear difference"


def _place(row: Row) -> tuple[float, int, float]:
    """By accept length; what is no better than the one that it changes right after that, what gains before it."""
    length, changed = row["row_accept_length"] or 0.0, (row["row_accept_length"] or 0.0) - (row["difference"] or 0.0)
    level = length
    if row["clear"]:
        level = max(length, changed)
    elif row["outcome"] in ("no clear difference", "less likely", "not paired"):
        level = min(length, changed)
    return -round(level, 9), 0 if row["clear"] else 1 if row["family"] == BASELINE else 2, -length


def _mark_best(rows: Iterable[Row], made: Sequence[str]) -> None:
    """The best single change and the best pair, whether they gain or not: those that were chosen where something gains."""
    able = [row for row in rows if row["family"] != BASELINE and not row.get("leaks") and row["difference"] is not None]
    singles = [row for row in able if not row["on"] and len(row["sets"]) == 1]
    pairs = [row for row in able if len(row["on"]) + len(row["sets"]) == 2 and row not in singles]
    if singles:
        best = max(singles, key=lambda row: (row["clear"], row["change"] in made[:1], row["difference"]))
        best["best"] = "single"
    if pairs:
        chosen = [list(made[:2]), list(made[:1])]
        best = max(
            pairs,
            key=lambda row: (
                row["clear"],
                [*row["on"], row["change"]] in chosen,
                row["row_accept_length"] if row["clear"] or not row["on"] else 0.0,
            ),
        )
        best["best"] = "pair"
