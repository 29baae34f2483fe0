"""What the tests on each serving slot saw: the error at each lag, and the ratio to training channel by channel.

Takes `lags` and `tests` of the command line's `features` JSON and what each slot holds (`analysis.held`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eagle3dash.analysis.held import Held, state_name
from eagle3dash.charts.theme import NEUTRAL, RUNS, Chart, figure, line_style, nothing, plain

FLAT = 0.02  # channels that lie so near to one ratio all have it
INNER = (5, 95)  # percentiles of the channels told of


def lags(document: dict[str, Any], slots: Sequence[Held]) -> Chart:
    """Error of each slot when its rows are moved against training's by a few tokens: the lowest tells the lag."""
    found = document["lags"]
    fig = figure("Error when serving is moved by a few tokens", 300)
    rows = []
    for each in slots:
        values = [one["relative_error"][each.slot] for one in found]
        name = f"slot {each.slot}"
        fig.add_scatter(
            x=[one["lag"] for one in found],
            y=values,
            name=name,
            mode="lines+markers",
            hovertemplate="%{x:+d} tokens: %{y:.4f}" + f"<extra>{name}</extra>",
            **line_style(RUNS[each.slot % len(RUNS)]),
        )
        rows += [{"slot": each.slot, "lag": one["lag"], "relative_error": v} for one, v in zip(found, values, strict=True)]
    fig.add_vline(x=0, line={"color": NEUTRAL, "dash": "dot", "width": 1})
    ticks = [one["lag"] for one in found]
    fig.update_xaxes(
        title="serving is late by, tokens", tickvals=ticks, ticktext=[f"{lag:+d}" if lag else "0" for lag in ticks]
    )
    fig.update_yaxes(title="error of its best rows", rangemode="tozero")
    if not rows:
        nothing(fig)
    caption = _lag_sentence(slots)
    return Chart("error-by-lag", fig, caption, f"Line chart. {caption}", tuple(rows))


def _lag_sentence(slots: Sequence[Held]) -> str:
    moved = [each for each in slots if each.lag]
    if not moved:
        return "Each slot fits best where it stands: nothing is shifted."
    by = ", ".join(f"slot {each.slot} at {each.lag:+d}" for each in moved)
    return f"The lowest point is not at 0: {by}. At lag L, row t + L of serving holds what training has at row t."


def channels(document: dict[str, Any], slots: Sequence[Held]) -> Chart:
    """Sorted ratios of the channels, served over training: flat at 1 is equal, flat elsewhere a scale, a slope a norm."""
    fig = figure("Ratio to training, channel by channel", 300)
    tests = {one["serving_slot"]: one["channels"] for one in document.get("tests", ())}
    known = [(each, tests[each.slot]) for each in slots if tests.get(each.slot)]
    rows = []
    for each, found in known:
        curve = found["percentiles"]
        name = f"slot {each.slot}, {plain(state_name(each.state))}"
        fig.add_scatter(
            x=list(range(len(curve))),
            y=curve,
            name=name,
            mode="lines",
            hovertemplate="%{x} % of the channels lie below %{y:.4g}" + f"<extra>{name}</extra>",
            **line_style(RUNS[each.slot % len(RUNS)]),
        )
        rows += [{"slot": each.slot, "of": found["of"], "percentile": at, "ratio": value} for at, value in enumerate(curve)]
    fig.add_hline(y=1, line={"color": NEUTRAL, "dash": "dot", "width": 1.2})
    fig.update_xaxes(title="channels, sorted, %", ticksuffix=" %")
    fig.update_yaxes(title="ratio, 1 is equal")
    if not known:
        nothing(fig)
    caption = " ".join(_channel_sentence(each, found) for each, found in known) or "No slot is a state channel by channel."
    return Chart("ratio-by-channel", fig, caption, f"Line chart. {caption}", tuple(rows))


def _channel_sentence(each: Held, found: dict[str, Any]) -> str:
    low, middle, high = (found["percentiles"][at] for at in (INNER[0], 50, INNER[1]))
    if high - low <= FLAT * abs(middle):
        if abs(middle - 1.0) <= FLAT:
            return f"Slot {each.slot}: all channels at 1, no weight stands between."
        return f"Slot {each.slot}: all channels at {middle:.3g}, one scale for all."
    kind = "the weights of a norm" if found["of"] != "serving / training" else "a weight a channel"
    if each.how == "match":
        return f"Slot {each.slot}: around {middle:.3g}, spread by noise ({low:.3g} to {high:.3g})."
    return f"Slot {each.slot}: {kind} show themselves, 90 % of them from {low:.3g} to {high:.3g}."
