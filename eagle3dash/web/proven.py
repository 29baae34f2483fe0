"""What the diagnosis of a run has shown of its drafter's training, for pages that compare with it. Asks nothing new.

A question whose answer is not known yet proves nothing: then pages say what the files say, as such.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from eagle3dash.errors import Eagle3Error
from eagle3dash.formats.engines.cells import UNPROVED, Proof
from eagle3dash.jobs.questions import Question
from eagle3dash.records import DrafterSpec, Run
from eagle3dash.web import paths, state
from eagle3dash.web.words import safe, states

SWITCHES = {name for name, kind in DrafterSpec.__annotations__.items() if kind in ("bool", bool)}


def diagnosis(run: Run) -> dict[str, Any] | None:
    """The diagnosis of the run as its files are read by default, if it was made."""
    try:
        return state.queue().cached(Question("diagnose", run.name))
    except Eagle3Error:  # the run's files do not allow one
        return None


def proof(document: dict[str, Any] | None) -> Proof:
    """Of a diagnosis: the states it was trained on, and what its file gets wrong."""
    if document is None:
        return UNPROVED
    trained = document["wiring"]["trained_states"]
    known = tuple(trained) if trained and all(isinstance(each, int) for each in trained) else None
    belied = {name: value for finding in _belied(document) for name, value in finding["evidence"]["sets"].items()}
    switches = {name: value for name, value in belied.items() if name in SWITCHES}
    return Proof(known, switches, more=len(switches) < len(belied))


def _belied(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Findings by which a replay on training features shows that the file says something else than training did."""
    return [f for f in document["findings"] if f["evidence"].get("capture") == "training" and f["evidence"].get("sets")]


def told(run: Run, document: dict[str, Any] | None) -> None:
    """One line: what was shown, and by what; or that nothing was, and where to ask."""
    wiring = document["wiring"] if document else {}
    if not wiring.get("trained_states"):
        st.caption(
            "What it was trained on is not shown by a replay yet: below, engines are compared with what its config says."
        )
        st.page_link(
            paths.DIAGNOSIS, label="Diagnose this run", query_params={"run": run.name}, icon=":material/troubleshoot:"
        )
        return
    lines = [f"Replays show: trained on **{states(wiring['trained_states'])}** ({safe(wiring['trained_because'])})."]
    if wiring["served_states"]:
        lines.append(f"This run's server feeds **{states(wiring['served_states'])}** ({safe(wiring['served_because'])}).")
    lines += [f"{safe(finding['title'], 600)}." for finding in _belied(document)]
    show = st.warning if _differs(wiring) or _belied(document) else st.info
    show("\n\n".join(lines), icon=":material/science:")


def _differs(wiring: dict[str, Any]) -> bool:
    others = [wiring[name] for name in ("served_states", "declared_states") if wiring[name]]
    return any(list(other) != list(wiring["trained_states"]) for other in others)
