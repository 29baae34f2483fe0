"""What a person knows better than a file: which fields of an import may be corrected, and how a correction is applied.

The original record stays as it was read; a correction belongs to one run's use of the content. Knows no database.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from eagle3dash.errors import BadInput
from eagle3dash.records import Drafter, Import, Inferred

FIELDS = {
    "capture": ("states", "role", "aux", "last"),
    "drafter": ("reading", "states"),
    "log": ("steps", "engine"),
    "target": (),
}


def differing(kept: Import, given: Import) -> dict[str, Any]:
    """Correctable fields in which the same content was read differently (another --as or --states)."""
    values = ((name, getattr(kept.record, name), getattr(given.record, name)) for name in FIELDS[kept.kind])
    return {name: new for name, old, new in values if new != old}


def check(item: Import, changes: dict[str, Any]) -> dict[str, Any]:
    """The changes that differ from the file, with lists as tuples. Raises BadInput on a field or value that cannot be."""
    clean = {}
    for name, value in changes.items():
        if name not in FIELDS[item.kind]:
            can = ", ".join(FIELDS[item.kind]) or "nothing"
            raise BadInput(f"{name!a} of {item.name!a} cannot be corrected. Of a {item.kind} one can correct: {can}.")
        value = tuple(value) if isinstance(value, list) else value
        wanted = _wanted(item, name, value)
        if wanted:
            raise BadInput(f"{name} of {item.name!a} cannot be {value!a}: {wanted} expected.")
        clean[name] = value
    return clean


def apply(item: Import, changes: dict[str, Any]) -> Import:
    """The import as a run uses it. Each corrected field says so in `inferred`, with what the file gave."""
    changes = {name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()}
    changes = {name: value for name, value in changes.items() if value != getattr(item.record, name)}
    if not changes:
        return item
    told = tuple(
        Inferred(name, _say(value), f"set by hand; the file gave {_say(getattr(item.record, name))}")
        for name, value in changes.items()
    )
    kept = tuple(i for i in item.inferred if i.field not in changes)
    if "reading" in changes:
        changes = {**changes, **_reading(item.record, changes["reading"])}
    return dataclasses.replace(item, record=dataclasses.replace(item.record, **changes), inferred=kept + told)


def _reading(record: Drafter, reading: str) -> dict[str, Any]:
    """Another reading becomes the default, and the default one of the others."""
    others = {name: spec for name, spec in record.readings.items() if name != reading}
    return {"spec": record.readings[reading], "readings": {**others, record.reading: record.spec}}


def _wanted(item: Import, name: str, value: Any) -> str | None:
    """What was expected instead of `value`, or None where it fits."""
    record = item.record
    if name == "states" and item.kind == "capture":
        slots = len(record.states)
        return None if _states(value, slots) else f"{slots} distinct states, one a slot, each 0 or more or none,"
    if name == "states":
        aux = record.spec.num_aux
        fits = value is None or (_states(value, aux) and None not in value)
        return None if fits else f"{aux} distinct states of 0 or more"
    if name == "aux":
        slots = len(record.states)
        fits = value is None or (_states(value) and set(value) <= set(range(slots)))
        return None if fits else f"distinct slots of 0..{slots - 1}"
    if name == "steps":
        return None if value is None or (type(value) is int and 1 <= value <= 64) else "a whole number of 1..64"
    if name == "engine":
        fits = value is None or (isinstance(value, str) and value.isprintable() and 1 <= len(value) <= 40)
        return None if fits else "1 to 40 printable characters"
    choices = {
        "role": (None, "training", "serving"),
        "last": ("pre-norm", "post-norm", "none"),
        "reading": (getattr(record, "reading", None), *getattr(record, "readings", ())),
    }[name]
    return None if value in choices else " or ".join(str(c) for c in choices)


def _states(value: Any, count: int | None = None) -> bool:
    """Whether it is a tuple of (`count`) states or slots, without repeats; None stands for an unknown one."""
    if not isinstance(value, tuple) or len(value) != (len(value) if count is None else count):
        return False
    known = [v for v in value if v is not None]
    return all(type(v) is int and 0 <= v < 10_000 for v in known) and len(set(known)) == len(known)


def _say(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join("unknown" if v is None else str(v) for v in value)
    return "unknown" if value is None else str(value)
