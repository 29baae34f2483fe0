"""Do the serving features equal the training features: a cell for each pair of states, and the course over position.

Takes the `cells` of the command line's `features` JSON and what each slot holds (`analysis.held`); knows no captures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from eagle3dash.analysis import breaks
from eagle3dash.analysis.held import Held, held, state_name
from eagle3dash.analysis.matches import NOISE
from eagle3dash.charts.theme import FAULT, NEUTRAL, NO_DATA, ROLES, RUNS, Chart, figure, line_style, nothing, number, plain

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
HOLDS, FED = "★", "◆"
MOST_MARKS = 48  # boundaries drawn
VALUES_FIT = 24  # states a side up to which a number fits into its cell
EVEN = 2.0  # a line that varies by less has no worst position
LOWEST = 1e-4  # of a logarithmic axis: equal to the last bit lies there
INK = "#12171C"  # numbers in cells: the scales below are light enough for it at both ends
ALIKE = [[0.0, "#F4F1EA"], [1.0, "#5FB0DC"]]
APART = [[0.0, "#5FB0DC"], [1.0, "#F4F1EA"]]
AROUND = [[0.0, "#7CB9DF"], [0.5, "#F7F6F2"], [1.0, "#F0A35E"]]


def heatmap(document: dict[str, Any], quantity: str, slots: Sequence[Held] | None = None) -> Chart:
    """training states (rows) x serving slots (columns) of a `features` document, a number in each cell while it fits.

    slots: what each slot holds and what training fed in its place; judged from the document alone where it isn't given."""
    slots = held(document) if slots is None else slots
    training = [state_name(label) for label in document["training_states"]]  # N rows
    serving = [f"slot {m}<br>{plain(state_name(label))}" for m, label in enumerate(document["serving_states"])]  # M columns
    cells = {(cell["training_slot"], cell["serving_slot"]): cell for cell in document["cells"]}
    holds, fed = _places(document, slots)
    values = [[cells[n, m][quantity] for m in range(len(serving))] for n in range(len(training))]  # [N, M]
    marks = [[_mark(value, (n, m) in holds, (n, m) in fed) for m, value in enumerate(row)] for n, row in enumerate(values)]
    fig = figure(f"{QUANTITIES[quantity].capitalize()} of states", 170 + 46 * max(3, min(len(training), 12)))
    fits = max(len(training), len(serving)) <= VALUES_FIT
    scaled, scale = _scaled(values, quantity)
    fig.add_heatmap(
        z=scaled,
        x=list(range(len(serving))),
        y=list(range(len(training))),
        xgap=2,
        ygap=2,
        showscale=not fits,
        text=marks if fits else None,
        texttemplate="%{text}" if fits else None,
        textfont={"color": INK},
        customdata=[
            [f"{training[n]} in training, slot {m} in serving: {mark}" for m, mark in enumerate(row)]
            for n, row in enumerate(marks)
        ],
        hovertemplate="%{customdata}<br>" + f"mean over {document['aligned_tokens']:,} aligned tokens<extra></extra>",
        **scale,
    )
    _outline(fig, holds, fed)
    fig.update_xaxes(title="fed in serving, as its name says", tickvals=list(range(len(serving))), ticktext=serving)
    names = [f"{plain(name)} {FED}" if any(n == row for row, _ in fed) else plain(name) for n, name in enumerate(training)]
    fig.update_yaxes(title="in training", tickvals=list(range(len(training))), ticktext=names, autorange="reversed")
    fig.update_xaxes(showgrid=False)
    fig.update_yaxes(showgrid=False)
    if not cells:
        nothing(fig)
    caption = _heatmap_sentence(document, slots)
    rows = tuple(
        {**cell, "held": (at := (cell["training_slot"], cell["serving_slot"])) in holds, "fed_in_training": at in fed}
        for cell in document["cells"]
    )
    return Chart("state-similarity", fig, caption, f"Heatmap. {caption}", rows)


