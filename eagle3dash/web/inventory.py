"""What a run has: each file with what was read from it and inferred, the corrections a person makes, the run's settings."""

from __future__ import annotations

from typing import Any

import streamlit as st

from eagle3dash.jobs import settings
from eagle3dash.jobs.selection import likely_states
from eagle3dash.records import Capture, Drafter, Import, Log, Run, Target
from eagle3dash.web import facts, pickers, state, words
from eagle3dash.web.words import safe, size

ICONS = {
    "drafter": ":material/psychology:",
    "capture": ":material/dataset:",
    "log": ":material/article:",
    "target": ":material/hub:",
}
NEEDED = {
    "drafter": "drafter",
    "training": "training capture",
    "serving": "serving capture",
    "log": "server log",
    "target": "target",
}
SHOWN_SOURCES = 3
TEMPERATURE = (
    "0 is greedy. Above it a server accepts less than a greedy replay, and the diagnosis blames the engine for less"
)


def inventory() -> None:
    """Of one run (?run=): what is there, what is missing, every file, the settings."""
    if not state.store().runs():
        pickers.offer("There is no run yet.")  # the page shows imports under way further up
        return
    run = pickers.run()
    there = {"drafter": run.drafter, "target": run.target, "log": run.logs or None}
    there |= {"training": run.capture("training"), "serving": run.capture("serving")}
    badges = (
        f":green-badge[:material/check: {name}]" if there[key] else f":gray-badge[:material/remove: no {name}]"
        for key, name in NEEDED.items()
    )
    st.markdown(" &nbsp;".join(badges))
    for item in run.imports:
        _file(run, item)
    with st.expander("Settings of the run", icon=":material/tune:"):
        _settings(run)


def _file(run: Run, item: Import) -> None:
    role = f", {item.record.role}" if isinstance(item.record, Capture) and item.record.role else ""
    told = facts.summary(item.record)
    known = item.name in (item.kind, getattr(item.record, "role", None)) or told.startswith(item.name)
    label = f"**{item.kind}{role}** · " + ("" if known else f"{safe(item.name, 60)} · ") + safe(told, 120)
    flag = f" · :orange[:material/warning: {len(item.problems)}]" if item.problems else ""
    with st.expander(label + flag, icon=ICONS[item.kind]):
        for problem in item.problems:
            st.warning(safe(problem), icon=":material/warning:")
        left, right = st.columns(2, gap="large")
        with left:
            st.caption("Read from the file")
            found = facts.details(item.record)
            st.table({name: safe(words.value(value)) for name, value in found.items()}, border="horizontal")
            _sources(item)
        with right:
            _inferred(item)
            with st.container(horizontal=True):
                _correct(run, item)
                if st.button(
                    "Take out of this run", key=f"detach {item.sha256}", icon=":material/link_off:", type="tertiary"
                ):
                    state.store().detach(run.name, item.sha256)
                    st.rerun()


def _sources(item: Import) -> None:
    for source in item.sources[:SHOWN_SOURCES]:
        st.caption(f"{safe(source.name, 60)}, {size(source.bytes)}, sha256 `{source.sha256[:12]}`")
    if len(item.sources) > SHOWN_SOURCES:
        st.caption(f"and {len(item.sources) - SHOWN_SOURCES} more files")


def _inferred(item: Import) -> None:
    st.caption("Inferred, because the file does not say it outright")
    if not item.inferred:
        st.text("nothing")
        return
    rows = [{"field": safe(i.field), "value": safe(i.value), "why": safe(i.why)} for i in item.inferred]
    st.table(rows, border="horizontal", hide_index=True)


def _correct(run: Run, item: Import) -> None:
    record, key = item.record, f"{run.name} {item.sha256}"
    if isinstance(record, Target):
        return
    with st.popover("Correct this", icon=":material/edit:"), st.form(f"correct {key}", border=False):
        if isinstance(record, Capture):
            for states, why in likely_states(run, record):
                st.caption(f"Likely: **{', '.join(map(str, states))}**, {safe(why)}")
        fields = {Capture: _capture_fields, Drafter: _drafter_fields, Log: _log_fields}[type(record)]
        given = fields(record)
        if st.form_submit_button("Save", type="primary"):
            state.store().correct(run.name, item.sha256, facts.changes(record, given))
            st.rerun()


def _capture_fields(record: Capture) -> dict[str, Any]:
    roles, lasts = [None, "training", "serving"], ["none", "pre-norm", "post-norm"]
    help = "HF[k] of each slot, in order; HF[0] is the embedding output"
    return {
        "states": st.text_input("States of the slots, ? for unknown", facts.written(record.states), help=help),
        "role": st.selectbox("Captured in", roles, roles.index(record.role), format_func=words.value),
        "aux": st.text_input("Slots fed to fc, in order", facts.written(record.aux)),
        "last": st.selectbox("Last state of the target", lasts, lasts.index(record.last)),
    }


def _drafter_fields(record: Drafter) -> dict[str, Any]:
    readings = [record.reading, *(name for name in record.readings if name != record.reading)]
    return {
        "states": st.text_input("States it reads", facts.written(record.states), help="HF[k], in the order of fc"),
        "reading": st.selectbox("Read as", readings, help="How public code reads the same file, where it differs"),
    }


def _log_fields(record: Log) -> dict[str, Any]:
    return {
        "steps": st.number_input("K, drafted tokens a round", 1, 64, record.steps),
        "engine": st.text_input("Engine", record.engine or ""),
    }


def _settings(run: Run) -> None:
    kinds = ["conditional", "cumulative"]
    given, heat = run.settings.get("expected") or [], run.settings.get("temperature")
    with st.form(f"settings {run.name}", border=False):
        left, middle, right, last = st.columns(4, vertical_alignment="bottom")
        expected = left.text_input(
            "Validation accuracy in training",
            ", ".join(f"{x:g}" for x in (given if isinstance(given, list) else [given])),
            placeholder="0.747, or one number a step",
            help="One number is taken as the acceptance of every step",
        )
        kind = middle.selectbox("Numbers by step are", kinds, kinds.index(run.settings.get("expected_kind") or kinds[0]))
        steps = right.number_input("K, if neither log nor config is right", 1, 64, run.settings.get("steps"))
        temperature = last.number_input(
            "Sampling temperature in serving", 0.0, settings.HOTTEST, heat, 0.1, placeholder="not stated", help=TEMPERATURE
        )
        if st.form_submit_button("Save", type="primary"):
            found = facts.accuracies(expected)
            made = {"expected": found, "expected_kind": kind if found else None, "steps": steps, "temperature": temperature}
            settings.change(state.store(), run.name, made)
            st.rerun()
