"""Runs side by side: their four numbers on one axis. Distributions of several runs come from `charts.acceptance`.

Takes the `numbers` of the command line's `diagnose` JSON; knows no runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eagle3dash.charts.acceptance import Series
from eagle3dash.charts.theme import ROLES, RUNS, Chart, accept_axis, figure, nothing, number, plain

COUNTED = {  # number of the diagnosis -> role, how it is counted
    "expected": ("expected", "per row"),
    "replayed_training_rows": ("training", "per row"),
    "replayed_training": ("training", "per round"),
    "replayed_serving": ("serving", "per round"),
    "served": ("served", "per round"),
}
LANES = {"expected": -0.27, "training": -0.09, "serving": 0.09, "served": 0.27}  # apart, so that equal numbers are all seen


def run_series(names: Sequence[str], documents: Sequence[dict[str, Any]]) -> list[Series]:
    """Runs in the fixed order of the comparison's looks, as series of `charts.acceptance`."""
    return [Series(name, RUNS[at % len(RUNS)], doc) for at, (name, doc) in enumerate(zip(names, documents, strict=True))]


def numbers(runs: Sequence[tuple[str, dict[str, float | None]]], steps: int) -> Chart:
    """One line a run, one mark a number, one axis 1 .. K+1 for all. Hollow marks are per row, full ones per round."""
    fig, rows, names = figure("The four numbers of each run", 190 + 52 * max(1, len(runs))), [], [name for name, _ in runs]
    for key, (role, counted) in COUNTED.items():
        look = ROLES[role]
        known = [(name, values.get(key)) for name, values in runs if values.get(key) is not None]
        rows += [
            {"run": name, "number": key, "counted": counted, "accept_length": values.get(key)} for name, values in runs
        ]
        if not known:
            continue
        hollow = counted == "per row"
        fig.add_scatter(
            x=[value for _, value in known],
            y=[names.index(name) + LANES[role] for name, _ in known],
            text=[plain(name) for name, _ in known],
            mode="markers",
            name=f"{look.label}, {counted}",
            marker={
                "color": look.colour,
                "symbol": look.symbol + ("-open" if hollow else ""),
                "size": 13,
                "line": {"width": 2, "color": look.colour},
            },
            hovertemplate="%{text}: %{x:.4f}" + f"<extra>{look.label}, {counted}</extra>",
        )
    fig.update_xaxes(**accept_axis(steps))
    fig.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(runs))),
        ticktext=[plain(name, 24) for name in names],
        range=[max(1, len(runs)) - 0.45, -0.55],
    )
    fig.update_layout(showlegend=True, legend={"y": -0.3 - 0.6 / max(1, len(runs))})
    if not any(row["accept_length"] is not None for row in rows):
        nothing(fig)
    caption = " ".join(_sentence(name, values) for name, values in runs)
    return Chart("runs", fig, caption, f"Dot chart. {caption}", tuple(rows))


def _sentence(name: str, values: dict[str, float | None]) -> str:
    return (
        f"{name}: served {number(values.get('served'))}, replayed on serving features "
        f"{number(values.get('replayed_serving'))}, on training features {number(values.get('replayed_training'))}."
    )
