"""What a question means for the files of a run: which slots, which states, how many steps.

Pure functions of records (defaults: ARCHITECTURE.md, "The replay"); reads no file. A slot is the place of a state in a
capture, a state is HF[k]; a label is k where it is known and "s0", "s1", .. where it is not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from eagle3dash.analysis.served import steps_of
from eagle3dash.errors import BadInput
from eagle3dash.formats.engines.states import likely
from eagle3dash.records import Capture, Drafter, Run

DEFAULT_STEPS = 5
MOST_STEPS = 64
Label = int | str


def steps_for(run: Run, asked: int | None = None) -> int:
    """K: as asked, else the run's setting, else the logs', else the drafter config's, else 5."""
    logs = steps_of([log.record for log in run.logs])
    drafter = run.drafter.record.steps if run.drafter else None
    known = [steps for steps in (asked, run.settings.get("steps"), logs, drafter) if steps is not None]
    steps = int(known[0]) if known else DEFAULT_STEPS
    if not 1 <= steps <= MOST_STEPS:
        raise BadInput(f"{steps} steps were asked for; a chain has 1 to {MOST_STEPS}. Give --steps within that.")
    return steps


def readings(drafter: Drafter) -> list[str]:
    """Names under which public code reads this file, the default one first."""
    return list(dict.fromkeys((drafter.reading, *drafter.readings)))


def read_as(run: Run, reading: str | None) -> Run:
    """The run with its drafter read under another name. BadInput for a name that it hasn't; None changes nothing."""
    item = run.drafter
    if reading is None or item is None or reading == item.record.reading:
        return run
    known = readings(item.record)
    if reading not in known:
        raise BadInput(f"This drafter has no reading {reading!r}; it has {', '.join(map(repr, known))}.")
    record = replace(item.record, reading=reading, spec=item.record.readings[reading])
    imports = tuple(replace(one, record=record) if one is item else one for one in run.imports)
    return replace(run, imports=imports)


def default_slots(capture: Capture, drafter: Drafter) -> tuple[int, ...]:
    """The slots that feed fc unless somebody says otherwise. BadInput when nothing tells."""
    wanted = drafter.spec.num_aux
    if capture.aux is not None and len(capture.aux) == wanted:
        return capture.aux
    if len(capture.states) == wanted:
        return tuple(range(wanted))
    if drafter.states and set(drafter.states) <= set(capture.states):
        return tuple(capture.states.index(state) for state in drafter.states)
    raise BadInput(
        f"The capture holds {len(capture.states)} states, the drafter reads {wanted}, and neither says which. "
        f"Choose {wanted} of {shown(labels(capture, drafter))} with --states."
    )


def claims(capture: Capture, drafter: Drafter | None) -> dict[int, int]:
    """Slot -> HF number that the drafter's config claims, for the fc slots of a serving capture without ids of its own."""
    if drafter is None or drafter.states is None or capture.role != "serving":
        return {}
    fed = capture.aux if capture.aux is not None else tuple(range(len(capture.states)))
    if len(fed) != len(drafter.states):
        return {}
    return {slot: state for slot, state in zip(fed, drafter.states, strict=True) if capture.states[slot] is None}


def labels(capture: Capture, drafter: Drafter | None) -> list[Label]:
    """What to call each slot: its HF number, known or claimed, else s0, s1, .."""
    claimed = claims(capture, drafter)
    own = [state if state is not None else claimed.get(slot, f"s{slot}") for slot, state in enumerate(capture.states)]
    return [label if own.count(label) == 1 else f"s{slot}" for slot, label in enumerate(own)]


def slots_for(states: Sequence[Label] | None, capture: Capture, drafter: Drafter) -> tuple[int, ...]:
    """The slots that a person named by state (3) or by slot ("s1"); the default ones for None."""
    if not states:
        return default_slots(capture, drafter)
    names = {str(label): slot for slot, label in enumerate(labels(capture, drafter))}
    names |= {f"s{slot}": slot for slot in range(len(capture.states))}
    unknown = [str(state) for state in states if str(state) not in names]
    if unknown:
        raise BadInput(
            f"The {capture.role} capture has no state {', '.join(unknown)}. "
            f"It holds {shown(labels(capture, drafter))}; name those, or slots as s0, s1, ..."
        )
    if len(states) != drafter.spec.num_aux:
        raise BadInput(f"{len(states)} states were named; the drafter's fc reads {drafter.spec.num_aux}, in order.")
    return tuple(names[str(state)] for state in states)


def worth_exact(capture: Capture, drafter: Drafter) -> list[tuple[int, ...]]:
    """The choices that a sweep counts exactly, however bad: what the capture's format feeds, and what the config names."""
    found = []
    for states in (None, drafter.states):
        if states is None or set(states) <= set(capture.states):
            with contextlib.suppress(BadInput):
                found.append(slots_for(states, capture, drafter))
    return list(dict.fromkeys(found))


def shown(states: Sequence[Label]) -> str:
    """States for a person: 0, 2, 15."""
    return ", ".join(str(state) for state in states)


def likely_states(run: Run, capture: Capture) -> list[tuple[tuple[int, ...], str]]:
    """HF[k] and why: what a capture that cannot say its states may hold, by the run's drafter and target. Else empty."""
    if None not in capture.states:
        return []
    claimed = run.drafter.record.states if run.drafter else None
    return likely(len(capture.states), claimed, run.target.record.layers if run.target else None)
