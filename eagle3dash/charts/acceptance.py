"""How many tokens are accepted: the distribution, by position, over time. Served and replayed share every axis.

Takes documents in the form of the command line's `replay` JSON (histogram, survival, alpha, accept_length, rounds);
knows neither logs nor replays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from eagle3dash.charts.theme import (
    BONUS,
    ROLES,
    Chart,
    Look,
    accept_axis,
    bar_style,
    figure,
    line_style,
    nothing,
    number,
    percent,
    plain,
    share,
)

NAMES = {
    "survival": "survival: this position and all before it accepted",
    "alpha": "alpha: accepted, given that all before it were",
}
POINTS = {  # what a point over time is -> in the legend, the title, the axis without times
    "window": ("a log window", "Served accept length over time", "line of the log"),
    "request": ("a request", "Served accept length of each request", "line of the file: requests in its order"),
}


@dataclass(frozen=True)
class Series:
    """One source of acceptance: its name, its look, and its numbers (`replay` JSON; absent keys are no data)."""

    label: str
    look: Look
    numbers: dict[str, Any]


def by_role(role: str, numbers: dict[str, Any]) -> Series:
    """A series under one of the four fixed roles: expected, training, serving, served."""
    return Series(ROLES[role].label, ROLES[role], numbers)


def histogram(series: Sequence[Series], steps: int, of: str = "") -> Chart:
    """Share of rounds by accept length, 1 .. K+1, one bar a source. Histogram index = num_accepted, bonus not counted.

    of: what all series are, where their labels do not say it ("served")."""
    fig, rows = figure(_title(of, "accept length of a round")), []
    for one in series:
        counts = one.numbers.get("histogram")
        if not counts:
            continue
        total = sum(counts)
        shares = [share(count, total) for count in counts]
        fig.add_bar(
            x=list(range(1, len(counts) + 1)),
            y=shares,
            name=plain(one.label),
            marker=bar_style(one.look),
            customdata=counts,
            hovertemplate="%{x} tokens: %{y:.1%}, %{customdata:,} of "
            + f"{total:,} rounds<extra>{plain(one.label)}</extra>",
        )
        rows += [
            {"source": one.label, "accept_length": n + 1, "rounds": count, "share": shares[n]}
            for n, count in enumerate(counts)
        ]
    fig.update_xaxes(
        title=f"tokens in a round, {BONUS}", range=[0.5, steps + 1.5], tickmode="array", tickvals=list(range(1, steps + 2))
    )
    fig.update_yaxes(title="share of rounds", tickformat=".0%", rangemode="tozero")
    if not rows:
        fig.update_yaxes(range=[0, 1])
        nothing(fig, "no data: no source tells the accepted tokens of single rounds")
    caption = _told(of, [_histogram_sentence(one) for one in series])
    return Chart("accept-length", fig, caption, f"Bar chart of tokens per round. {caption}", tuple(rows))


def _title(of: str, text: str) -> str:
    whole = f"{of} {text}".strip()
    return whole[:1].upper() + whole[1:]


def _told(of: str, sentences: Sequence[str]) -> str:
    return " ".join([f"As {of}."] * bool(of) + list(sentences))


def _opening(one: Series) -> str:
    """The label at the beginning of a sentence; a run keeps its name as it is written."""
    return one.label[:1].upper() + one.label[1:] if one.look in ROLES.values() else one.label


def _histogram_sentence(one: Series) -> str:
    counts, label = one.numbers.get("histogram"), _opening(one)
    if not counts:
        mean = one.numbers.get("accept_length")
        return f"{label}: {number(mean)} on average; its source holds no single rounds."
    total = sum(counts)
    none, every = share(counts[0], total), share(counts[-1], total)
    mean = one.numbers.get("accept_length")
    return (
        f"{label}: {number(mean)} tokens a round over {total:,} rounds; {percent(none)} kept only the bonus token, "
        f"{percent(every)} kept all {len(counts) - 1} drafted."
    )


def by_position(series: Sequence[Series], steps: int, value: str = "survival", of: str = "") -> Chart:
    """survival or alpha at each position of the chain, 0 .. K-1, between 0 and 1. of: as in `histogram`."""
    fig, rows = figure(_title(of, NAMES[value])), []
    for one in series:
        values = one.numbers.get(value)
        if not values:
            continue
        total = one.numbers.get("rounds")
        fig.add_scatter(
            x=list(range(len(values))),
            y=values,
            name=plain(one.label),
            mode="lines+markers",
            connectgaps=False,
            **line_style(one.look),
            hovertemplate=f"position %{{x}}: %{{y:.1%}} ({_rounds(total)})<extra>{plain(one.label)}</extra>",
        )
        rows += [{"source": one.label, "position": n, value: x, "rounds": total} for n, x in enumerate(values)]
    fig.update_xaxes(
        title="position in the draft, from 0", tickmode="array", tickvals=list(range(steps)), range=[-0.2, steps - 0.8]
    )
    fig.update_yaxes(title=value, tickformat=".0%", range=[0, 1.04])
    if not rows:
        nothing(fig)
    caption = _told(of, [_position_sentence(one, value) for one in series])
    return Chart(value, fig, caption, f"Line chart of {value} by position. {caption}", tuple(rows))


def _rounds(total: int | None) -> str:
    return "rounds unknown" if total is None else f"{total:,} rounds"


def _position_sentence(one: Series, value: str) -> str:
    values, label = one.numbers.get(value), _opening(one)
    known = [(n, x) for n, x in enumerate(values or []) if x is not None]
    if not known:
        return f"{label}: no {value} by position."
    (_, first), (last, end) = known[0], known[-1]
    return f"{label}: {percent(first)} at position 0" + (f", {percent(end)} at position {last}." if last else ".")


def over_time(
    windows: Sequence[dict[str, Any]], steps: int, references: Sequence[Series] = (), of: str = "window"
) -> Chart:
    """Accept length of each log window ("window") or of each reply ("request") in order, with the replayed means as lines.

    windows: dicts with line, accept_length, and if known time, rounds, windows (how many a point stands for).
    """
    point, title, place = POINTS[of]
    fig, look = figure(title), ROLES["served"]
    known = [w for w in windows if w.get("accept_length") is not None]
    timed = bool(known) and all(w.get("time") for w in known)
    x = [w["time"] if timed else w["line"] for w in known]
    fig.add_scatter(
        x=x,
        y=[w["accept_length"] for w in known],
        name=f"served, {point}",
        **line_style(look),
        mode="lines+markers" if len(known) <= 300 else "lines",
        customdata=[[w.get("line"), _rounds(w.get("rounds"))] for w in known],
        hovertemplate="%{x}<br>accept length %{y:.3f}, %{customdata[1]}<br>line %{customdata[0]}<extra></extra>",
    )
    _levels(fig, references)
    fig.update_xaxes(title="time of the log line" if timed else place)
    fig.update_yaxes(**accept_axis(steps))
    if not known:
        nothing(fig, "no data: no log of this run has acceptance over time")
    caption = _time_sentence(known, of)
    keep = ("line", "time", "accept_length", "rounds", "acceptance_rate", "throughput")
    rows = tuple({key: w[key] for key in keep if key in w} for w in windows)
    return Chart("accept-length-over-time", fig, caption, f"Line chart. {title}. {caption}", rows)


def _levels(fig: go.Figure, references: Sequence[Series]) -> None:
    for one in references:
        value = one.numbers.get("accept_length")
        if value is not None:
            fig.add_hline(y=value, line={"color": one.look.colour, "dash": one.look.dash, "width": 2})
            fig.add_scatter(
                x=[None],
                y=[None],
                mode="lines",
                name=f"{plain(one.label)} {number(value)}",
                **{"line": line_style(one.look)["line"]},
            )


def _time_sentence(known: Sequence[dict[str, Any]], of: str) -> str:
    if not known:
        return f"No {of} of this run tells an accept length."
    lengths = [w["accept_length"] for w in known]
    if len(lengths) == 1:
        return f"One {of}: accept length {number(lengths[0])}."
    third, many = max(1, len(lengths) // 3), sum(w.get("windows") or 1 for w in known)
    first, last = sum(lengths[:third]) / third, sum(lengths[-third:]) / third
    drawn = "" if many == len(lengths) else f", drawn as {len(lengths):,} points,"
    return (
        f"{many:,} {of}s{drawn} between {number(min(lengths))} and {number(max(lengths))}; "
        f"first third {number(first)}, last third {number(last)} on average."
    )
