"""Questions on a page: the answer if it is known, else the button that asks, or how far the job is.

The page stays usable while a job runs: only a fragment looks at it, once a second, and when it ends the page is drawn again
with the answer. A reload, another tab and another visitor find the same job, by the question's key.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from eagle3dash.errors import Eagle3Error
from eagle3dash.jobs import questions
from eagle3dash.jobs.questions import Question
from eagle3dash.jobs.queue import OPEN
from eagle3dash.web import cards, state
from eagle3dash.web.words import duration, safe

RECENT = 200  # jobs among which an unanswered question looks for its own


def ask(wanted: dict[str, Question], label: str) -> dict[str, dict[str, Any] | None]:
    """The documents by name, None for those not known yet. For these one button or one progress line is drawn.

    A question that the run's files cannot answer says so and is None too.
    """
    known: dict[str, dict[str, Any] | None] = {}
    open_jobs, unasked, failures = [], [], []
    jobs = state.queue().jobs(RECENT)
    for name, question in wanted.items():
        try:
            known[name] = state.queue().cached(question)
            key = questions.key(state.store(), question) if known[name] is None else None
        except Eagle3Error as problem:
            known[name] = None
            cards.error(problem)
            continue
        if key is not None:
            mine = next((job for job in jobs if job["key"] == key), None)
            if mine and mine["state"] in OPEN:
                open_jobs.append(mine["id"])
            else:
                unasked.append(question)
                failures += [mine] if mine and mine["state"] == "failed" else []
    for job in failures:
        st.error(safe(f"The last attempt failed: {job['message']}"), icon=":material/error:")
    if open_jobs:
        progress(open_jobs)
    if unasked:
        _button(unasked, label)
    return known


def answer(question: Question, label: str) -> dict[str, Any] | None:
    """The document of one question, or None with a button or its progress on the page."""
    return ask({"only": question}, label)["only"]


def _button(unasked: list[Question], label: str) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        if st.button(label, type="primary", icon=":material/play_arrow:", key=f"ask {label} {unasked[0].run}"):
            _submit(unasked)
        st.caption(
            f"Not computed yet. It runs on {state.device_title()}; the page stays usable meanwhile, the answer is kept."
        )


def _submit(unasked: list[Question]) -> None:
    try:
        for question in unasked:
            state.queue().submit(question)
    except Eagle3Error as problem:
        cards.error(problem)
    else:
        st.rerun()


def imports_under_way() -> None:
    """The progress of imports, anybody's; nothing when there are none."""
    rows = state.queue().jobs(RECENT)
    under_way = [row["id"] for row in rows if row["kind"] in ("import", "demo") and row["state"] in OPEN]
    if under_way:
        progress(under_way)


def demo_under_way() -> bool:
    """Whether the demo is being loaded, by anybody."""
    return any(row["kind"] == "demo" and row["state"] in OPEN for row in state.queue().jobs(RECENT))


@st.fragment(run_every=1)
def progress(jobs: list[Any]) -> None:
    """How far jobs are, with a way to stop them. When none is under way any more, the whole page is drawn again."""
    rows = [state.queue().status(job) for job in jobs]
    for row in rows:
        bar(row)
    if not any(row["state"] in OPEN for row in rows):
        st.rerun()


def bar(row: dict[str, Any]) -> None:
    """One line of a job: what it does, its progress with rate and time left, its place in the queue, and Cancel."""
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(width="stretch"):
            st.progress(fraction(row), text=told(row))
        if row["state"] in OPEN and st.button("Cancel", key=f"cancel {row['id']}", icon=":material/close:"):
            state.queue().cancel(row["id"])


def fraction(row: dict[str, Any]) -> float:
    """Done over total, 0 where nothing is known."""
    return min(1.0, max(0.0, row["done"] / row["total"])) if row["total"] else 0.0


def told(row: dict[str, Any]) -> str:
    """A job's state as one line."""
    name = "loading the demo" if row["kind"] == "demo" else safe(f"{row['kind']} {row['run'] or ''}".strip())
    if row["state"] == "queued":
        return f"**{name}** waits, {row['ahead']} before it" if row["ahead"] else f"**{name}** waits for its device"
    if row["state"] != "running":
        return f"**{name}** {row['state']}"
    left = "" if row["eta"] is None else f", {duration(row['eta'])} left"
    where, what = safe(row["device"] or "the server"), safe(row["message"] or "starting")
    return f"**{name}** on {where}: {100 * fraction(row):.0f} %, {what}{left}"
