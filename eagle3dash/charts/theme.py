"""One look for all figures: colours with a meaning, a second cue beside each colour, one layout, one kind of result.

Knows nothing of what is drawn. Colours: Okabe and Ito (2008), so that they stay apart for colour-blind readers; the runs
of a comparison take Paul Tol's muted set, which shares no hue with the roles.
"""

from __future__ import annotations

import csv
import html
import io
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from eagle3dash.analysis.wording import number as number

BONUS = "bonus token included"
NO_DATA = "no data"
FAULT = "#D55E00"
NEUTRAL = "#8A8F98"
CLEAR = "rgba(0,0,0,0)"
NARROW = 56  # letters of a label that a page 390 pixels wide has room for


@dataclass(frozen=True)
class Look:
    """A colour with its second cues: fill pattern of bars, dash of lines, symbol of markers."""

    label: str
    colour: str
    pattern: str = ""
    dash: str = "solid"
    symbol: str = "circle"


ROLES = {
    "expected": Look("expected", "#8A8F98", ".", "dot", "diamond"),
    "training": Look("replayed on training features", "#0072B2", "", "solid", "circle"),
    "serving": Look("replayed on serving features", "#E69F00", "/", "dash", "square"),
    "served": Look("served", "#009E73", "x", "longdash", "triangle-up"),
}
RUNS = (
    Look("run 1", "#56B4E9", "", "solid", "circle"),
    Look("run 2", "#CC6677", "/", "dash", "square"),
    Look("run 3", "#999933", "x", "dot", "diamond"),
    Look("run 4", "#AA4499", ".", "longdash", "triangle-up"),
)


@dataclass(frozen=True)
class Chart:
    """A figure and what a person needs beside it. `rows`: the numbers it shows, one dict a mark, for CSV."""

    name: str  # file name of the download, without its ending
    figure: go.Figure
    caption: str
    alt: str
    rows: tuple[dict[str, Any], ...]

    def csv(self) -> str:
        """The numbers as CSV; an absent number is an empty cell, a text that a spreadsheet would run is quoted."""
        out = io.StringIO()
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _cell(value) for key, value in row.items()} for row in self.rows)
        return out.getvalue()


def _cell(value: Any) -> Any:
    starts_formula = isinstance(value, str) and value[:1] in ("=", "+", "-", "@")
    return "'" + value if starts_formula else value


def plain(name: object, longest: int = 48) -> str:
    """A name from a file as plotly text: plotly reads <b> and <a href> in any string, so tags are escaped."""
    text = " ".join(str(name).split())
    return html.escape(text if len(text) <= longest else text[: longest - 1] + "…")


def percent(value: float | None) -> str:
    """47.9 %, or "no data"."""
    return NO_DATA if value is None or value != value else f"{100 * value:.1f} %"


def share(part: float, total: float) -> float | None:
    """The one place of this package that divides counts. None when there is nothing to divide by."""
    return part / total if total else None


def figure(title: str, height: int = 340) -> go.Figure:
    """An empty figure in the house layout. Transparent, so that the page's light or dark background shows through."""
    fig = go.Figure()
    fig.update_layout(
        title={"text": plain(title, 90), "x": 0, "xref": "container", "font": {"size": 15}, "automargin": False},
        height=height,
        margin={"l": 8, "r": 12, "t": 44, "b": 8},
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        legend={"orientation": "h", "yanchor": "top", "y": -0.24, "x": 0, "title": {"text": ""}},
        hoverlabel={"align": "left"},
        bargap=0.25,
        bargroupgap=0.06,
    )
    fig.update_xaxes(automargin=True, zeroline=False)
    fig.update_yaxes(automargin=True, zeroline=False)
    return fig


def accept_axis(steps: int, which: str = "accept length") -> dict[str, Any]:
    """The axis that every accept length is drawn on: 1 .. K+1, whatever the data."""
    return {
        "range": [1, steps + 1],
        "title": {"text": f"{which}, {BONUS}"},
        "tickmode": "array",
        "tickvals": list(range(1, steps + 2)),
    }


def label_above(fig: go.Figure, at: int, label: str, sign: str = "") -> None:
    """The name of a horizontal bar at `at`, written above it from the plot's left edge; `sign` in bold behind it, of which
    only the first letter where both would leave a narrow plot."""
    sign = sign if len(label) + len(sign) <= NARROW else sign[:1]
    text = label + (f"  <b>{sign}</b>" if sign else "")
    fig.add_annotation(
        x=0, xref="paper", xanchor="left", y=at - 0.06, yanchor="bottom", text=text, showarrow=False, align="left",
        font={"size": 12},
    )  # fmt: skip


def bar_style(look: Look) -> dict[str, Any]:
    """Fill of a bar: the colour, and a pattern so that the colour need not be seen."""
    return {
        "color": look.colour,
        "line": {"width": 0},
        "pattern": {
            "shape": look.pattern,
            "fillmode": "overlay",
            "size": 6,
            "solidity": 0.25,
            "fgcolor": "rgba(255,255,255,.75)",
        },
    }


def line_style(look: Look) -> dict[str, Any]:
    """Keyword arguments of a line with markers in one look."""
    return {
        "line": {"color": look.colour, "dash": look.dash, "width": 2},
        "marker": {"color": look.colour, "symbol": look.symbol, "size": 9},
    }


def nothing(fig: go.Figure, text: str = NO_DATA) -> None:
    """Writes "no data" into an empty plot, so that it isn't read as a zero."""
    fig.add_annotation(text=plain(text, 120), showarrow=False, x=0.5, y=0.5, xref="paper", yref="paper")
