"""Choices that stand in the URL: which run, which runs, which option. The key of a widget is the name of its parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from eagle3dash.records import Run
from eagle3dash.web import cards, state

MOST = 4  # runs side by side


def run() -> Run:
    """The run to look at, chosen on top of the page (?run=). With an empty store the page ends in what to do."""
    names = [one.name for one in state.store().runs()]
    if not names:
        cards.empty("There is no run yet.")
        st.stop()
    return state.store().run(st.selectbox("Run", names, key="run", bind="query-params", width=420))


def runs() -> list[Run]:
    """One to four runs (?runs=a&runs=b); the first two unless chosen."""
    names = [one.name for one in state.store().runs()]
    if not names:
        cards.empty("There is no run yet.")
        st.stop()
    chosen = st.multiselect("Runs", names, default=names[:2], max_selections=MOST, key="runs", bind="query-params")
    if not chosen:
        st.info("Choose the runs to put side by side.", icon=":material/compare_arrows:")
        st.stop()
    return [state.store().run(name) for name in chosen]


def choice(label: str, options: Sequence[Any], key: str, names: Callable[[Any], str] = str, help: str | None = None) -> Any:
    """One of a few options as a row of buttons; the first unless chosen."""
    picked = st.segmented_control(
        label, options, default=options[0], format_func=names, key=key, bind="query-params", required=True, help=help
    )
    return options[0] if picked is None else picked
