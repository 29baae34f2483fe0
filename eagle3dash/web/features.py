"""The parts of the Features page: the answer, the texts' first difference, the tests slot by slot, what the charts take.

Which states training fed and what each slot holds is judged as on the Diagnosis page (`analysis.held`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from eagle3dash.analysis import breaks, held
from eagle3dash.analysis.held import HOW, Held, state_name
from eagle3dash.charts import forensics
from eagle3dash.charts.features import depth
from eagle3dash.charts.theme import Chart
from eagle3dash.errors import BadInput
from eagle3dash.jobs import questions
from eagle3dash.jobs.questions import Question
from eagle3dash.jobs.selection import default_slots
from eagle3dash.records import Run
from eagle3dash.web import paths, state, views
from eagle3dash.web.words import safe

BUCKETS = 500  # points a line
BOUNDARIES = {  # settings of a server after which rows may break
    "chunked_prefill_size": "chunk of a prefill",
    "max_num_batched_tokens": "chunk of a prefill",
    "page_size": "cache page",
    "block_size": "cache block",
}
COLUMNS = {  # column -> what it is, and its unit
    "slot": "Place of the state in the serving capture, and the state that its name claims.",
    "feeds": "Which of the drafter's aux states it is, in the order of fc. Empty: it does not feed fc.",
    "trained on": "The state that training fed in this place.",
    "holds": "The training state found in it, whatever stands between.",
    "how": "The test that explains it: equal, at another scale, after a norm, blocks reordered, without the stream, ...",
    "rel. error": "Length of the difference to that state over its length in training, mean over tokens. 0 is equal, "
    "up to 0.05 is what two implementations differ by. No unit.",
    "error left": "Relative error left once the explanation is taken away, median over the rows that are right. No unit.",
    "cosine": "Cosine similarity with that state, mean over tokens. 1 is the same direction.",
    "norm ratio": "Length in serving over length in training, mean over tokens. 1 is equal.",
    "scale": "The factor, or the mean weight of the channels, that serving multiplies with. 1 is none.",
    "lag": "Tokens by which serving is late against training. 0 is none.",
    "block order": "Order of the blocks of the hidden dimension as served. Empty: as in training.",
    "rows right": "Share of the rows that the explanation fits.",
    "wrong rows": "Where the others stand: a position, places of a chunk (from 0 on), whole texts, or here and there.",
    "repeated": "Rows equal to the row before where training's differ.",
}
TESTS = {  # test -> column, what it tries
    "match": ("as it is", "The state as it is."),
    "scaled": ("scaled", "The state times one factor."),
    "blocks": ("blocks reordered", "The state with equal blocks of its width in another order."),
    "residual": ("without the stream", "The state minus another captured state: what the layers between add."),
    "normed": ("after a norm", "The state over its own root mean square, times a weight a channel."),
    "raw": ("before a norm", "The other way round: training's is the served state after a norm."),
    "channel": ("weight a channel", "The state times a weight a channel."),
}


@dataclass(frozen=True)
class Judged:
    """What the page rests on: every slot, what training fed, and how that is known."""

    slots: list[Held]
    trained: list[Any] | None
    because: str
    diagnosed: bool


def judged(run: Run, document: dict[str, Any]) -> Judged:
    """As the diagnosis proved, where it has been made; before that as the captures' formats say."""
    diagnosis = state.queue().cached(Question("diagnose", run.name))
    trained, _ = views.marked(run)
    if diagnosis is None:
        why = "as the training capture's format says; the diagnosis puts it to the test"
        return Judged(held.held(document, _fed(run), trained), trained, why, False)
    wiring = diagnosis["wiring"]
    fed = [slot["slot"] for slot in wiring["slots"]] or _fed(run)
    proved = wiring["trained_states"] is not None
    why = wiring["trained_because"] if proved else "as the training capture's format says"
    return Judged(held.held(document, fed, trained), trained, why, True)


def _fed(run: Run) -> list[int] | None:
    capture = run.capture("serving")
    if capture is None or run.drafter is None:
        return list(capture.record.aux) if capture is not None and capture.record.aux is not None else None
    try:
        return list(default_slots(capture.record, run.drafter.record))
    except BadInput:
        return None


