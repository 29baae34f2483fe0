"""A drafter's file on a page: the portability table, its readings, the checks of its map, every field and every tensor.

Draws what `formats.engines` and the record say; decides nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import streamlit as st

from eagle3dash.errors import Missing
from eagle3dash.formats.engines import portability
from eagle3dash.formats.engines.cells import Proof
from eagle3dash.formats.engines.portability import Column
from eagle3dash.formats.engines.switches import differences
from eagle3dash.jobs import selection
from eagle3dash.records import Drafter, Run
from eagle3dash.web import cards, facts, paths, pickers, state, views, words
from eagle3dash.web.words import safe

OUTCOME = {
    "same": ":green[:material/check:]",
    "depends": ":blue[:material/help:]",
    "differs": ":orange[:material/warning:]",
    "stops": ":red[:material/block:]",
}
SAID = {"same": "{}", "depends": "{}, if set right", "differs": "not {}", "stops": "stops"}
USES = {"contradicting": 0, "missing": 0, "used": 1, "unused": 1, "ignored": 2}
LONG = 600
KEPT = re.compile(r"(?:\] )?HF\\\[[^\]]*\]|\] \S+|\S+ to \S+")  # an icon and its word, states, versions


def record(run: Run) -> Drafter:
    """The drafter of the run; without one the page ends in what to do."""
    if run.drafter is None:
        cards.error(Missing("This run has no drafter. Add its folder, with config.json and weights.", "drafter"))
        st.stop()
    return run.drafter.record


def head(run: Run, drafter: Drafter) -> None:
    """What the file is, in one line, and what is odd about it."""
    ids = "no layer ids" if drafter.layer_ids is None else f"layer ids {facts.written(drafter.layer_ids)}"
    at = f" at {safe(drafter.layer_ids_at)}" if drafter.layer_ids_at else ""
    means = f", meaning **{words.states(drafter.states)}**" if drafter.states else ""
    st.markdown(f"**{safe(run.drafter.name, 60)}** · {drafter.flavour}, read {safe(drafter.reading)} · {ids}{at}{means}")
    for problem in run.drafter.problems:
        st.warning(safe(problem, LONG), icon=":material/warning:")


def engines(run: Run, drafter: Drafter, proof: Proof) -> None:
    """The portability table: a row a concern, a column for versions that do the same, the run's own engine first."""
    layers = run.target.record.layers if run.target else None
    made = portability.columns(drafter, layers, proof)
    mine = _own(run, drafter, layers, proof)
    made.sort(key=lambda column: column not in mine)
    names, every = [_title(column, mine) for column in made], [f"{OUTCOME[c.outcome]} **{_said(c)}**" for c in made]
    lines = [{"concern": "**In all**", "the file": "", **dict(zip(names, every, strict=True))}]
    for concern, cells in portability.rows(made):
        texts = [_whole(f"{OUTCOME[cell.outcome]} {safe(cell.text, LONG)}") for cell in cells]
        held = next((cell.drafter for cell in cells if cell.drafter), "")
        lines.append({"concern": concern, "the file": _whole(safe(held)), **dict(zip(names, texts, strict=True))})
    st.table(lines, border="horizontal", hide_index=True)
    known = "" if layers else " The number of the target's layers, N, is not known: add the target to the run."
    shown = "what replays show" if proof.states else "what its config says"
    st.caption(
        f"Compared with {shown}. Versions between those named behave like the one before, as far as is known.{known}"
    )
    _changes(made, mine)


def _whole(text: str) -> str:
    """Text whose short parts stay in one line, so that on a narrow screen the table scrolls instead of crumbling."""
    return KEPT.sub(lambda found: found[0].replace(" ", "\u00a0"), text)


def _said(column: Column) -> str:
    return SAID[column.outcome].format(column.like)


