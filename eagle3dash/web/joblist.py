"""The Jobs page: devices with their memory, the jobs under way, and what ran before."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import streamlit as st

from eagle3dash.errors import Eagle3Error
from eagle3dash.jobs.devices import devices as found_devices
from eagle3dash.jobs.queue import OPEN
from eagle3dash.web import asking, cards, state
from eagle3dash.web.words import duration, size

MOST = 100
LAST_LINES = 200


def devices() -> None:
    """What can run a replay, and how much memory is free."""
    with st.container(horizontal=True):
        for device in found_devices():
            free = "unknown" if device.free_bytes is None else f"{size(device.free_bytes)} free"
            whole = "" if device.total_bytes is None else f"of {size(device.total_bytes)}"
            st.metric(f"{device.name} · {device.title}", free, whole, delta_color="off", delta_arrow="off", border=True)


@st.fragment(run_every=1)
def queue() -> None:
    """Jobs under way, in order, each with its place, progress and Cancel."""
    under_way = [job for job in state.queue().jobs(MOST) if job["state"] in OPEN]
    seen = st.session_state.get("jobs_under_way", 0)
    st.session_state["jobs_under_way"] = len(under_way)
    if len(under_way) < seen:
        st.rerun()  # one has ended: the list below changes too
    if not under_way:
        st.caption("Nothing is running or waiting.")
    for job in reversed(under_way):
        asking.bar(job)


def history() -> None:
    """Ended jobs, newest first; a chosen one shows what happened and can be run again."""
    ended = [job for job in state.queue().jobs(MOST) if job["state"] not in OPEN]
    if not ended:
        st.caption("No job has run yet.")
        return
    rows = [line(job) for job in ended]
    picked = st.dataframe(
        rows,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key="ended_jobs",
        width="stretch",
        alt="Ended jobs",
    )
    chosen = picked["selection"]["rows"]
    if chosen and chosen[0] < len(ended):
        _details(ended[chosen[0]])
    else:
        st.caption("Choose a line to see what happened, or to run it again.")


def line(job: dict[str, Any]) -> dict[str, Any]:
    """An ended job as a line of the table; times are UTC."""
    began, ended = (datetime.fromisoformat(job[name]) if job[name] else None for name in ("started", "ended"))
    return {
        "job": job["id"],
        "what": job["kind"],
        "run": job["run"] or "",
        "state": job["state"],
        "device": job["device"] or "",
        "ended, UTC": f"{ended:%Y-%m-%d %H:%M:%S}" if ended else "",
        "took": duration((ended - began).total_seconds()) if began and ended else "",
        "message": "" if job["state"] == "done" else job["message"],
    }


def _details(job: dict[str, Any]) -> None:
    with st.container(border=True):
        st.markdown(f"**Job {job['id']}**: {job['kind']}, {job['state']}")
        if job["message"]:
            st.text(job["message"])
        st.json(job["args"], expanded=False)
        if st.button("Run it again", icon=":material/replay:"):
            try:
                state.queue().retry(job["id"])
            except Eagle3Error as problem:
                cards.error(problem)
            else:
                st.rerun()
        lines = worker_log(job["device"])
        if lines:
            st.caption(f"The last lines that the worker of {job['device']} wrote")
            with st.container(height=220, autoscroll=True):
                st.code("\n".join(lines), language=None)


def worker_log(device: str | None) -> list[str]:
    """The tail of a worker's log; reads at most its last 64 KB."""
    path = state.folder() / "logs" / f"worker-{(device or '').replace(':', '-')}.log"
    if not device or not path.is_file():
        return []
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 65536))
        return file.read().decode("utf-8", "replace").splitlines()[-LAST_LINES:]
