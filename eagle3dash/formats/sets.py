"""Dumps of one call -> captures: layouts told apart, widths and states agreed with what else is known.

Runs only in the parsing child. Which files lie together is `groups`' business, their rows are `captures`'.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from eagle3dash.errors import BadInput
from eagle3dash.formats import captures, dataset, dumps
from eagle3dash.formats.containers import Leaf
from eagle3dash.formats.groups import Dumped
from eagle3dash.formats.job import Attempt, Job, thing
from eagle3dash.records import Inferred, Role

Pieces = list[captures.Piece]


def read(job: Job, folders: list[Dumped], attempt: Attempt, aside: list[str]) -> Iterator[dict[str, Any]]:
    """Every capture. Raises BadInput where two of them, or a capture and the drafter, cannot belong together.

    A drafter's folder may hold captures that do not say what they are from: these are named in `aside` and left out.
    """
    sets = [(dumped, pieces) for dumped in folders for pieces in _pieces(job, dumped, attempt)]
    if job.num_aux is not None and job.out is not None:
        aside += [piece.name for _, pieces in sets if _left_aside(job, pieces) for piece in pieces]
        sets = [(dumped, pieces) for dumped, pieces in sets if not _left_aside(job, pieces)]
    if not sets:
        return
    attempt(sets[0][1][0].name, _agree, job, [pieces for _, pieces in sets])
    for dumped, pieces in sets:
        found = attempt(pieces[0].name, _capture, job, dumped, pieces)
        if found is not None:
            yield found


def _left_aside(job: Job, pieces: Pieces) -> bool:
    return _role(job, pieces) is None and not any(piece.file.explicit for piece in pieces)


def _role(job: Job, pieces: Pieces) -> Role | None:
    return job.role if job.role in ("training", "serving") else pieces[0].dump.role


def _agree(job: Job, sets: list[Pieces]) -> None:
    first = sets[0][0]
    for pieces in sets[1:]:
        _check_width(pieces[0], first)
    if job.states is not None and not any(_fit(job.states, pieces) for pieces in sets):
        count = len(first.dump.slots)
        raise BadInput(f"{first.name}: {len(job.states)} states were named, but the capture has {count}. Name each one.")


def _check_width(piece: captures.Piece, first: captures.Piece) -> None:
    here, there = piece.dump.slots[0].width, first.dump.slots[0].width
    if here != there:
        text = f"{piece.name}: wrong width: {here} wide, but {first.name} is {there} wide."
        raise BadInput(f"{text} Import one model at a time.")


def _pieces(job: Job, dumped: Dumped, attempt: Attempt) -> list[Pieces]:
    """The folder's dumps by layout."""
    layouts: dict[str, Pieces] = {}
    masks: dict[str, Leaf] = {}
    for one in dumped.datasets:
        masks |= attempt(one.file.name, dataset.masks, one.path) or {}
    for one in dumped.files:
        beside = replace(dumped.beside, name=Path(one.file.path).name, width=job.width, num_aux=job.num_aux)
        found = attempt(one.file.name, dumps.recognise, one.value, beside) or []
        for dump in (_masked(dump, masks) for dump in found):
            name = f"{Path(one.file.path).name}{' ' + dump.part if dump.part else ''}"
            layouts.setdefault(dump.format, []).append(captures.Piece(name, dump, one.file.bytes // len(found), one.file))
    return list(layouts.values())


def _masked(dump: dumps.Dump, masks: dict[str, Leaf]) -> dumps.Dump:
    """The dump with its loss mask from the data set, if it has none itself and its text is there."""
    if dump.loss_mask is not None or not masks:
        return dump
    return replace(dump, loss_mask=masks.get(dataset.key(dump.tokens.read())))


def _fit(states: tuple[int, ...], pieces: Pieces) -> bool:
    dump = pieces[0].dump
    return len(states) in (len(dump.slots), len(dump.aux or ()))


def _capture(job: Job, dumped: Dumped, pieces: Pieces) -> dict[str, Any]:
    first = pieces[0]
    width = first.dump.slots[0].width
    if job.width is not None and width != job.width:
        raise BadInput(f"{first.name}: wrong width: the states are {width} wide, the drafter reads states of {job.width}.")
    if job.out is not None and _role(job, pieces) is None:
        raise BadInput(
            f"{first.name}: from training or from serving? The file can't say. Add --as training or --as serving."
        )
    states, notes, problems = _states(job, dumped, pieces)
    role: Role | None = job.role if job.role in ("training", "serving") else None
    built = captures.build(pieces, job.out, role, states, notes, job.progress)
    built = replace(built, problems=(*built.problems, *problems))
    files = list(dict.fromkeys(piece.file for piece in pieces)) + (dumped.extra if notes and job.states is None else [])
    folder = Path(first.file.path).parent.name
    name = folder if len(files) > 1 and folder else Path(first.name).stem
    return thing("capture", name, files, job, built)


def _states(job: Job, dumped: Dumped, pieces: Pieces) -> tuple[Any, tuple[Inferred, ...], tuple[str, ...]]:
    """What each slot holds: from the user, from a file beside, or unknown."""
    slots = len(pieces[0].dump.slots)
    if job.states is not None and _fit(job.states, pieces):
        padded = (*job.states, *(None,) * (slots - len(job.states)))
        return padded, (Inferred("states", ", ".join(map(str, job.states)), "named by the user"),), ()
    listed = dumped.beside.states
    if listed is None or not pieces[0].dump.format.startswith("speculators"):
        return None, (), ()
    if len(listed) != slots:
        return None, (), (f"data_config.json names {len(listed)} states, but the files hold {slots}; it was not used.",)
    return listed, (Inferred("states", ", ".join(map(str, listed)), dumped.beside.states_why),), ()
