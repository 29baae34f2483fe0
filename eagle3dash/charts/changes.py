"""What each change does: a bar for each, best first, with the interval of its difference, and the drafter unchanged.

Takes the rows of the `changes` part of the diagnosis; knows no replay. Labels stand above the bars, so that a narrow page
leaves room for them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from eagle3dash.analysis import telling
from eagle3dash.analysis.wording import signed
from eagle3dash.charts.theme import (
    NEUTRAL,
    ROLES,
    Chart,
    accept_axis,
    bar_style,
    figure,
    label_above,
    nothing,
    number,
    plain,
)

MOST = 14  # bars
BASELINE = telling.BASELINE
SIGNS = {
    "gains": "▲ gains",
    "likelier": "▲ likelier",
    "no clear difference": "≈ no clear difference",
    "less likely": "▼ less likely",
    "sees the answer": "sees the answer",
}
HEIGHT = 38  # of a bar with its label


def drawn(rows: Sequence[dict[str, Any]], most: int = MOST) -> list[dict[str, Any]]:
    """The rows worth a bar, in order: the drafter as it is, what is declared or served, the best single change and pair,
    the best of each family, then the best of all.

    Of changes on top of others only those that gain on the drafter as it is.
    """
    base = next((row["row_accept_length"] or 1.0 for row in rows if row["family"] == BASELINE), 1.0)
    able = [row for row in rows if not row["on"] or (row["clear"] and (row["row_accept_length"] or 0.0) > base)]
    first = {row["family"]: at for at, row in reversed(list(enumerate(able)))}
    wanted = sorted(first.values(), key=lambda at: (_rank(able[at]), at))
    always = [at for at, row in enumerate(able) if _rank(row) < 2]
    kept = list(dict.fromkeys([*always, *wanted, *range(len(able))]))[:most]
    return [able[at] for at in sorted(kept)]


def _rank(row: dict[str, Any]) -> int:
    return 0 if row["family"] == BASELINE else 1 if row["marks"] or row["best"] else 2


def changes(rows: Sequence[dict[str, Any]], steps: int, role: str = "training") -> Chart:
    """Bars of row_accept_length with low..high; the drafter unchanged as a line, and what gains beyond doubt marked."""
    bars = drawn(rows)
    fig = figure(f"What each change does, {role} features", 108 + HEIGHT * max(3, len(bars)))
    _bars(fig, bars, role)
    base = telling.base_of(rows)
    if base is not None and base["row_accept_length"] is not None:
        fig.add_vline(x=base["row_accept_length"], layer="below", line={"color": NEUTRAL, "dash": "dot", "width": 1.5})
    for at, row in enumerate(bars):
        label_above(fig, at, plain(row["name"], 90), SIGNS.get(row["outcome"], ""))
    fig.update_yaxes(visible=False, range=[max(len(bars), 3) - 0.5, -0.6])
    fig.update_xaxes(**accept_axis(steps, "accept length per row"))
    fig.update_layout(showlegend=False)
    if not bars:
        nothing(fig)
    caption = _caption(rows, bars, role)
    table = tuple(telling.columns(row) for row in rows)
    return Chart(f"changes-{role}", fig, caption, f"Bar chart. {caption}", table)


def _caption(rows: Sequence[dict[str, Any]], bars: Sequence[dict[str, Any]], role: str) -> str:
    told = list(telling.told(rows, role))
    if any(row.get("leaks") for row in bars):
        told.append("The state of a later token sees the answer, which is no gain.")
    if len(bars) < len(rows):
        told.append(f"{len(bars)} of {len(rows)} are drawn, the best of each kind; the table has all.")
    return " ".join([*told, telling.intervals(rows)]).strip()


def _bars(fig: Any, rows: Sequence[dict[str, Any]], role: str) -> None:
    values = [row["row_accept_length"] for row in rows]
    told = [_whisker(row) for row in rows]
    fig.add_bar(
        y=list(range(len(rows))),
        x=[None if value is None else value - 1 for value in values],
        base=1,
        width=0.36,
        offset=0.02,
        orientation="h",
        marker={
            **bar_style(ROLES[role]),
            "opacity": [1 if row["clear"] or row["family"] == BASELINE else 0.45 for row in rows],
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "thickness": 1.2,
            "width": 3,
            "color": NEUTRAL,
            "array": [_gap(high, value) for (_, high), value in zip(told, values, strict=True)],
            "arrayminus": [_gap(value, low) for (low, _), value in zip(told, values, strict=True)],
        },
        customdata=[_hover(row) for row in rows],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _whisker(row: dict[str, Any]) -> tuple[float | None, float | None]:
    """Differences to the drafter unchanged have intervals; that of itself is none."""
    return (None, None) if row["family"] == BASELINE else (row["low"], row["high"])


def _gap(high: float | None, low: float | None) -> float:
    return 0.0 if high is None or low is None else max(0.0, high - low)


def _hover(row: dict[str, Any]) -> str:
    how = "every row" if row["exact"] else "a sample"
    lines = [f"<b>{plain(row['name'], 90)}</b>"]
    lines += textwrap.wrap(plain(telling.means(row), 240), 70)
    lines.append(f"per row {number(row['row_accept_length'], 4)} (95 %: {_pair(row['low'], row['high'], number)})")
    if row["family"] != BASELINE:
        against = row["on"][-1] if row["on"] else "unchanged"
        width = _pair(row["difference_low"], row["difference_high"], signed)
        lines.append(f"{signed(row['difference'])} against {plain(against)} (95 %: {width}): {row['outcome']}")
        likely = _pair(row["likelier_low"], row["likelier_high"], signed)
        lines.append(f"text's own tokens likelier by {signed(row['likelier'])} nats a row (95 %: {likely})")
    return "<br>".join([*lines, f"per round {number(row['accept_length'], 4)}; {how}, {row['rows']:,} rows"])


def _pair(low: float | None, high: float | None, words: Any) -> str:
    return "no interval" if low is None or high is None else f"{words(low, 3)} to {words(high, 3)}"