def _own(run: Run, drafter: Drafter, layers: int | None, proof: Proof) -> list[Column]:
    named = run.settings.get("engine") or next((log.record.engine for log in run.logs if log.record.engine), None)
    version = next((log.record.version for log in run.logs if log.record.version), None)
    return portability.serving(drafter, str(named) if named else None, version, layers, proof)


def _title(column: Column, mine: list[Column]) -> str:
    return f"{column.engine} {_whole(column.versions)}{' · this run' if column in mine else ''}"


def _changes(made: list[Column], mine: list[Column]) -> None:
    asked = [column for column in made if column.changes]
    if not asked:
        st.success(f"Every engine here serves this file {made[0].like}.", icon=":material/check_circle:")
        return
    st.subheader("What to change", anchor=False)
    for column in asked:
        with st.expander(f"**{_title(column, mine)}** · {_said(column)}", expanded=column in (mine or asked[:2])):
            st.markdown(safe(column.summary, 2 * LONG))
            st.markdown("\n".join(f"- {safe(change, LONG)}" for change in column.changes))


def readings(run: Run, drafter: Drafter) -> None:
    """How public code reads the file, by name, beside the default reading; replays can take any of them."""
    st.subheader("Readings of the same file", anchor=False)
    lines = []
    for name in selection.readings(drafter):
        spec = drafter.readings.get(name, drafter.spec)
        own = name == drafter.reading
        found = "the default: replays use it" if own else "; ".join(differences(drafter.spec, spec)) or "computes the same"
        lines.append({"reading": f"**{safe(name)}**" if own else safe(name), "computes otherwise": safe(found, LONG)})
    st.table(lines, border="horizontal", hide_index=True)
    if pickers.other_readings(drafter):
        st.caption("Choose one on the Acceptance, Layers or Diagnosis page, or with --reading on the command line.")
        st.page_link(paths.ACCEPTANCE, label="Replay another reading", query_params={"run": run.name})


def vocabulary(run: Run, drafter: Drafter) -> None:
    """Every check of d2t and t2d, and what share of the texts can be drafted at all where a replay has told."""
    st.subheader("Draft vocabulary", anchor=False)
    if not drafter.map_checks:
        st.caption("No checks are kept with this file: import it again to make them.")
    lines = [_check(check.what, check.passed, check.found) for check in drafter.map_checks]
    known = [state.queue().cached(question) for question in views.replays(run, views.steps_of(run)).values()]
    covered = [(replay["capture"], replay["coverage"]) for replay in known if replay and replay["coverage"] is not None]
    lines += [
        _check("coverage", share >= 0.9, f"{share:.1%} of the tokens in the {role} capture can be drafted.")
        for role, share in covered
    ]
    if lines:
        st.table(lines, border="horizontal", hide_index=True)


def _check(what: str, passed: bool, found: str) -> dict[str, str]:
    outcome = f"{OUTCOME['same']} passed" if passed else f"{OUTCOME['stops']} failed"
    return {"check": what, "outcome": outcome, "found": safe(found)}


def contents(drafter: Drafter) -> None:
    """Every field of config.json and every tensor with what was made of it, the odd ones first."""
    fields = sorted(drafter.fields, key=lambda field: USES[field.use])
    tensors = sorted(drafter.tensor_list, key=lambda tensor: USES[tensor.use])
    left, right = st.tabs([f"config.json: {_counted(fields)}", f"Tensors: {_counted(tensors)}"])
    with left:
        rows = [{"use": f.use, "field": f.path, "value": f.value, "note": f.note} for f in fields]
        st.dataframe(rows, hide_index=True, alt="Fields of config.json")
    with right:
        rows = [{"use": t.use, "tensor": t.name, "shape": _shape(t.shape), "dtype": t.dtype} for t in tensors]
        st.dataframe(rows, hide_index=True, alt="Tensors of the file")


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _counted(items: list[Any]) -> str:
    found = Counter(item.use for item in items)
    return ", ".join(f"{found[use]} {use}" for use in USES if found[use]) or "none"
