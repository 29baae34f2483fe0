"""Choices that stand in the URL: which run, which runs, which option. A widget's key is the name of its parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from eagle3dash.records import Drafter, Import, Run
from eagle3dash.web import asking, paths, state, views
from eagle3dash.web.words import safe

MOST = 4  # runs side by side
A_PAGE = 20  # runs on a page of the overview


def empty(message: str) -> None:
    """An empty page says what to add and offers the demo; imports under way are shown."""
    offer(message)
    asking.imports_under_way()


def offer(message: str) -> None:
    """What to add, and the demo; while it is loading, that."""
    if asking.demo_under_way():
        st.info("The demo is being loaded: two runs, the founding story as it was served and as it was fixed. They appear "
                "here by themselves, with their diagnosis.", icon=":material/hourglass_top:")  # fmt: skip
        return
    with st.container(border=True):
        st.markdown(f"**{message}**")
        st.markdown(
            "Bring in a drafter folder, a training capture, a serving capture and a server log: each alone already says "
            "something, together they say where the accepted tokens went."
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button("Load the demo", icon=":material/science:", type="primary"):
                state.queue().load_demo()
            st.page_link(paths.IMPORTS, label="Import your own files", icon=":material/upload_file:")


def run() -> Run:
    """The run to look at, chosen on top of the page (?run=). With an empty store, or for a run that is not there, the page
    ends in what to do: never in the numbers of another run."""
    names = [one.name for one in state.store().runs()]
    if not names:
        empty("There is no run yet.")
        st.stop()
    last, asked = st.session_state.get("chosen_run"), st.query_params.get("run") or None
    if asked is not None and asked not in names:
        _absent([asked])
    if asked is not None and asked != last:
        st.session_state["run"] = asked  # a link, or the browser's Back
    elif asked is None and last in names:
        st.session_state["run"] = last  # another page of the same visit
    chosen = st.selectbox("Run", names, key="run", width=420, on_change=_remember)
    st.session_state["chosen_run"] = chosen
    if asked != chosen:  # written by hand: a widget bound to the URL loses a value that came by URL at a page switch
        st.query_params["run"] = chosen
    return state.store().run(chosen)


def _remember() -> None:
    st.session_state["chosen_run"] = st.query_params["run"] = st.session_state["run"]


def _remember_runs() -> None:
    st.session_state["chosen_runs"] = st.query_params["runs"] = st.session_state["runs"]


def _absent(names: list[str]) -> None:
    """Of a link to runs that were deleted, renamed or misspelt."""
    deleted = {name for name, _ in state.store().trash()}
    for name in names:
        more = " It was deleted; the overview can bring it back." if name in deleted else ""
        st.error(f"There is no run **{safe(name, 80)}**.{more}", icon=":material/search_off:")
    st.page_link(paths.OVERVIEW, label="All runs", icon=":material/monitor_heart:")
    st.stop()


def runs() -> list[Run]:
    """One to four runs (?runs=a&runs=b); unless chosen, the newest pair that has files in common."""
    there = state.store().runs()
    if not there:
        empty("There is no run yet.")
        st.stop()
    names, asked = [one.name for one in there], list(dict.fromkeys(st.query_params.get_all("runs")))
    absent = [name for name in asked if name not in names]
    if absent:
        _absent(absent)
    last = st.session_state.get("chosen_runs")
    if asked and asked != last:
        st.session_state["runs"] = asked[:MOST]  # a link, or the browser's Back
    elif "runs" not in st.session_state:
        usual = [one.name for one in views.related(there)]
        st.session_state["runs"] = [name for name in last or usual if name in names]
    chosen = st.multiselect("Runs", names, max_selections=MOST, key="runs", on_change=_remember_runs)
    st.session_state["chosen_runs"] = chosen
    if asked != chosen:  # by hand, as for one run; and so that a link still shows these when newer runs are there
        st.query_params["runs"] = chosen
    if not chosen:
        st.info("Choose the runs to put side by side.", icon=":material/compare_arrows:")
        st.stop()
    found = [state.store().run(name) for name in chosen]
    st.caption(views.in_common(found))
    return found


def choice(label: str, options: Sequence[Any], key: str, names: Callable[[Any], str] = str, help: str | None = None) -> Any:
    """One of a few options as a row of buttons; the first unless chosen."""
    picked = st.segmented_control(
        label, options, default=options[0], format_func=names, key=key, bind="query-params", required=True, help=help
    )
    return options[0] if picked is None else picked


def capture(run: Run) -> str:
    """Which capture of the run: training or serving (?capture=)."""
    there = [role for role in ("training", "serving") if run.capture(role)]
    return choice("Capture", there or ["training"], "capture")


def other_readings(drafter: Drafter) -> list[str]:
    """Readings of its file that compute something else than the default one."""
    return [name for name, spec in drafter.readings.items() if name != drafter.reading and spec != drafter.spec]


def reading(run: Run) -> str | None:
    """How to read the drafter (?reading=); None for its default. Asked only where public code differs about the file."""
    drafter = run.drafter.record if run.drafter else None
    others = other_readings(drafter) if drafter else []
    if not others:
        return None
    names = [drafter.reading, *others]
    told = {names[0]: f"{names[0]} (default)"}
    picked = st.selectbox(
        "Read the drafter", names, format_func=lambda name: told.get(name, name), key="reading", bind="query-params",
        width=420, help="Public code reads this file in different ways; the Drafter page says how they differ",
    )  # fmt: skip
    return None if picked == names[0] else picked


def log(run: Run) -> Import | None:
    """Which log of the run to draw over time (?log=), logs before files of replies. None when none has windows."""
    most_first = sorted(run.logs, key=lambda one: (bool(one.record.requests), -len(one.record.windows)))
    timed = {one.name: one for one in most_first if len(one.record.windows) > 1}
    if len(timed) < 2:
        return next(iter(timed.values()), None)
    return timed[st.selectbox("Log", list(timed), key="log", bind="query-params", width=420)]


def filtered_runs() -> list[Run]:
    """The runs that fit the search (?find=) and the tags (?tags=), newest first."""
    there = state.store().runs()
    if not there:
        empty("There is no run yet.")
        st.stop()
    tags = sorted({tag for one in there for tag in one.tags})
    with st.container(horizontal=True):
        wanted = st.text_input("Find", key="find", bind="query-params", placeholder="name, tag or note", width=320)
        chosen = st.pills("Tags", tags, selection_mode="multi", key="tags", bind="query-params") if tags else []
    words = (wanted or "").lower().split()
    return [one for one in there if set(chosen) <= set(one.tags) and all(word in _text(one) for word in words)]


def page(runs: list[Run]) -> list[Run]:
    """Those of one page of a long list (?page=)."""
    pages = -(-len(runs) // A_PAGE)
    if pages < 2:
        return runs
    number = st.pagination(pages, key="page", bind="query-params")
    st.caption(f"{len(runs):,} runs, {A_PAGE} a page")
    return runs[(number - 1) * A_PAGE : number * A_PAGE]


def _text(run: Run) -> str:
    return " ".join([run.name, *run.tags, run.notes]).lower()
