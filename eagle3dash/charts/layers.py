"""Which layer combination fits: a bar with its interval for each ordered choice of states, best first.

Takes the `rows` of the command line's `sweep` JSON; knows no replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eagle3dash.charts.theme import ROLES, Chart, accept_axis, bar_style, figure, nothing, number, plain

MARKS = {"trained": "◆ trained", "served": "▲ served", "both": "◆▲ trained and served"}


def name_of(states: Sequence[Any]) -> str:
    """0, 2, 15 -> "0 · 2 · 15"."""
    return " · ".join(str(state) for state in states)


def combinations(
    rows: Sequence[dict[str, Any]],
    steps: int,
    trained: Sequence[Any] | None,
    served: Sequence[Any] | None,
    role: str = "training",
) -> Chart:
    """Bars of row_accept_length with low..high; the trained and the served combination stand out by text and fill."""
    marks = [_mark(row["states"], trained, served) for row in rows]
    fig = figure("Accept length of each layer combination, per row", 120 + 24 * max(3, len(rows)))
    for kind in ("", "trained", "served", "both"):
        chosen = [at for at, mark in enumerate(marks) if mark == kind]
        if chosen:
            _bars(fig, [rows[at] for at in chosen], chosen, kind, role)
    labels = [
        plain(name_of(row["states"])) + (f"  <b>{MARKS[mark]}</b>" if mark else "")
        for row, mark in zip(rows, marks, strict=True)
    ]
    fig.update_yaxes(
        tickmode="array", tickvals=list(range(len(rows))), ticktext=labels, range=[max(len(rows), 3) - 0.5, -0.5]
    )
    fig.update_xaxes(**accept_axis(steps))
    fig.update_layout(showlegend=False, barmode="overlay", bargap=0.3)
    if not rows:
        nothing(fig)
    caption = _sentence(rows, trained, served)
    table = tuple(
        {
            "rank": at + 1,
            "states": name_of(row["states"]),
            "mark": mark,
            "row_accept_length": row.get("row_accept_length"),
            "low": row.get("low"),
            "high": row.get("high"),
            "accept_length": row.get("accept_length"),
            "exact": row.get("exact"),
        }
        for at, (row, mark) in enumerate(zip(rows, marks, strict=True))
    )
    return Chart("layer-combinations", fig, caption, f"Bar chart. {caption}", table)


def _mark(states: Sequence[Any], trained: Sequence[Any] | None, served: Sequence[Any] | None) -> str:
    is_trained = trained is not None and list(states) == list(trained)
    is_served = served is not None and list(states) == list(served)
    return "both" if is_trained and is_served else "trained" if is_trained else "served" if is_served else ""


def _bars(fig: Any, rows: list[dict[str, Any]], places: list[int], kind: str, role: str) -> None:
    values = [row.get("row_accept_length") for row in rows]
    style = bar_style(ROLES["served" if kind == "served" else role])
    fig.add_bar(
        y=places,
        x=[None if v is None else v - 1 for v in values],
        base=1,
        orientation="h",
        marker={**style, "opacity": 1 if kind else 0.45},
        error_x={
            "type": "data",
            "symmetric": False,
            "thickness": 1.2,
            "width": 3,
            "color": "#8A8F98",
            "array": [_gap(row.get("high"), v) for row, v in zip(rows, values, strict=True)],
            "arrayminus": [_gap(v, row.get("low")) for row, v in zip(rows, values, strict=True)],
        },
        customdata=[_hover(row) for row in rows],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _gap(high: float | None, low: float | None) -> float:
    return 0.0 if high is None or low is None else max(0.0, high - low)


def _hover(row: dict[str, Any]) -> str:
    rows = f"<br>{row['rows']:,} rows" if row.get("rows") else ""
    how = "every row" if row.get("exact") else "a sample of rows"
    return (
        f"states {plain(name_of(row['states']))}<br>per row {number(row.get('row_accept_length'), 4)} "
        f"(95 %: {number(row.get('low'), 3)} to {number(row.get('high'), 3)}), {how}{rows}"
        f"<br>per round {number(row.get('accept_length'), 4)}"
    )


def _sentence(rows: Sequence[dict[str, Any]], trained: Sequence[Any] | None, served: Sequence[Any] | None) -> str:
    if not rows:
        return "No combination was tried."
    best = rows[0]
    text = f"Best: {name_of(best['states'])} with {number(best.get('row_accept_length'))} tokens per row"
    if len(rows) > 1:
        text += f", the next {name_of(rows[1]['states'])} with {number(rows[1].get('row_accept_length'))}"
    for word, states in (("Trained", trained), ("Served", served)):
        rank = next((at for at, row in enumerate(rows) if states is not None and list(row["states"]) == list(states)), None)
        if rank is not None:
            text += f". {word}: {name_of(states)} is number {rank + 1} with {number(rows[rank].get('row_accept_length'))}"
    return text + "."
