"""What one change does: a bar for each, best first, with the interval of its paired difference, and the drafter as it is.

Takes the rows of the `changes` part of the diagnosis; knows no replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eagle3dash.charts.theme import NEUTRAL, ROLES, Chart, accept_axis, bar_style, figure, nothing, number, plain

MOST = 16  # bars
BASELINE = "baseline"
NUMBERS = ("difference", "difference_low", "difference_high", "accept_length", "rows", "exact")


def drawn(rows: Sequence[dict[str, Any]], most: int = MOST) -> list[dict[str, Any]]:
    """The rows worth a bar, best first: the drafter as it is, the best of each family, then the best of all.

    Of changes on top of others only those that gain on the drafter as it is.
    """
    base = next((row["row_accept_length"] or 1.0 for row in rows if row["family"] == BASELINE), 1.0)
    able = [row for row in rows if not row["on"] or (row["clear"] and (row["row_accept_length"] or 0.0) > base)]
    first = {row["family"]: at for at, row in reversed(list(enumerate(able)))}
    kept = sorted(first.values(), key=lambda at: (able[at]["family"] != BASELINE, at))[:most]
    kept += [at for at in range(len(able)) if at not in kept][: most - len(kept)]
    return [able[at] for at in sorted(kept)]


def changes(rows: Sequence[dict[str, Any]], steps: int, role: str = "training") -> Chart:
    """Bars of row_accept_length with low..high; the baseline as a line, and what gains beyond doubt marked."""
    bars = drawn(rows)
    fig = figure(f"One thing changed, {role} features, per row", 120 + 24 * max(3, len(bars)))
    _bars(fig, bars, role)
    base = next((row for row in rows if row["family"] == BASELINE), None)
    if base is not None and base["row_accept_length"] is not None:
        fig.add_vline(x=base["row_accept_length"], line={"color": NEUTRAL, "dash": "dot", "width": 1.5})
    labels = [plain(row["name"], 60) + ("  <b>▲ gains</b>" if row["clear"] else "") for row in bars]
    fig.update_yaxes(
        tickmode="array", tickvals=list(range(len(bars))), ticktext=labels, range=[max(len(bars), 3) - 0.5, -0.5]
    )
    fig.update_xaxes(**accept_axis(steps))
    fig.update_layout(showlegend=False, bargap=0.3)
    if not bars:
        nothing(fig)
    caption = _sentence(rows, base, role)
    table = tuple(
        {"change": row["name"], "family": row["family"], "row_accept_length": row["row_accept_length"]}
        | {"low": row["low"], "high": row["high"], **{name: row.get(name) for name in NUMBERS}}
        for row in rows
    )
    return Chart(f"changes-{role}", fig, caption, f"Bar chart. {caption}", table)


def _bars(fig: Any, rows: Sequence[dict[str, Any]], role: str) -> None:
    values = [row["row_accept_length"] for row in rows]
    style = bar_style(ROLES[role])
    fig.add_bar(
        y=list(range(len(rows))),
        x=[None if value is None else value - 1 for value in values],
        base=1,
        orientation="h",
        marker={**style, "opacity": [1 if row["clear"] or row["family"] == BASELINE else 0.45 for row in rows]},
        error_x={
            "type": "data",
            "symmetric": False,
            "thickness": 1.2,
            "width": 3,
            "color": NEUTRAL,
            "array": [_gap(row["high"], value) for row, value in zip(rows, values, strict=True)],
            "arrayminus": [_gap(value, row["low"]) for row, value in zip(rows, values, strict=True)],
        },
        customdata=[_hover(row) for row in rows],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _gap(high: float | None, low: float | None) -> float:
    return 0.0 if high is None or low is None else max(0.0, high - low)


def _hover(row: dict[str, Any]) -> str:
    how = "every row" if row["exact"] else "a sample"
    width = f"{number(row['difference_low'])} to {number(row['difference_high'])}"
    return (
        f"{plain(row['name'], 90)}<br>per row {number(row['row_accept_length'], 4)}, {number(row['difference'])} against "
        f"the one it changes (95 %: {width}), {how}, {row['rows']:,} rows<br>per round {number(row['accept_length'], 4)}"
    )


def _sentence(rows: Sequence[dict[str, Any]], base: dict[str, Any] | None, role: str) -> str:
    if base is None:
        return "Nothing was tried."
    start = f"On {role} features the drafter as its files say gives {number(base['row_accept_length'])} tokens per row"
    best = next((row for row in rows if row["clear"]), None)
    singles = [row for row in rows if not row["on"] and row is not base]
    if best is not None:
        return f"{start}; with {best['name']} it gives {number(best['row_accept_length'])}."
    worst = min(singles, key=lambda row: row["row_accept_length"] or 0.0, default=None)
    note = "; the state of a later token sees the answer, which is no gain" if any(r.get("leaks") for r in rows) else ""
    rest = f" (from {number(worst['row_accept_length'])}, {worst['change']})" if worst is not None else ""
    told = f"{start}, and none of {len(singles)} changes gains anything beyond doubt{rest}{note}."
    return f"{told} Intervals of changes are those of the difference on the same rows."
