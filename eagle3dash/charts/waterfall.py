"""Where the accepted tokens went: the four numbers on one scale, and the drop between each two.

The step from per row to per round is drawn as what it is: a way of counting, no fault. Which drop is a fault, what
explains it and what stays unexplained is what the diagnosis says; nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import plotly.graph_objects as go

from eagle3dash.charts.theme import FAULT, NEUTRAL, NO_DATA, ROLES, Chart, accept_axis, bar_style, figure, number, plain

SEEN = 0.005  # a smaller step is 0.00 to a reader


@dataclass(frozen=True)
class Stage:
    """One bar. `cause`: what lies between the bar before and this one. `counting`: that step is no fault at all. `word`
    stands at the drop; without it "fault" where it is one. `low`, `high`: 95 %, where known."""

    label: str
    role: str
    value: float | None
    cause: str = ""
    counting: bool = False
    fault: bool = False
    word: str = ""
    low: float | None = None
    high: float | None = None


BARS = (  # number, label, role, what lies between it and the one before
    ("expected", "expected\n\n\nper row", "expected", ""),
    ("replayed_training_rows", "replay on\ntraining\nfeatures\nper row", "training", "training code or checkpoint"),
    ("replayed_training", "replay on\ntraining\nfeatures\nper round", "training", "counting rounds instead of rows"),
    ("replayed_serving", "replay on\nserving\nfeatures\nper round", "serving", "other features in serving"),
    ("served", "served\n\n\nper round", "served", "the engine"),
)


def of_diagnosis(document: dict[str, Any]) -> Chart:
    """The waterfall of a `diagnose` document: its numbers, its drops with what explains them, its rule of acceptance."""
    drops = {drop["to"]: drop for drop in document["drops"]}
    lengths = document["lengths"]
    stages = [
        replace(
            _stage(bar, document["numbers"].get(bar[0]), drops.get(bar[0])),
            **{end: (lengths.get(bar[0]) or {}).get(end) for end in ("low", "high")},
        )
        for bar in BARS
    ]
    return waterfall(stages, document["steps"], document["acceptance"]["text"])


def _stage(bar: tuple[str, str, str, str], value: float | None, drop: dict[str, Any] | None) -> Stage:
    name, label, role, cause = bar
    if drop is None or drop["kind"] != "loss":
        return Stage(label, role, value, cause, counting=name == "replayed_training")
    causes = drop["explained_by"]
    if causes:
        rest = f"<br>{number(drop['unexplained'])}<br>unexplained" if drop["unexplained"] else ""
        return Stage(label, role, value, f"{cause} ({', '.join(causes)})", fault=True, word=f"<b>fault</b>{rest}")
    word = "unexplained" if drop["shown"] else "within<br>chance"
    return Stage(label, role, value, f"{cause} ({word.replace('<br>', ' ')})", word=word)


def waterfall(stages: Sequence[Stage], steps: int, rule: str = "") -> Chart:
    """Bars from 1 up to each accept length, with its interval; what was lost since the last known bar floats above as a
    hatched block. `rule`: how acceptance is counted on every bar."""
    fig, lost = figure("Where the accepted tokens went", 400), _losses(stages)
    x = list(range(len(stages)))
    for at, stage in zip(x, stages, strict=True):
        if lost[at] is not None and lost[at] >= SEEN:
            _loss(fig, at, stage, lost[at])
        _bar(fig, at, stage)  # after the block, so that the whisker is seen on it
    fig.update_layout(barmode="overlay", showlegend=False, bargap=0.35)
    labels = [
        f"<b>{number(stage.value)}</b><br>" + "<br>".join(plain(part) for part in stage.label.split("\n"))
        for stage in stages
    ]
    fig.update_xaxes(tickmode="array", tickvals=x, ticktext=labels, tickangle=0, range=[-0.6, len(stages) - 0.4])
    fig.update_yaxes(**accept_axis(steps))
    caption = " ".join([_sentence(stages, lost), *_legend(stages, lost), *([f"{rule}."] if rule else [])])
    rows = tuple(
        {
            "number": plain_label(stage),
            "accept_length": stage.value,
            "low": stage.low,
            "high": stage.high,
            "lost": lost[at],
            "step": stage.cause,
            "kind": "counting, no fault" if stage.counting else "fault" if stage.fault else "",
        }
        for at, stage in zip(x, stages, strict=True)
    )
    return Chart("four-numbers", fig, caption, f"Waterfall. {caption}", rows)


def _losses(stages: Sequence[Stage]) -> list[float | None]:
    """What each stage lost against the last known one before it; negative where it gained, None where it can't be said."""
    lost, before = [], None
    for stage in stages:
        lost.append(None if stage.value is None or before is None else before - stage.value)
        before = before if stage.value is None else stage.value
    return lost