def answer(document: dict[str, Any], found: Judged) -> None:
    """The page's question answered in a sentence; its colour, icon and words say how it stands."""
    level, sentence = held.verdict(document, found.slots, found.trained, found.because)
    boxes = {"error": (st.error, "error"), "warning": (st.warning, "warning"), "success": (st.success, "check_circle")}
    box, icon = boxes.get(level, (st.info, "info"))
    box(f"**{safe(sentence, 1200)}**", icon=f":material/{icon}:")
    if not found.diagnosed:
        st.page_link(paths.DIAGNOSIS, label="What it costs: diagnose this run", icon=":material/arrow_forward:")


def difference(document: dict[str, Any]) -> None:
    """The first difference of the texts, to be read: both sides, what differs marked; nothing where there is none."""
    told = document.get("alignment") or {}
    first = told.get("first_difference")
    if not first:
        return
    with st.container(border=True):
        st.markdown(f"**Where the texts part first: {safe(held.where(first))}**")
        for role in ("training", "serving"):
            st.markdown(_side(first, role))
        st.caption(safe(_behind(told, first)))


def _side(first: dict[str, Any], role: str) -> str:
    name = f":small[{role}, text {first[f'{role}_sequence'] + 1}]"
    if f"{role}_parts" in first:
        before, inside, after = (safe(part, 600) for part in first[f"{role}_parts"])
    else:
        start, (low, high) = first["ids_from"], first[f"{role}_span"]
        ids = [str(i) for i in first[f"{role}_ids"]]
        cuts = (ids[: low - start], ids[low - start : high - start], ids[high - start :])
        before, inside, after = (" ".join(part) for part in cuts)
    return f"{name}  \n{before} :orange-background[**{inside or '(nothing)'}**] {after}"


def _behind(told: dict[str, Any], first: dict[str, Any]) -> str:
    texts = f"{told['differing_pairs'] + len(told['unpaired_serving'])} of {told['serving_sequences']} texts differ."
    if first["what"] == "answer":
        texts += " Answers that part after the prompt are no fault: two implementations soon choose another token."
    if not told["tokens_behind"]:
        return f"{texts} States are compared over the {told['aligned_tokens']:,} tokens before the differences."
    return (
        f"{texts} States are compared over the {told['aligned_tokens']:,} tokens before the differences only: the "
        f"{told['tokens_behind']:,} tokens that are the same again behind them rest on another prefix, and a state depends "
        "on all tokens before it."
    )


def table(document: dict[str, Any], found: Judged) -> None:
    """One row a slot: what it holds, by which test, and the numbers of it. Every column says what it is."""
    if not found.slots:
        return
    cells = {(cell["training_state"], cell["serving_slot"]): cell for cell in document["cells"]}
    lines = [_line(each, cells.get((each.state, each.slot)) or document["best_cells"][each.slot]) for each in found.slots]
    always = {"slot", "holds", "how", "rel. error", "error left", "cosine", "norm ratio", "lag", "rows right"}
    shown = [name for name in COLUMNS if name in always or any(line[name] not in (None, "", 0) for line in lines)]
    config = {name: st.column_config.Column(name, help=COLUMNS[name]) for name in shown}
    st.markdown("**Tests on each slot**", help="Point at a column's name for what it is")
    rows = [{name: line[name] for name in shown} for line in lines]
    st.dataframe(rows, hide_index=True, width="stretch", column_config=config, alt="Tests on each serving slot")


def _line(each: Held, cell: dict[str, Any]) -> dict[str, Any]:
    n, share = each.numbers, each.numbers.get("share")
    return {
        "slot": f"{each.slot} ({state_name(each.name)})",
        "feeds": "" if each.place is None else f"fc {each.place + 1}",
        "trained on": "" if each.trained is None else state_name(each.trained),
        "holds": state_name(each.state),
        "how": HOW[each.how],
        "rel. error": _number(cell["relative_error"]),
        "error left": _number(n.get("error")),
        "cosine": _number(cell["cosine"]),
        "norm ratio": _number(cell["norm_ratio"]),
        "scale": _number(n.get("weight")) if each.how in ("scaled", "blocks", "normed", "channel") else "",
        "lag": f"{each.lag:+d}" if each.lag else "0",
        "block order": ", ".join(map(str, n.get("order") or ())),
        "rows right": "no data" if share is None else f"{share:.1%}",
        "wrong rows": breaks.where(n.get("break")),
        "repeated": each.repeated,
    }


