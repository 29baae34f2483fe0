"""How a chart stands on a page: the figure with its alternative text, its caption, and the way to the numbers."""

from __future__ import annotations

import streamlit as st

from eagle3dash.charts.theme import Chart
from eagle3dash.web.words import safe

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
