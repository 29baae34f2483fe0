"""Do files belong into one run? What they are is known; here they are held against each other and against what the run
already has.

Refused is only what can mean nothing: states of two widths, token ids that the drafter does not know, two captures without
a text in common. Texts that differ in part are a finding (tokens-differ) and no error. Reads token ids only, never states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from safetensors import safe_open

from eagle3dash.errors import BadInput
from eagle3dash.records import Capture, Drafter, Import, Run, Target

IN_A_ROW = 4  # token ids in a row that two captures must have in common somewhere
OTHER_RUN = "Import it into another run, or correct the file."

Where = Callable[[str], Path]  # SHA-256 -> tensor file


def check(run: Run | None, found: list[Import], where: Where) -> None:
    """Raises BadInput with both sides of a contradiction between `found` and the run's things in use."""
    mine = (run.drafter, run.target, run.capture("training"), run.capture("serving")) if run else ()
    replaced = {_slot(item) for item in found}
    known = [item for item in mine if item is not None and _slot(item) not in replaced]
    for index, item in enumerate(found):
        for other in (*found[:index], *known):
            if _slot(item) != _slot(other):
                _check_width(item, other)
                _check_tokens(item, other, where)


def _slot(item: Import) -> str:
    """What a later import of the same slot takes the place of."""
    return f"{item.record.role} capture" if isinstance(item.record, Capture) else item.kind


def _width(item: Import) -> int | None:
    """Ht, as this thing has it."""
    match item.record:
        case Drafter(spec=spec):
            return spec.target_hidden
        case Capture(width=width):
            return width
        case Target(hidden=width):
            return width
    return None


def _check_width(item: Import, other: Import) -> None:
    here, there = _width(item), _width(other)
    if None not in (here, there) and here != there:
        raise BadInput(
            f"{item.name}: wrong width: the {_slot(item)} has states {here} wide, the {_slot(other)} {other.name} "
            f"states {there} wide. {OTHER_RUN}"
        )


def _check_tokens(item: Import, other: Import, where: Where) -> None:
    if {item.kind, other.kind} == {"drafter", "capture"}:
        capture, drafter = (item, other) if item.kind == "capture" else (other, item)
        _check_vocabulary(capture, drafter, where)
    elif item.kind == other.kind == "capture" and not _same_text(item.record, other.record, where):
        raise BadInput(
            f"{item.name}: other token ids: no text of this {_slot(item)} shares {IN_A_ROW} token ids in a row with the "
            f"{_slot(other)} {other.name}, so nothing can be compared. Capture the same prompts again, or use another run."
        )


def _check_vocabulary(capture: Import, drafter: Import, where: Where) -> None:
    vocab = drafter.record.spec.vocab
    for sequence, ids in zip(capture.record.sequences, _texts(capture.record, where), strict=True):
        if ids.max() >= vocab:
            at = int((ids >= vocab).argmax())
            raise BadInput(
                f"{sequence.name}: token id {ids[at]} at position {at}, but the drafter {drafter.name} knows ids below "
                f"{vocab}. {OTHER_RUN}"
            )


def _same_text(one: Capture, other: Capture, where: Where) -> bool:
    if {s.token_sha256 for s in one.sequences} & {s.token_sha256 for s in other.sequences}:
        return True
    known = _rows(one, where)
    return any(bool(np.isin(rows, known).any()) for rows in _each(other, where))


def _rows(capture: Capture, where: Where) -> np.ndarray:
    return np.unique(np.concatenate(list(_each(capture, where))))


def _each(capture: Capture, where: Where) -> Iterator[np.ndarray]:
    """For each text, a number for every stretch of IN_A_ROW ids; a shorter text is padded."""
    for ids in _texts(capture, where):
        padded = np.concatenate([ids, np.full(max(0, IN_A_ROW - len(ids)), -1)])
        number = np.zeros(len(padded) - IN_A_ROW + 1, dtype=np.uint64)
        for i in range(IN_A_ROW):  # a hash: two stretches meet by chance once in 2^64
            number = (number ^ padded[i : i + len(number)].astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            number ^= number >> np.uint64(29)
        yield number


def _texts(capture: Capture, where: Where) -> Iterator[np.ndarray]:
    for sequence in capture.sequences:
        with safe_open(where(sequence.tensors), "np") as file:
            yield file.get_tensor("token_ids")