def _bar(fig: go.Figure, at: int, stage: Stage) -> None:
    if stage.value is None:
        fig.add_annotation(x=at, y=1, text=NO_DATA, showarrow=False, yanchor="bottom")
        return
    fig.add_bar(
        x=[at],
        y=[stage.value - 1],
        base=1,
        marker=bar_style(ROLES[stage.role]),
        width=0.62,
        error_y=_whisker(stage),
        hovertemplate=f"{plain(stage.label)}: accept length {number(stage.value, 4)}<br>{_told(stage)}<extra></extra>",
    )


def _whisker(stage: Stage) -> dict[str, Any] | None:
    if None in (stage.low, stage.high):
        return None
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(0.0, stage.high - stage.value)],
        "arrayminus": [max(0.0, stage.value - stage.low)],
        "thickness": 1.2,
        "width": 4,
        "color": NEUTRAL,
    }


def _told(stage: Stage) -> str:
    return "no interval" if None in (stage.low, stage.high) else f"95 %: {number(stage.low)} to {number(stage.high)}"


def _loss(fig: go.Figure, at: int, stage: Stage, lost: float) -> None:
    colour = FAULT if stage.fault else NEUTRAL
    fig.add_bar(
        x=[at],
        y=[lost],
        base=stage.value,
        width=0.62,
        marker={
            "color": "rgba(0,0,0,0)",
            "line": {"color": colour, "width": 1},
            "pattern": {"shape": "\\" if not stage.counting else ".", "fgcolor": colour, "size": 7, "solidity": 0.35},
        },
        hovertemplate=f"−{number(lost, 4)}: {plain(stage.cause, 120)}<extra></extra>",
    )
    word = "counting,<br>no fault" if stage.counting else stage.word or ("<b>fault</b>" if stage.fault else "")
    text = f"−{number(lost)}" + (f"<br>{word}" if word else "")
    top = max(stage.value + lost, stage.high or 0.0)
    fig.add_annotation(x=at, y=top, text=text, showarrow=False, yanchor="bottom", yshift=2, font={"color": colour})


def _sentence(stages: Sequence[Stage], lost: list[float | None]) -> str:
    steps = []
    for stage, drop in zip(stages, lost, strict=True):
        if drop is None or abs(drop) < SEEN:
            continue
        what = f"{stage.cause} {'costs' if drop > 0 else 'adds'} {number(abs(drop))}"
        steps.append(what + (" (a way of counting, no fault)" if stage.counting else ""))
    known = [stage for stage in stages if stage.value is not None]
    if len(known) < 2:
        return "One number alone locates nothing: add the files that the others need."
    ends = (
        f"From {number(known[0].value)} ({plain_label(known[0])}) to {number(known[-1].value)} ({plain_label(known[-1])})"
    )
    return f"{ends}: {'; '.join(steps)}." if steps else f"{ends}: no step loses anything."


def _legend(stages: Sequence[Stage], lost: Sequence[float | None]) -> list[str]:
    """What stands for what in this picture."""
    seen = [stage for stage, drop in zip(stages, lost, strict=True) if drop is not None and drop >= SEEN]
    kinds = ["hatched orange: lost by a fault"] if any(stage.fault for stage in seen) else []
    kinds += (
        ["hatched grey: lost, and no fault found explains it"] if any(not (s.fault or s.counting) for s in seen) else []
    )
    kinds += ["dotted grey: a way of counting"] if any(stage.counting for stage in seen) else []
    told = [f"Blocks on top: {', '.join(kinds)}."] if kinds else []
    return told + (["Whiskers: 95 %."] if any(stage.low is not None for stage in stages) else [])


def plain_label(stage: Stage) -> str:
    """The label on one line, for a sentence."""
    return " ".join(stage.label.split())
