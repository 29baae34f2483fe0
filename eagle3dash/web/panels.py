"""How a chart stands on a page: the figure with its alternative text, its caption, and the way to the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from eagle3dash.charts.acceptance import Series
from eagle3dash.charts.theme import Chart
from eagle3dash.web.words import number, safe, value

CONFIG = {
    "displaylogo": False,
    "showSendToCloud": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["select2d", "lasso2d"],
}


def show(chart: Chart, key: str) -> None:
    """The figure, one sentence on what it shows in this run, the numbers as CSV and as a table."""
    st.plotly_chart(chart.figure, width="stretch", theme="streamlit", key=key, config=CONFIG, alt=chart.alt)
    st.caption(safe(chart.caption, 1200))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "CSV",
            chart.csv,
            f"{chart.name}.csv",
            "text/csv",
            key=f"{key} csv",
            icon=":material/download:",
            type="tertiary",
            on_click="ignore",
            help="The numbers behind this picture",
        )
        with st.popover("Numbers", icon=":material/table:", type="tertiary", help="The numbers as a table"):
            st.dataframe(list(chart.rows), hide_index=True, alt=f"Numbers of {chart.name}")


def title(question: str, lead: str) -> None:
    """The question of the page, and one line on how it is answered."""
    st.title(question, anchor=False)
    st.caption(lead)


def metrics(series: Sequence[Series], steps: int) -> None:
    """One number a source: its accept length, with its interval where it has one."""
    with st.container(horizontal=True):
        for one in series:
            low, high, rounds = (one.numbers.get(name) for name in ("low", "high", "rounds"))
            spread = f"95 %: {number(low)} to {number(high)}" if low is not None else "no interval"
            st.metric(
                f"{one.label[:1].upper()}{one.label[1:]}",
                number(one.numbers.get("accept_length")),
                f"{spread} · {'rounds unknown' if rounds is None else f'{rounds:,} rounds'}",
                delta_color="off",
                delta_arrow="off",
                border=True,
                help=f"Accept length: 1 + mean of the accepted tokens of a round, bonus token included, 1 to {steps + 1}.",
            )


def table(lines: Sequence[dict[str, Any]], nothing: str, name: str) -> None:
    """Lines of plain values as a table with its CSV; a sentence when there are none."""
    if not lines:
        st.caption(nothing)
        return
    shown = [{key: value(cell) for key, cell in line.items()} for line in lines]
    st.dataframe(shown, hide_index=True, width="stretch", alt=name)


def copy_link() -> None:
    """The address that shows this view to somebody else."""
    with st.popover("Link to this view", icon=":material/link:", type="tertiary"):
        st.code(st.context.url or "", language=None, wrap_lines=True)
