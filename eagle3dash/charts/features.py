"""Do the serving features equal the training features: a cell for each pair of states, and the course over position.

Takes the `cells` of the command line's `features` JSON; knows neither captures nor layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from eagle3dash.charts.theme import FAULT, NO_DATA, RUNS, Chart, figure, line_style, nothing, number, plain

QUANTITIES = {
    "cosine": "cosine similarity",
    "relative_error": "relative error",
    "norm_ratio": "norm ratio, serving / training",
}
MEANING = (
    "Cosine similarity: same direction, 1 is equal. Relative error: length of the difference over the length of the "
    "training state, 0 is equal. Norm ratio: length in serving over length in training, 1 is equal. Each is a mean over "
    "aligned tokens."
)
MOST_MARKS = 40  # chunk boundaries drawn
VALUES_FIT = 24  # states a side up to which a number fits into its cell


def state_name(label: Any) -> str:
    """HF[15] for a known state; a slot whose state nobody knows keeps its own name, s1."""
    return f"HF[{label}]" if isinstance(label, int) else str(label)


def heatmap(document: dict[str, Any], quantity: str) -> Chart:
    """training states (rows) x serving slots (columns) of a `features` document, a number in each cell while it fits."""
    training = [state_name(label) for label in document["training_states"]]  # N rows
    serving = [
        f"slot {slot}<br>{plain(state_name(label))}" for slot, label in enumerate(document["serving_states"])
    ]  # M columns
    cells = {(cell["training_slot"], cell["serving_slot"]): cell for cell in document["cells"]}
    best = {cell["serving_slot"]: cell["training_slot"] for cell in document["best_cells"] if cell["matches"]}
    values = [[cells[n, m][quantity] for m in range(len(serving))] for n in range(len(training))]  # [N, M]
    marks = [[_mark(value, best.get(m) == n) for m, value in enumerate(row)] for n, row in enumerate(values)]
    fig = figure(f"{QUANTITIES[quantity].capitalize()} of states", 170 + 46 * max(3, min(len(training), 12)))
    fits = max(len(training), len(serving)) <= VALUES_FIT
    scaled, scale = _scaled(values, quantity)
    fig.add_heatmap(
        z=scaled,
        x=list(range(len(serving))),
        y=list(range(len(training))),
        xgap=2,
        ygap=2,
        text=marks if fits else None,
        texttemplate="%{text}" if fits else None,
        customdata=[
            [f"{training[n]} in training, slot {m} in serving: {mark}" for m, mark in enumerate(row)]
            for n, row in enumerate(marks)
        ],
        hovertemplate="%{customdata}<br>" + f"mean over {document['aligned_tokens']:,} aligned tokens<extra></extra>",
        **scale,
    )
    _outline(fig, best)
    fig.update_xaxes(
        title="fed in serving, as the engine names it", tickvals=list(range(len(serving))), ticktext=serving, showgrid=False
    )
    fig.update_yaxes(
        title="in training",
        tickvals=list(range(len(training))),
        ticktext=[plain(name) for name in training],
        showgrid=False,
        autorange="reversed",
    )
    if not cells:
        nothing(fig)
    caption = _heatmap_sentence(document)
    rows = tuple(
        {**cell, "best_match": best.get(cell["serving_slot"]) == cell["training_slot"]} for cell in document["cells"]
    )
    return Chart("state-similarity", fig, caption, f"Heatmap. {caption}", rows)


def _mark(value: float | None, is_best: bool) -> str:
    text = NO_DATA if value is None else f"{value:.3f}"
    return f"★ {text}" if is_best else text


def _scaled(values: list[list[float | None]], quantity: str) -> tuple[list[list[float | None]], dict[str, Any]]:
    """Colour value of each cell, and the fixed scale it lies on: a colour means the same in every run."""
    if quantity == "norm_ratio":  # doubled and halved lie equally far from 1
        logs = [[None if not v else math.log2(v) for v in row] for row in values]
        bar = {"tickvals": [-3, 0, 3], "ticktext": ["⅛", "1", "8"], "thickness": 10}
        return logs, {"zmin": -3, "zmax": 3, "colorscale": "RdBu", "colorbar": bar}
    if quantity == "cosine":
        return values, {"zmin": 0, "zmax": 1, "colorscale": "Cividis", "colorbar": {"thickness": 10}}
    return values, {"zmin": 0, "zmax": 1.5, "colorscale": "Cividis_r", "colorbar": {"thickness": 10}}


def _outline(fig: go.Figure, best: dict[int, int]) -> None:
    for slot, state in best.items():
        for colour, width in (("white", 5), ("black", 2)):  # seen on the dark and the bright end of the scale
            line = {"color": colour, "width": width}
            fig.add_shape(type="rect", x0=slot - 0.47, x1=slot + 0.47, y0=state - 0.45, y1=state + 0.45, line=line)


def _heatmap_sentence(document: dict[str, Any]) -> str:
    parts = [_match(cell) for cell in document["best_cells"]]
    if not document["aligned_tokens"]:
        return "No tokens of the two captures could be aligned, so no state could be compared."
    mean = f"mean over {document['aligned_tokens']:,} aligned tokens"
    return f"★ marks the training state that a slot holds: {'; '.join(parts)}; {mean}."


def _match(cell: dict[str, Any]) -> str:
    numbers = f"cosine {number(cell['cosine'], 3)}, relative error {number(cell['relative_error'], 3)}"
    if not cell["matches"]:
        return f"slot {cell['serving_slot']} holds none of them (nearest {state_name(cell['training_state'])}, {numbers})"
    return f"slot {cell['serving_slot']} holds {state_name(cell['training_state'])} ({numbers})"


def over_position(points: Sequence[dict[str, Any]], quantity: str, breaks: Sequence[dict[str, Any] | None] = ()) -> Chart:
    """Similarity along the text. points: dicts with pair (name), position, value, tokens; one line a pair.

    breaks: where the features change (`break` of the features document's forensics), drawn as vertical lines.
    """
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
    marks = _marks(fig, [one for one in breaks if one], max((p["position"] for p in points), default=0))
    caption = marks + " ".join(
        _course(pair, [p for p in points if p["pair"] == pair and p["value"] is not None], quantity) for pair in pairs
    )
    caption = caption or "No positions could be compared."
    return Chart("similarity-over-position", fig, caption, f"Line chart. {caption}", tuple(points))


def _marks(fig: Any, breaks: Sequence[dict[str, Any]], end: float) -> str:
    """Draws where states change, at one position or at every chunk's start; says it in a sentence."""
    splits = sorted({one["position"] for one in breaks if one["kind"] == "split"})
    chunks = sorted({one["chunk"] for one in breaks if one["kind"] == "chunk"})
    at = splits + [start for chunk in chunks for start in range(chunk, int(end) + 1, chunk)]
    for position in at[:MOST_MARKS]:
        fig.add_vline(x=position, line={"color": FAULT, "dash": "dash", "width": 1.2})
    told = [f"The states change at position {position:,}." for position in splits]
    told += [f"The same places of every {chunk:,} tokens are wrong: a chunk or cache boundary." for chunk in chunks]
    return "".join(f"{sentence} " for sentence in told)


def _course(pair: str, points: list[dict[str, Any]], quantity: str) -> str:
    if not points:
        return f"{pair}: no data."
    values = [p["value"] for p in points]
    worst = (min if quantity == "cosine" else max)(points, key=lambda p: p["value"])
    span = f"between {number(min(values), 3)} and {number(max(values), 3)}"
    return f"{pair}: {span}, worst at position {worst['position']:,.0f}."
