"""A record in words: in a line, as the facts that a person checks first, and as the text of the fields that correct it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eagle3dash.errors import BadInput
from eagle3dash.records import Capture, Drafter, Log, Target
from eagle3dash.web import words

Record = Drafter | Capture | Log | Target
UNKNOWN = {"?", "unknown", "none", "-"}
LISTS = ("states", "aux")


def summary(record: Record) -> str:
    """A record in a few words."""
    if isinstance(record, Drafter):
        return f"{record.flavour}, hidden {record.spec.hidden:,}, reads {words.states(record.states)} by its config"
    if isinstance(record, Capture):
        tokens = sum(sequence.tokens for sequence in record.sequences)
        held = (
            words.states(record.states)
            if any(k is not None for k in record.states)
            else f"{len(record.states)} unnamed states"
        )
        return f"{words.count(len(record.sequences), 'text')}, {tokens:,} tokens, {held}"
    if isinstance(record, Log):
        engine = " ".join(part for part in (record.engine or "unknown engine", record.version) if part)
        found = (
            words.count(len(record.requests), "request") if record.requests else words.count(len(record.windows), "window")
        )
        return f"{engine}, {found}"
    return f"{record.name or 'unnamed'}, vocabulary {record.vocab:,}, hidden {record.hidden:,}"


def details(record: Record) -> dict[str, Any]:
    """The facts of a record that a person checks first."""
    if isinstance(record, Drafter):
        return _of_drafter(record)
    if isinstance(record, Capture):
        return {
            "format": record.format,
            "states of the slots": words.states(record.states),
            "fed to fc": None if record.aux is None else ", ".join(f"slot {slot}" for slot in record.aux),
            "width": record.width,
            "dtype": record.dtype,
            "texts": len(record.sequences),
            "last state": record.last,
        }
    if isinstance(record, Log):
        known = {"engine": record.engine, "version": record.version, "K": record.steps}
        return {"format": record.format, **known, **record.settings}
    parts = {"vocabulary": record.vocab, "hidden": record.hidden, "layers": record.layers}
    return {**parts, "head": record.has_head, "final norm": record.has_norm, "text of tokens": record.has_text}


def _of_drafter(record: Drafter) -> dict[str, Any]:
    spec = record.spec
    return {
        "format": record.flavour,
        "read as": record.reading,
        "layer ids in its config": record.layer_ids,
        "states by its config": words.states(record.states),
        "K by its config": record.steps,
        "hidden / target hidden": f"{spec.hidden} / {spec.target_hidden}",
        "aux states": spec.num_aux,
        "vocabulary / draft vocabulary": f"{spec.vocab:,} / {spec.draft_vocab:,}",
        "embedding in the file": record.has_embedding,
        "head in the file": record.has_head,
    }


def written(values: Sequence[int | None] | None) -> str:
    """(0, None, 15) -> "0, ?, 15": a list as it is typed."""
    return "" if values is None else ", ".join("?" if value is None else str(value) for value in values)


def numbers(text: str | None) -> list[int] | None:
    """ "0, 2, 15" -> [0, 2, 15]; None for nothing. BadInput for anything else."""
    found = typed(text)
    if found and None in found:
        raise BadInput(f"{text!r} leaves a number open. Write whole numbers with commas between: 0, 2, 15.")
    return found


def typed(text: str | None) -> list[int | None] | None:
    """The inverse of `written`. BadInput for anything that is no list of whole numbers."""
    parts = (text or "").replace(",", " ").split()
    if not all(part.isdecimal() or part in UNKNOWN for part in parts):
        raise BadInput(f"{text!r} is no list of states. Write whole numbers with commas between: 0, 2, 15.")
    return [None if part in UNKNOWN else int(part) for part in parts] or None


def changes(record: Record, given: dict[str, Any]) -> dict[str, Any]:
    """The fields in which a form differs from its record, with lists parsed. BadInput for what is no list."""
    parsed = {name: typed(value) if name in LISTS else value or None for name, value in given.items()}
    if isinstance(record, Capture) and parsed.get("states") is None:
        raise BadInput("Write a state for every slot; ? for one that is unknown.")
    held = {name: list(value) if isinstance(value := getattr(record, name), tuple) else value for name in parsed}
    return {name: value for name, value in parsed.items() if held[name] != value}


def accuracies(text: str) -> float | list[float] | None:
    """ "0.747" -> 0.747, "0.48, 0.26" -> [0.48, 0.26], "" -> None. BadInput for anything else."""
    try:
        found = [float(part.rstrip("%")) for part in text.replace(",", " ").split()]
    except ValueError:
        raise BadInput(f"{text!r} is no accuracy. Write 0.747, or one number a step: 0.48, 0.26, 0.15.") from None
    return None if not found else found[0] if len(found) == 1 else found
