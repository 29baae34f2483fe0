"""Bringing files in from a page: where they come from, what the person knows about them, how the import went."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from eagle3dash.jobs.queue import OPEN
from eagle3dash.web import asking, facts, inbox, paths, state, upload, uploader
from eagle3dash.web.words import safe, size

ROLES = {
    None: "as its content says",
    "drafter": "drafter",
    "training": "training capture",
    "serving": "serving capture",
    "log": "server log or metrics",
    "target": "target",
}


@dataclass(frozen=True)
class Source:
    """Files that lie on the server and wait to be imported. `upload`: the id of the upload they came by."""

    paths: tuple[Path, ...]
    upload: str | None = None


def source() -> Source | None:
    """The upload field, or the choice from the server's inbox; None until something whole is there."""
    where = st.segmented_control(
        "From",
        ["this computer", "a folder of the server"],
        default="this computer",
        required=True,
        key="from",
        bind="query-params",
        label_visibility="collapsed",
    )
    return _from_browser() if where == "this computer" else _from_inbox()


def _from_browser() -> Source | None:
    sent = uploader.uploader()
    return Source((upload.finished(sent["id"], sent["files"]),), sent["id"]) if sent else None


def _from_inbox() -> Source | None:
    there = {entry.name: entry for entry in inbox.entries()}
    st.caption("Copy large files to this folder of the server, then choose them here:")
    st.code(str(inbox.folder()), language=None)
    if not there:
        st.info("The folder is empty, or does not exist yet.", icon=":material/folder_open:")
        return None

    def told(name: str) -> str:
        count = there[name].bytes
        return name if count is None else f"{name} ({size(count)})"

    chosen = st.multiselect("Files and folders", list(there), format_func=told, key="inbox")
    return Source(tuple(inbox.resolve(name) for name in chosen)) if chosen else None


def form(files: Source) -> None:
    """What the files may not say: the run they belong to, a role, states. Import queues the job, once for these files."""
    if _asked(files):
        return
    with st.form("import", border=True):
        first, second, third, fourth = st.columns([3, 3, 2, 2])
        names = [run.name for run in state.store().runs()]
        known = first.selectbox("Run", [None, *names], format_func=lambda name: name or "a new run")
        new = second.text_input("Name of a new run", placeholder="empty: named from the files")
        role = third.selectbox("What they are", list(ROLES), format_func=ROLES.get)
        states = fourth.text_input(
            "States, if known", placeholder="0, 2, 15, 27", help="HF[k] of each slot of a capture, in order"
        )
        if st.form_submit_button("Import", type="primary", icon=":material/download:"):
            job = state.queue().bring_in(
                [str(path) for path in files.paths], known or new or None, role, facts.numbers(states)
            )
            st.session_state["import_job"], st.session_state["import_upload"] = job, files.upload
            st.session_state["import_of"] = files
            st.rerun()


def _asked(files: Source) -> bool:
    """Whether these very files are being imported, as after Enter and a click at once; an upload is imported but once."""
    if st.session_state.get("import_of") != files:
        return False
    job = state.queue().status(st.session_state["import_job"])
    return job["state"] in OPEN or (job["state"] == "done" and files.upload is not None)


def result() -> None:
    """Imports under way (anybody's), and how the last one of this visitor ended."""
    asking.imports_under_way()
    if "import_job" not in st.session_state:
        return
    mine = state.queue().status(st.session_state["import_job"])
    if mine["state"] in OPEN:
        return
    if mine["state"] == "done":
        _tidy(mine["result"]["run"])
        _added(mine["result"])
    else:
        st.error(safe(mine["message"] or f"The import was {mine['state']}."), icon=":material/error:")
        st.caption("Nothing was stored. Remove the file above, or say more about it, and import again.")


def _tidy(run: str) -> None:
    """Once: the store has the content, so the uploaded files are in the way; and the run is the one to look at now."""
    if "import_upload" not in st.session_state:
        return
    sent = st.session_state.pop("import_upload")
    st.query_params["run"] = run
    if sent:
        upload.discard(sent)
        uploader.forget()
        st.rerun()


def _added(result: dict[str, Any]) -> None:
    lines = []
    for item in result["added"]:
        again = ": **known already, stored once**" if item["known"] else ""
        lines.append(f"- {item['kind']} {safe(item['name'])}{again}")
        lines += [f"    - :orange[:material/warning:] {safe(problem)}" for problem in item["problems"]]
    st.success(f"Added to the run **{safe(result['run'])}**:\n\n" + "\n".join(lines), icon=":material/check:")
    where = {"query_params": {"run": result["run"]}, "icon": ":material/troubleshoot:"}
    st.page_link(paths.DIAGNOSIS, label=f"Where did the tokens of {safe(result['run'], 60)} go?", **where)
