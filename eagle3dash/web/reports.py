"""The report of a diagnosis as a download. It is made when somebody asks for it, from answers that are already known."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import streamlit as st

from eagle3dash.analysis.report import markdown
from eagle3dash.charts import report
from eagle3dash.errors import Eagle3Error
from eagle3dash.jobs.questions import Question
from eagle3dash.jobs.summary import about
from eagle3dash.records import Run
from eagle3dash.web import state


def file_name(run: Run, ending: str) -> str:
    """diagnosis-story-as-served.html: a name that every file system takes."""
    name = re.sub(r"[^\w.-]+", "-", run.name).strip("-.")[:80]
    return f"diagnosis{'-' if name else ''}{name}.{ending}"


def downloads(run: Run, document: dict[str, Any], reading: str | None) -> None:
    """Two buttons: one HTML file with the pictures inside, and Markdown."""
    st.download_button(
        "Report (HTML)",
        lambda: _html(run, document, reading),
        file_name(run, "html"),
        "text/html",
        icon=":material/description:",
        type="tertiary",
        on_click="ignore",
        help="One file with verdict, numbers, pictures, findings and file hashes, to attach to a ticket",
    )
    st.download_button(
        "Report (Markdown)",
        lambda: markdown(document, about(run, datetime.now().astimezone())),
        file_name(run, "md"),
        "text/markdown",
        icon=":material/markdown:",
        type="tertiary",
        on_click="ignore",
        help="The same as text, to paste into a ticket",
    )


def _html(run: Run, document: dict[str, Any], reading: str | None) -> str:
    steps = {"steps": document["steps"], "reading": reading}
    wanted = {
        "training": Question("replay", run.name, {"capture": "training", **steps}),
        "serving": Question("replay", run.name, {"capture": "serving", **steps}),
        "sweep": Question("sweep", run.name, {"capture": "training", **steps}),
        "features": Question("features", run.name),
    }
    known = {name: found for name, question in wanted.items() if (found := _known(question)) is not None}
    return report.page(document, about(run, datetime.now().astimezone()), report.pictures(document, known))


def _known(question: Question) -> dict[str, Any] | None:
    try:
        return state.queue().cached(question)
    except Eagle3Error:  # the run lacks the files for it
        return None
