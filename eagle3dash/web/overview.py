"""The list of runs: a card each with its health, and the edits a person makes to a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from eagle3dash.jobs.questions import Question
from eagle3dash.records import Run
from eagle3dash.web import paths, state, views
from eagle3dash.web.words import number, safe

NUMBERS = {
    "served": "Served",
    "replayed_serving": "Replayed, serving features",
    "replayed_training": "Replayed, training features",
}


def diagnoses(runs: Sequence[Run]) -> dict[str, Question]:
    """The diagnosis of every run that has any file."""
    return {run.name: Question("diagnose", run.name) for run in runs if run.imports}


def numbers_of(run: Run, document: dict[str, Any] | None) -> dict[str, Any]:
    """The numbers of a diagnosis; before there is one, what the logs alone say."""
    if document is not None:
        return document["numbers"]
    served = views.served_of(run)
    return {"served": served["accept_length"] if served else None}


def numbers(runs: Sequence[Run], known: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(run, its numbers) for the picture of all runs."""
    return [(run.name, numbers_of(run, known.get(run.name))) for run in runs]


def most_steps(runs: Sequence[Run]) -> int:
    """The largest K of some runs: the axis that fits them all."""
    return max((views.steps_of(run) for run in runs), default=1)


def health(document: dict[str, Any] | None) -> str:
    """A badge: text and icon, so that the colour need not be seen."""
    if document is None:
        return ":gray-badge[:material/pending: no verdict yet]"
    severities = {finding["severity"] for finding in document["findings"]}
    if "error" in severities:
        return ":red-badge[:material/error: tokens are lost]"
    if "warning" in severities:
        return ":orange-badge[:material/warning: look at it]"
    if None in (document["numbers"]["replayed_training"], document["numbers"]["replayed_serving"]):
        return ":gray-badge[:material/help: too few files to say]"
    if any(finding["id"] == "drafter-weak" for finding in document["findings"]):
        return ":green-badge[:material/check_circle: no mismatch] :gray-badge[weak drafter]"
    return ":green-badge[:material/check_circle: healthy]"


def card(run: Run, document: dict[str, Any] | None) -> None:
    """Name and verdict, the numbers, the way to the diagnosis, and the edits."""
    found = numbers_of(run, document)
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{safe(run.name)}** &nbsp;{health(document)}", width="content")
            st.markdown(" ".join(f":gray-badge[{safe(tag)}]" for tag in run.tags) or " ", width="stretch")
            st.page_link(
                paths.DIAGNOSIS,
                label="Diagnosis",
                icon=":material/troubleshoot:",
                query_params={"run": run.name},
                width="content",
            )
            with st.popover("Edit", icon=":material/edit:", type="tertiary"):
                _edit(run)
        if document is not None:
            st.markdown(safe(document["verdict"]))
        with st.container(horizontal=True, gap="large"):
            for name, label in NUMBERS.items():
                st.metric(label, number(found.get(name)), width="content")
            st.metric("K", str(views.steps_of(run)), width="content", help="Tokens the drafter may draft in a round")
        if run.notes:
            st.caption(safe(run.notes))


def _edit(run: Run) -> None:
    with st.form(f"edit {run.name}", border=False):
        name = st.text_input("Name", run.name)
        tags = st.text_input("Tags, separated by commas", ", ".join(run.tags))
        notes = st.text_area("Notes", run.notes)
        if st.form_submit_button("Save", type="primary"):
            given = [tag.strip() for tag in tags.split(",") if tag.strip()]
            rename = name if name.strip() != run.name else None
            state.store().update_run(run.name, settings=None, tags=given, notes=notes, rename=rename)
            st.rerun()
    if st.button("Delete", key=f"delete {run.name}", icon=":material/delete:", help="Can be undone until it is purged"):
        state.store().delete_run(run.name)
        st.rerun()


def trash() -> None:
    """Deleted runs, to bring back or to remove for good."""
    deleted = state.store().trash()
    if not deleted:
        return
    with st.expander(f"Deleted runs: {len(deleted)}", icon=":material/delete:"):
        for name, when in deleted:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.text(f"{name}, deleted {when}", width="stretch")
                if st.button("Bring back", key=f"restore {name} {when}"):
                    state.store().restore_run(name)
                    st.rerun()
        if st.button("Remove them for good", icon=":material/delete_forever:", help="Frees the disk; cannot be undone"):
            state.store().purge()
            st.rerun()