def _places(document: dict[str, Any], slots: Sequence[Held]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """(training slot, serving slot) of what the slots hold, and of what training fed in their places."""
    states = list(document["training_states"])
    holds = {(states.index(each.state), each.slot) for each in slots if each.state in states and each.how != "near"}
    return holds, {(states.index(each.trained), each.slot) for each in slots if each.trained in states}


def _mark(value: float | None, holds: bool, fed: bool) -> str:
    text = NO_DATA if value is None else f"{value:.3f}"
    return " ".join([*([HOLDS] if holds else []), *([FED] if fed else []), text])


def _scaled(values: list[list[float | None]], quantity: str) -> tuple[list[list[float | None]], dict[str, Any]]:
    """Colour value of each cell, and the fixed scale it lies on: a colour means the same in every run."""
    if quantity == "norm_ratio":  # doubled and halved lie equally far from 1
        logs = [[None if not v else math.log2(v) for v in row] for row in values]
        bar = {"tickvals": [-3, 0, 3], "ticktext": ["⅛", "1", "8"], "thickness": 10}
        return logs, {"zmin": -3, "zmax": 3, "colorscale": AROUND, "colorbar": bar}
    if quantity == "cosine":
        return values, {"zmin": 0, "zmax": 1, "colorscale": ALIKE, "colorbar": {"thickness": 10}}
    return values, {"zmin": 0, "zmax": 1.5, "colorscale": APART, "colorbar": {"thickness": 10}}


def _outline(fig: go.Figure, holds: set[tuple[int, int]], fed: set[tuple[int, int]]) -> None:
    for n, m in sorted(holds | fed):
        for colour, width in (("white", 5), (INK, 2)):  # seen on the light and the dark page
            line = {"color": colour, "width": width, "dash": "solid" if (n, m) in holds or width == 5 else "dot"}
            fig.add_shape(type="rect", x0=m - 0.49, x1=m + 0.49, y0=n - 0.46, y1=n + 0.46, line=line)


def _heatmap_sentence(document: dict[str, Any], slots: Sequence[Held]) -> str:
    if not document["aligned_tokens"]:
        return "No tokens of the two captures could be aligned, so no state could be compared."
    mean = f"mean over {document['aligned_tokens']:,} aligned token{'' if document['aligned_tokens'] == 1 else 's'}"
    if not slots:
        return f"Too few tokens to tell which state a slot holds; {mean}."
    fed = (
        f" {FED} marks the state that training fed in its place." if any(each.trained is not None for each in slots) else ""
    )
    parts = "; ".join(_match(each, document["best_cells"][each.slot]) for each in slots)
    return f"{HOLDS} marks the training state that a slot holds: {parts}; {mean}.{fed}"


def _match(each: Held, nearest: dict[str, Any]) -> str:
    numbers = f"cosine {number(nearest['cosine'], 3)}, relative error {number(nearest['relative_error'], 3)}"
    if each.state is None or each.how in ("near", "unknown"):
        return f"slot {each.slot} holds none of them (nearest {state_name(nearest['training_state'])}, {numbers})"
    how = f", {' and '.join(each.faults)}" if each.faults else f" ({numbers})"
    return f"slot {each.slot} holds {state_name(each.state)}{how}"


def over_position(
    points: Sequence[dict[str, Any]],
    breaking: Sequence[dict[str, Any] | None] = (),
    worst: Sequence[dict[str, Any]] = (),
    boundaries: dict[str, int] | None = None,
) -> Chart:
    """Relative error along the text. points: dicts with pair (name), slot, position, position_end, value, tokens.

    breaking: where the features change (`break` of the document's forensics); worst: the document's `worst`; boundaries:
    tokens after which the server starts a chunk or a cache block, by what they are. All are drawn as vertical lines."""
    fig = figure("Relative error over position")
    pairs = list(dict.fromkeys(point["pair"] for point in points))
    for at, pair in enumerate(pairs):
        mine = [point for point in points if point["pair"] == pair]
        fig.add_scatter(
            x=[(p["position"] + p["position_end"]) / 2 for p in mine],
            y=[None if p["value"] is None else max(p["value"], LOWEST) for p in mine],
            name=plain(pair),
            mode="lines",
            connectgaps=False,
            **line_style(RUNS[at % len(RUNS)]),
            customdata=[[_range(p), p["value"], p["tokens"]] for p in mine],
            hovertemplate="%{customdata[0]}: %{customdata[1]:.4f} (%{customdata[2]} tokens)"
            + f"<extra>{plain(pair)}</extra>",
        )
    fig.update_xaxes(title="position in the text, tokens")
    _error_axis(fig, [p["value"] for p in points])
    if not points:
        nothing(fig)
    end = max((p["position_end"] for p in points), default=0)
    marks = _server(fig, boundaries or {}, end) + _marks(fig, [one for one in breaking if one], end)
    caption = _course(points, pairs, worst) + marks if points else "No positions could be compared."
    return Chart("error-over-position", fig, caption, f"Line chart. {caption}", tuple(points))


def _range(point: dict[str, Any]) -> str:
    low, high = point["position"], point["position_end"]
    return f"position {low:,}" if low == high else f"positions {low:,} to {high:,}"


def _error_axis(fig: go.Figure, values: Sequence[float | None]) -> None:
    """Relative errors on a logarithmic axis that always shows what two implementations differ by, and 1: unlike."""
    known = [max(v, LOWEST) for v in values if v is not None]
    low, high = min([0.005, *known]) * 0.8, max([1.2, *known]) * 1.2
    ticks = {"tickvals": [1e-4, 1e-3, 0.01, 0.1, 1, 10], "ticktext": ["≤ 0.0001", "0.001", "0.01", "0.1", "1", "10"]}
    fig.update_yaxes(title="relative error", type="log", range=[math.log10(low), math.log10(high)], **ticks)
    said = {
        "text": "below: what two implementations differ by",
        "font": {"size": 11},
        "xanchor": "right",
        "yanchor": "bottom",
    }
    fig.add_hline(y=NOISE, line={"color": NEUTRAL, "dash": "dot", "width": 1.2})
    fig.add_annotation(x=1, xref="paper", y=math.log10(NOISE), yref="y", showarrow=False, **said)


def _server(fig: go.Figure, boundaries: dict[str, int], end: float) -> str:
    """Where the server starts a chunk or a cache block, thin and grey; a sentence on each."""
    told = []
    for name, size in boundaries.items():
        at = list(range(size, int(end) + 1, size))
        if 0 < len(at) <= MOST_MARKS:
            for position in at:
                fig.add_vline(x=position, line={"color": NEUTRAL, "dash": "dot", "width": 0.8}, layer="below")
            told.append(f" Grey lines: every {size:,} tokens, the server's {name}.")
        elif not at:
            told.append(f" The server's {name} of {size:,} tokens is longer than these texts.")
    return "".join(told)


def _marks(fig: go.Figure, breaking: Sequence[dict[str, Any]], end: float) -> str:
    """Draws where states change, at one position or at the same places of every chunk; says it in a sentence."""
    splits = sorted({one["position"] for one in breaking if one["kind"] == "split"})
    chunks = {one["chunk"]: one for one in breaking if one["kind"] == "chunk"}
    starts = [p for one in chunks.values() for p in range(one["places"][0], int(end) + 1, one["chunk"])]
    for position in (splits + starts)[:MOST_MARKS]:
        fig.add_vline(x=position, line={"color": FAULT, "dash": "dash", "width": 1.2})
    told = [f" The states change at position {position:,}." for position in splits]
    told += [f" Rows are wrong at {breaks.places(one)}: a chunk or cache boundary." for one in chunks.values()]
    return "".join(told)


def _course(points: Sequence[dict[str, Any]], pairs: Sequence[str], worst: Sequence[dict[str, Any]]) -> str:
    """What the lines do; a worst position only where there is one."""
    said, even = [], []
    at = {one["serving_slot"]: one for one in worst}
    for pair in pairs:
        mine = [p for p in points if p["pair"] == pair and p["value"] is not None]
        if not mine:
            said.append(f"{pair}: no data.")
            continue
        low, high = min(p["value"] for p in mine), max(p["value"] for p in mine)
        if high < NOISE:
            even.append(high)
            continue
        if low > NOISE and high < EVEN * low:
            said.append(f"{pair}: {number(low, 3)} to {number(high, 3)}, much the same at all positions.")
            continue
        one = at.get(mine[0]["slot"])
        where = f"position {one['position']:,}" if one and one["position"] is not None else _range(_highest(mine))
        top = one["relative_error"] if one and one["relative_error"] is not None else high
        said.append(f"{pair}: from {number(low, 3)} to {number(top, 3)}, the most at {where}.")
    if even:
        every = len(even) == len(pairs)
        whose = "Every slot stays" if every else "The other slot stays" if len(even) == 1 else "The other slots stay"
        state = "its state" if every or len(even) == 1 else "their states"
        said.append(f"{whose} within {number(max(even), 3)} of {state} from the first token to the last.")
    wide = max(p["position_end"] - p["position"] + 1 for p in points)
    return " ".join(said) + (f" A point is the mean of {wide} positions." if wide > 1 else "")


def _highest(points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return max(points, key=lambda p: p["value"])


def depth(slots: Sequence[Held]) -> Chart:
    """Error that the best explanation leaves, by the depth of the state: noise of rounding grows with it."""
    known = [s for s in slots if isinstance(s.state, int) and s.numbers.get("error") is not None]
    known.sort(key=lambda s: s.state)
    fig = figure("Error by depth of the state", 300)
    fig.add_scatter(
        x=[s.state for s in known],
        y=[max(s.numbers["error"], LOWEST) for s in known],
        text=[f"slot {s.slot}" for s in known],
        customdata=[s.numbers["error"] for s in known],
        mode="lines+markers+text",
        textposition="top center",
        hovertemplate="HF[%{x}] in %{text}: %{customdata:.4f}<extra></extra>",
        **line_style(ROLES["serving"]),
    )
    fig.update_xaxes(title="state, layers of the target below it")
    _error_axis(fig, [s.numbers["error"] for s in known])
    if not known:
        nothing(fig)
    caption = _depth_sentence(known)
    rows = tuple({"slot": s.slot, "state": s.state, "error": s.numbers["error"]} for s in known)
    return Chart("error-by-depth", fig, caption, f"Line chart. {caption}", rows)


def _depth_sentence(known: Sequence[Held]) -> str:
    if not known:
        return "No slot holds a state whose depth is known."
    told = ", ".join(f"{s.numbers['error']:.2%} at {state_name(s.state)}" for s in known)
    errors = [s.numbers["error"] for s in known]
    if len(errors) > 1 and errors == sorted(errors) and errors[-1] > NOISE:
        return f"What is left after the best explanation grows with depth ({told}), as noise of fewer bits does."
    if max(errors) < NOISE:
        return f"What is left after the best explanation is what two implementations differ by: {told}."
    return f"What is left after the best explanation does not grow with depth ({told}): not the mark of fewer bits."