def _number(value: float | None) -> str:
    return "no data" if value is None else f"{value:.4f}" if abs(value) < 100 else f"{value:,.1f}"


def tests(document: dict[str, Any]) -> None:
    """What each explanation leaves of the rows that it fits best, slot by slot."""
    found = [one for one in document.get("tests", ()) if one["left"]]
    if not found:
        return
    about = (
        "Relative error of the tenth of the rows that the explanation fits best, against the state it fits best; 0 is all."
    )
    st.markdown("**What is left of each slot by each test**", help=about)
    config = {name: st.column_config.Column(name, help=help) for name, help in TESTS.values()}
    rows = [
        {"slot": str(one["serving_slot"])}
        | {
            name: "none found" if (left := one["left"].get(how)) is None else _number(left)
            for how, (name, _) in TESTS.items()
        }
        for one in found
    ]
    st.dataframe(rows, hide_index=True, width="stretch", column_config=config, alt="Error that each test leaves")


def mask_is_off(document: dict[str, Any]) -> bool:
    """Whether the loss mask stands beside the answers."""
    found = document.get("mask") or {}
    return bool(found.get("shift") or found.get("inverted"))


def mask(document: dict[str, Any]) -> None:
    """Whether the training capture's loss mask stands at the answers' edges, with the first edge to be read."""
    found = document.get("mask")
    if not found:
        st.caption("Loss mask: the training capture has none.")
        return
    said = {
        0: "begins with the first token of the answers",
        1: "begins one token late",
        -1: "begins one token early",
    }.get(found["shift"], "can't be judged: too few answers, or they begin alike")
    if found["inverted"]:
        said = "covers the prompts and leaves the answers out"
    first = found["first"]
    sides = first and (first["text"] or {name: " ".join(map(str, ids)) for name, ids in first["ids"].items()})
    edge = f" First edge: {safe(sides['out'])} :orange-background[**{safe(sides['in'])}**]" if sides else ""
    line = f"Loss mask of training, {found['spans']} answers: {said}.{edge}"
    if mask_is_off(document):
        st.warning(line, icon=":material/warning:")
    else:
        st.caption(line)


def points(question: Question, found: Judged, document: dict[str, Any]) -> list[dict[str, Any]]:
    """Relative error over position of each slot against the state it holds, by the store."""
    out, key = [], questions.key(state.store(), question)
    for each in found.slots:
        slot = each.numbers.get("training_slot", document["best_cells"][each.slot]["training_slot"])
        asked = {"training_slot": slot, "serving_slot": each.slot, "buckets": BUCKETS}
        frame = state.store().frame("feature_position_mean", result_key=key, **asked)
        pair = f"slot {each.slot} with {state_name(document['training_states'][slot])}"
        out += [
            {"pair": pair, "slot": each.slot, "value": row["relative_error"]}
            | {name: row[name] for name in ("position", "position_end", "tokens")}
            for row in views.records(frame)
        ]
    return out


def boundaries(run: Run) -> dict[str, int]:
    """Tokens after which the run's server starts a chunk or a cache block, as its logs and the run's settings say."""
    found: dict[str, int] = {}
    for settings in (*(log.record.settings for log in run.logs), run.settings):
        for name, what in BOUNDARIES.items():
            value = str(settings.get(name, ""))
            if value.isdecimal() and int(value) > 1:
                found[what] = int(value)
    return found


def charts(document: dict[str, Any], found: Judged) -> tuple[list[Chart], list[Chart]]:
    """The pictures of the tests: those that have something to show, and the others; none where nothing was tested."""
    if not found.slots:
        return [], []
    made = [
        (forensics.lags(document, found.slots), any(each.lag for each in found.slots)),
        (
            forensics.channels(document, found.slots),
            any(each.how in ("normed", "channel", "scaled") for each in found.slots),
        ),
        (depth(found.slots), any(each.how in ("noisy", "near") for each in found.slots)),
    ]
    return [chart for chart, speaks in made if speaks], [chart for chart, speaks in made if not speaks]
