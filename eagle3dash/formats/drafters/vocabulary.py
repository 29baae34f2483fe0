"""Checks of the draft vocabulary's map. Faults are reported, never repaired.

d2t [DV] is an offset: target id = i + d2t[i]. t2d [V] marks the kept target ids. The order of d2t differs between tools
(SafeAILab, SpecForge and speculators sort it; ModelOpt and NeMo Automodel keep frequency order), so it is never rebuilt.
Seen in the wild: zeros or arange where nobody filled the map in, absolute ids, a mask of other ids, a head cut by offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from eagle3dash.formats.drafters.checkpoint import Checkpoint, rows
from eagle3dash.records import DrafterSpec, MapCheck

PAIRS = 64  # pairs of head rows that are compared


def checks(checkpoint: Checkpoint, tensors: dict[str, Any], spec: DrafterSpec) -> tuple[MapCheck, ...]:
    """Every check that the file allows; what fails is noted as a problem too. tensors: canonical, d2t and t2d read."""
    d2t, t2d, head = (tensors.get(name) for name in ("d2t", "t2d", "lm_head.weight"))
    if d2t is None:
        return (_absent(spec),)
    found = list(_map(d2t, t2d, spec.vocab))
    if head is not None:
        found += _head(head, d2t)
    for check in found:
        if check.passed is False:
            checkpoint.problem(check.found)
    return tuple(found)


def _absent(spec: DrafterSpec) -> MapCheck:
    if spec.draft_vocab == spec.vocab:
        return MapCheck("needed", True, "No d2t: every token of the target can be drafted, id by id.")
    return MapCheck("needed", False, f"No d2t, although {spec.draft_vocab} of {spec.vocab} tokens can be drafted.")


def _map(d2t: torch.Tensor, t2d: torch.Tensor | None, vocab: int) -> Iterator[MapCheck]:
    size = d2t.numel()
    if not bool(d2t.any()):
        yield _zeros(size, vocab)
        if size < vocab:
            return
    else:
        yield MapCheck("filled in", True, f"{size} draft ids of {vocab} target ids.")
    target = torch.arange(size) + d2t  # [DV]
    outside = int(((target < 0) | (target >= vocab)).sum())
    yield _offsets(d2t, t2d, vocab, outside)
    if outside == 0 or not _absolute(d2t, vocab):
        yield MapCheck("range", outside == 0, _range(outside, size, vocab))
    repeated = size - int(target.unique().numel())
    told = f"d2t sends {repeated} of {size} draft ids to a target id that another draft id has already."
    yield MapCheck("distinct", repeated == 0, told if repeated else "Every draft id has a target id of its own.")
    if t2d is not None and not outside:
        yield _mask(target, t2d)
    yield _order(target)


def _zeros(size: int, vocab: int) -> MapCheck:
    if size == vocab:
        return MapCheck("filled in", True, "d2t is all zeros, which is right: the draft vocabulary is the target's.")
    told = (
        f"d2t is all zeros although {size} of {vocab} tokens can be drafted: the map was never filled in, "
        f"so drafts are ids 0 to {size - 1}."
    )
    return MapCheck("filled in", False, told)


def _offsets(d2t: torch.Tensor, t2d: torch.Tensor | None, vocab: int, outside: int) -> MapCheck:
    size = d2t.numel()
    if outside and _absolute(d2t, vocab):
        told = f"d2t holds absolute ids, not offsets: i + d2t[i] leaves the vocabulary {outside} times."
        return MapCheck("offsets", False, told)
    if t2d is not None and _absolute(d2t, vocab) and bool(t2d[d2t].all()) and not bool(t2d[d2t + torch.arange(size)].all()):
        return MapCheck("offsets", False, "d2t holds absolute ids, not offsets: they are the very ids that t2d keeps.")
    if t2d is None and size < vocab and torch.equal(d2t, torch.arange(size)):
        told = "d2t is 0, 1, 2, ...: as offsets that keeps every second id. It may have been filled with absolute ids."
        return MapCheck("offsets", False, told)
    return MapCheck("offsets", True, "The numbers are offsets, target id = i + d2t[i].")


def _absolute(d2t: torch.Tensor, vocab: int) -> bool:
    inside = bool(((d2t >= 0) & (d2t < vocab)).all())
    return inside and int(d2t.unique().numel()) == d2t.numel()


def _range(outside: int, size: int, vocab: int) -> str:
    if outside:
        return f"d2t sends {outside} of {size} draft ids outside the target's vocabulary of {vocab}."
    return f"All target ids are within 0 to {vocab - 1}."


def _mask(target: torch.Tensor, t2d: torch.Tensor) -> MapCheck:
    kept = int(t2d.sum())
    if kept == 0:  # SafeAILab's buffer when nothing was left out
        told = "t2d keeps no token at all: the mask was never filled in."
        whole = target.numel() == t2d.numel()
        return MapCheck("t2d", whole, "t2d is empty, as nothing is left out." if whole else told)
    mapped = torch.zeros_like(t2d)  # [V]
    mapped[target] = True
    differ = int((mapped != t2d).sum())
    told = f"d2t and t2d disagree about {differ} target ids; d2t decides which tokens can be drafted."
    return MapCheck("t2d", differ == 0, told if differ else f"t2d keeps the same {kept} target ids.")


def _order(target: torch.Tensor) -> MapCheck:
    """No fault either way; it tells the maker."""
    if bool((target[1:] > target[:-1]).all()):
        return MapCheck("order", True, "Ascending target ids, as SafeAILab, SpecForge and speculators write them.")
    return MapCheck("order", True, "Not ascending: by frequency, as ModelOpt and NeMo Automodel write it.")


def _head(head: Any, d2t: torch.Tensor) -> list[MapCheck]:
    """A head that was cut with the offsets as ids: neighbouring rows are equal wherever d2t repeats an offset.

    head: [DV, H], stored. Looks at up to 64 pairs of rows.
    """
    if head.shape[0] != d2t.numel() or not bool(d2t.any()):
        return []
    pairs = (d2t[1:] == d2t[:-1]).nonzero().flatten()[:PAIRS].tolist()
    if len(pairs) < 8:
        return []
    both = (rows(head, i, i + 2) for i in pairs)
    if all(bool((pair[0] == pair[1]).all()) for pair in both):
        told = "lm_head repeats a row wherever d2t repeats an offset: it was cut by d2t, not by i + d2t[i]."
        return [MapCheck("head rows", False, told)]
    return [MapCheck("head rows", True, f"Neighbouring rows of lm_head differ ({len(pairs)} pairs compared).")]
