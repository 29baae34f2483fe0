"""Which layer combination fits: a bar with its interval for each ordered choice of states, best first.

Takes the `rows` of the command line's `sweep` JSON; knows no replay. Labels stand above the bars, so that a narrow page
leaves room for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eagle3dash.analysis.sweep import as_good, as_many
from eagle3dash.charts.theme import ROLES, Chart, accept_axis, bar_style, figure, label_above, nothing, number, plain

MARKS = {"trained": "◆ trained", "served": "▲ served", "both": "◆▲ trained and served"}
HEIGHT = 36  # of a bar with its label


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
    fig = figure("Accept length of each layer combination", 108 + HEIGHT * max(3, len(rows)))
    for kind in ("", "trained", "served", "both"):
        chosen = [at for at, mark in enumerate(marks) if mark == kind]
        if chosen:
            _bars(fig, [rows[at] for at in chosen], chosen, kind, role)
    for at, (row, mark) in enumerate(zip(rows, marks, strict=True)):
        label_above(fig, at, plain(name_of(row["states"])), MARKS.get(mark, ""))
    fig.update_yaxes(visible=False, range=[max(len(rows), 3) - 0.5, -0.6])
    fig.update_xaxes(**accept_axis(steps, "accept length per row"))
    fig.update_layout(showlegend=False, barmode="overlay")
    if not rows:
        nothing(fig)
    caption = _sentence(rows, trained, served)
    table = tuple(_columns(at, row, mark) for at, (row, mark) in enumerate(zip(rows, marks, strict=True)))
    return Chart("layer-combinations", fig, caption, f"Bar chart. {caption}", table)


def _columns(at: int, row: dict[str, Any], mark: str) -> dict[str, Any]:
    behind, less = row.get("behind") or {}, row.get("less_likely") or {}
    return {
        "rank": at + 1,
        "states": name_of(row["states"]),
        "mark": mark,
        **{name: row.get(name) for name in ("row_accept_length", "low", "high")},
        **{f"behind_{name}" if name != "mean" else "behind": behind.get(name) for name in ("mean", "low", "high")},
        "log_likelihood": row.get("log_likelihood"),
        **{f"less_likely_{name}" if name != "mean" else "less_likely": less.get(name) for name in ("mean", "low", "high")},
        "accept_length": row.get("accept_length"),
        "rows": row.get("rows"),
        "exact": row.get("exact"),
    }


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
        width=0.36,
        offset=0.02,
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
    how = "every row" if row.get("exact") else "a sample of rows"
    lines = [
        f"states {plain(name_of(row['states']))}",
        f"per row {number(row.get('row_accept_length'), 4)} (95 %: {_spread(row)}), {how}",
        f"per round {number(row.get('accept_length'), 4)}",
    ]
    if row.get("behind"):
        lines.insert(
            2, f"{number(row['behind']['mean'], 3)} behind the first on the same rows (95 %: {_spread(row['behind'])})"
        )
    if (row.get("less_likely") or {}).get("mean") is not None:
        less = row["less_likely"]
        lines.append(f"text's own tokens {number(less['mean'], 3)} nats a row less likely (95 %: {_spread(less)})")
    return "<br>".join([*lines, f"{row['rows']:,} rows"] if row.get("rows") else lines)


def _spread(found: dict[str, Any]) -> str:
    return f"{number(found.get('low'), 3)} to {number(found.get('high'), 3)}"


def _sentence(rows: Sequence[dict[str, Any]], trained: Sequence[Any] | None, served: Sequence[Any] | None) -> str:
    if not rows:
        return "No combination was tried."
    best = rows[0]
    text = f"Best: {name_of(best['states'])} with {number(best.get('row_accept_length'))} tokens per row"
    if len(rows) > 1:
        text += f", the next {name_of(rows[1]['states'])} with {number(rows[1].get('row_accept_length'))}"
    text += _alike(rows)
    for word, states in (("Trained", trained), ("Served", served)):
        rank = next((at for at, row in enumerate(rows) if states is not None and list(row["states"]) == list(states)), None)
        if rank is not None:
            text += f". {word}: {name_of(states)} is number {rank + 1} with {number(rows[rank].get('row_accept_length'))}"
    return text + ". Intervals are 95 %, of each bar by itself; on the same rows differences are surer than they look."


def _alike(rows: Sequence[dict[str, Any]]) -> str:
    """What tokens and likelihood say of those that accept alike."""
    if None in (rows[0].get("low"), rows[0].get("row_accept_length")):
        return ""
    many, good = as_many(rows), as_good(rows)
    if len(many) < 2:
        return ""
    first, told = good[0], [row for row in many if row not in good]
    text = f". Within chance {', '.join(name_of(row['states']) for row in many[:4])} accept alike"
    if len(many) > 4:
        text += f", and {len(many) - 4} more"
    if told:
        less = min(row["less_likely"]["mean"] for row in told)
        others = name_of(told[0]["states"]) if len(told) == 1 else f"{len(told)} of them"
        text += f"; likelihood tells {others} apart: with {name_of(first['states'])} the text's own tokens are likelier by "
        text += f"{number(less)} nats a row" + (" or more" if len(told) > 1 else "")
    if len(good) > 1:
        text += f"; {' and '.join(name_of(row['states']) for row in good[:3])} are as good as each other"
    return text
