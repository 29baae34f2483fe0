"""Do the serving features equal the training features: a cell for each pair of states, and the course over position.

Takes the `cells` of the command line's `features` JSON; knows neither captures nor layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from eagle3dash.charts.theme import NO_DATA, RUNS, Chart, figure, line_style, nothing, number, plain

QUANTITIES = {
    "cosine": "cosine similarity",
    "relative_error": "relative error",
    "norm_ratio": "norm ratio, serving / training",
}
VALUES_FIT = 24  # states a side up to which a number fits into its cell


def best_matches(cells: Sequence[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """serving_slot -> the cell of its best training state: the smallest relative error, else the largest cosine."""
    best: dict[int, dict[str, Any]] = {}
    for cell in cells:
        if cell.get("cosine") is None:
            continue
        held = best.get(cell["serving_slot"])
        if held is None or _misfit(cell) < _misfit(held):
            best[cell["serving_slot"]] = cell
    return best


def _misfit(cell: dict[str, Any]) -> tuple[float, float]:
    error = cell.get("relative_error")
    return (math.inf if error is None else error, -cell["cosine"])


def heatmap(
    cells: Sequence[dict[str, Any]],
    quantity: str,
    training: Sequence[tuple[Any, str]],
    serving: Sequence[tuple[Any, str]],
    tokens: int | None = None,
) -> Chart:
    """training states (rows) x serving slots (columns). training, serving: (id used in `cells`, name to show) in order."""
    by_pair = {(cell["training_state"], cell["serving_slot"]): cell for cell in cells}
    values = [[by_pair.get((t, s), {}).get(quantity) for s, _ in serving] for t, _ in training]  # [T, V]
    best = best_matches(cells)
    fig = figure(f"{QUANTITIES[quantity].capitalize()} of states", 150 + 46 * max(3, min(len(training), 12)))
    fits = max(len(training), len(serving)) <= VALUES_FIT
    marks = [
        [_mark(values[r][c], best.get(s, {}).get("training_state") == t) for c, (s, _) in enumerate(serving)]
        for r, (t, _) in enumerate(training)
    ]
    scaled, scale = _scaled(values, quantity)
    fig.add_heatmap(
        z=scaled,
        x=list(range(len(serving))),
        y=list(range(len(training))),
        **scale,
        xgap=2,
        ygap=2,
        customdata=marks,
        text=marks if fits else None,
        texttemplate="%{text}" if fits else None,
        hoverongaps=True,
        hovertemplate="training %{y}, serving %{x}: %{customdata}" + f" ({_tokens(tokens)})<extra></extra>",
    )
    _outline(fig, best, [t for t, _ in training], [s for s, _ in serving])
    fig.update_xaxes(
        title="fed in serving, slot",
        tickvals=list(range(len(serving))),
        ticktext=[plain(n) for _, n in serving],
        showgrid=False,
    )
    fig.update_yaxes(
        title="in training, state",
        tickvals=list(range(len(training))),
        ticktext=[plain(n) for _, n in training],
        autorange="reversed",
        showgrid=False,
    )
    if not cells:
        nothing(fig)
    caption = _heatmap_sentence(best, dict(training), dict(serving), tokens)
    rows = tuple({**cell, "best_match": best.get(cell["serving_slot"]) is cell} for cell in cells)
    return Chart("state-similarity", fig, caption, f"Heatmap. {caption}", rows)


def _mark(value: float | None, is_best: bool) -> str:
    text = NO_DATA if value is None else f"{value:.3f}"
    return f"★ {text}" if is_best else text


def _tokens(tokens: int | None) -> str:
    return "mean over aligned tokens" if tokens is None else f"mean over {tokens:,} aligned tokens"


def _scaled(values: list[list[float | None]], quantity: str) -> tuple[list[list[float | None]], dict[str, Any]]:
    """Colour value of each cell, and the fixed scale it lies on: a colour means the same in every run."""
    if quantity == "norm_ratio":  # doubled and halved lie equally far from 1
        logs = [[None if not v else math.log2(v) for v in row] for row in values]
        bar = {"tickvals": [-3, 0, 3], "ticktext": ["⅛", "1", "8"], "thickness": 10}
        return logs, {"zmin": -3, "zmax": 3, "colorscale": "RdBu", "colorbar": bar}
    scale = "Cividis" if quantity == "cosine" else "Cividis_r"
    return values, {
        "zmin": 0,
        "zmax": 1 if quantity == "cosine" else 1.5,
        "colorscale": scale,
        "colorbar": {"thickness": 10},
    }


def _outline(fig: go.Figure, best: dict[Any, dict[str, Any]], training: list[Any], serving: list[Any]) -> None:
    for slot, cell in best.items():
        if slot in serving and cell["training_state"] in training:
            x, y = serving.index(slot), training.index(cell["training_state"])
            for colour, width in (("white", 5), ("black", 2)):  # seen on the dark and the bright end of the scale
                fig.add_shape(
                    type="rect", x0=x - 0.47, x1=x + 0.47, y0=y - 0.45, y1=y + 0.45, line={"color": colour, "width": width}
                )


def _heatmap_sentence(
    best: dict[Any, dict[str, Any]], training: dict[Any, str], serving: dict[Any, str], tokens: int | None
) -> str:
    if not best:
        return "No state of serving could be compared with a state of training."
    parts = [
        f"{serving.get(slot, slot)} is closest to {training.get(cell['training_state'], cell['training_state'])} "
        f"(cosine {number(cell['cosine'], 3)}, relative error {number(cell.get('relative_error'), 3)})"
        for slot, cell in best.items()
    ]
    return f"★ marks the best match of each slot: {'; '.join(parts)}; {_tokens(tokens)}."


def over_position(points: Sequence[dict[str, Any]], quantity: str) -> Chart:
    """Similarity along the text. points: dicts with pair (name), position, value, tokens; one line a pair."""
    fig = figure(f"{QUANTITIES[quantity].capitalize()} over position")
    pairs = list(dict.fromkeys(point["pair"] for point in points))
    for at, pair in enumerate(pairs):
        mine = [point for point in points if point["pair"] == pair]
        fig.add_scatter(
            x=[p["position"] for p in mine],
            y=[p["value"] for p in mine],
            name=plain(pair),
            mode="lines+markers",
            connectgaps=False,
            **line_style(RUNS[at % len(RUNS)]),
            customdata=[p.get("tokens") for p in mine],
            hovertemplate="position %{x}: %{y:.4f} (%{customdata} tokens)" + f"<extra>{plain(pair)}</extra>",
        )
        fig.update_traces(marker={"size": 5}, selector={"type": "scatter"})
    fig.update_xaxes(title="position in the text, tokens")
    fig.update_yaxes(title=QUANTITIES[quantity])
    if quantity == "cosine":
        fig.update_yaxes(range=[min([0.0] + [p["value"] for p in points if p["value"] is not None]), 1.03])
    if not points:
        nothing(fig)
    caption = " ".join(
        _course(pair, [p for p in points if p["pair"] == pair and p["value"] is not None], quantity) for pair in pairs
    )
    caption = caption or "No positions could be compared."
    return Chart("similarity-over-position", fig, caption, f"Line chart. {caption}", tuple(points))


def _course(pair: str, points: list[dict[str, Any]], quantity: str) -> str:
    if not points:
        return f"{pair}: no data."
    values = [p["value"] for p in points]
    worst = (min if quantity == "cosine" else max)(points, key=lambda p: p["value"])
    span = f"between {number(min(values), 3)} and {number(max(values), 3)}"
    return f"{pair}: {span}, worst at position {worst['position']:,.0f}."
