"""The server feeds other states, or another order of them, than the drafter was trained on.

Trained and served states come from `wiring`: the sweep on training features, and the features themselves, in that order of
trust; the config is asked only where no serving capture tells. Faults seen in public: ids counted by the other convention,
the default triple in place of the config's, the first A of N captured states taken for the last A.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from eagle3dash.analysis.findings.evidence import Evidence, Label
from eagle3dash.analysis.findings.told import accept_lengths, listed, triples, wiring_severity
from eagle3dash.analysis.findings.wiring import Slot
from eagle3dash.formats.engines.states import default_states, settings
from eagle3dash.records import Finding, Gap

OBEYED = "The config names these states already: it is the engine, or what captured, that does not follow it. "
SHOWN = ("relative_error", "next_error", "cosine", "norm_ratio")  # of each slot, in the evidence


def wrong_aux_states(e: Evidence) -> list[Finding | Gap]:
    """Other states, states beside them, or states that training never saw."""
    w = e.wiring
    if w.trained is None:
        return []
    if w.slots:
        strange = [slot for slot in w.slots if slot.how in ("unknown", "near")]
        others = Counter(slot.state for slot in w.slots if slot not in strange) - Counter(w.trained)  # a state twice, too
        if others or strange:
            return [_finding(e, tuple(slot.state for slot in w.slots), strange)]
        return []
    believed = w.served or (w.declared if w.proved else None)
    if believed is not None and set(believed) != set(w.trained):
        return [_finding(e, believed, [])]
    return [] if w.served else [Gap("wrong-aux-states", "add a serving capture: only features show what is really fed")]


def aux_order(e: Evidence) -> list[Finding | Gap]:
    """The trained states in another order."""
    w = e.wiring
    served = w.served or (w.declared if w.proved else None)
    if w.trained is None or served is None or tuple(served) == w.trained or set(served) != set(w.trained):
        return []
    who = "The server feeds" if w.served else "The config makes the server feed"
    title = f"{who} the right states in another order: {listed(served)} instead of {listed(w.trained)}"
    title += "" if w.served else _worth(e)
    evidence = triples(e, served) | accept_lengths(e)
    return [Finding("aux-order", wiring_severity(e), title, evidence, _fix(e, w.trained))]


def _told(slot: Slot) -> dict[str, Any]:
    return {"slot": slot.slot, "state": slot.state, "how": slot.how} | {name: slot.numbers.get(name) for name in SHOWN}


def _finding(e: Evidence, served: Sequence[Label | None], strange: Sequence[Slot]) -> Finding:
    w = e.wiring
    evidence = triples(e, served) | accept_lengths(e)
    if w.slots:
        evidence["slots"] = [_told(slot) for slot in w.slots]
    trained = f"The drafter was trained on states {listed(w.trained)}"
    if strange:
        near = listed(f"slot {s.slot} (nearest: {s.numbers.get('nearest_state', s.state)})" for s in strange)
        title = f"{trained}; the server feeds states that the training capture does not hold, in {near}"
    elif w.served is not None:
        title = f"{trained}; the server feeds {listed(served)}{_kind(e, served)}"
    else:
        title = f"{trained}; its config makes the server feed {listed(served)}{_worth(e)}"
    return Finding("wrong-aux-states", wiring_severity(e), title, evidence, _fix(e, w.trained))


def _worth(e: Evidence) -> str:
    """What the declared states give on training features, where a sweep counted them."""
    row, own = e.wiring.declared_row, e.wiring.trained_replay
    if not row or not own or None in (row["row_accept_length"], own["row_accept_length"]):
        return ""
    return f", which give {row['row_accept_length']:.2f} tokens per row on training features instead of " + (
        f"{own['row_accept_length']:.2f}"
    )


def _kind(e: Evidence, served: Sequence[Label | None]) -> str:
    """What sort of mistake it looks like."""
    trained, target = e.wiring.trained, e.target.record if e.target else None
    numbers = all(isinstance(state, int) for state in (*served, *trained))
    steps = {s - t for s, t in zip(served, trained, strict=False)} if numbers else set()
    if steps in ({1}, {-1}):
        return " (off by one: there are two conventions of layer ids)"
    if e.wiring.declared is not None and tuple(served) == e.wiring.declared:
        return ", as its config says"
    if numbers and target is not None and target.layers and tuple(served) == default_states(target.layers):
        return " (the default triple of every engine)"
    return ""


def _fix(e: Evidence, trained: Sequence[Label]) -> str:
    if all(isinstance(state, int) for state in trained):
        feed = f"Make the server feed HF{list(trained)}. {settings(trained, e.engine)} Or retrain on what is served now."
        return f"{OBEYED}{feed}" if tuple(trained) == e.wiring.declared else feed
    w, named = e.wiring, ""
    if w.slots and w.declared is not None and len(w.declared) == len(w.served) and None not in w.served:
        pairs = zip(w.served, w.declared, strict=True)
        named = " By the config, " + ", ".join(f"{slot} is HF[{state}]" for slot, state in pairs) + "."
    return (
        f"Make the server feed the states that the training capture holds in {listed(trained)}, in this order.{named} Say "
        "which states those are (import with --states) to get the setting of each engine. Or retrain on what is served now."
    )
