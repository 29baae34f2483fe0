"""Checks of the draft vocabulary's map. Facts are reported, never repaired.

d2t [DV] is an offset: target id = i + d2t[i]. t2d [V] marks the kept target ids. The order of d2t differs between tools
(SafeAILab, SpecForge, speculators sort it; ModelOpt and NeMo Automodel keep frequency order), so it is never rebuilt.
"""

from __future__ import annotations

import torch

from eagle3dash.formats.drafters.checkpoint import Checkpoint


def check(checkpoint: Checkpoint, d2t: torch.Tensor | None, t2d: torch.Tensor | None, vocab: int) -> None:
    """Note what is wrong with d2t [DV] int64 and t2d [V] bool. `vocab` is V."""
    if d2t is None:
        return
    size = d2t.numel()
    target = torch.arange(size) + d2t  # [DV]
    if size < vocab and not bool(d2t.any()):
        checkpoint.problem(f"d2t is all zeros although {size} of {vocab} ids are kept: the map was never filled in.")
        return
    outside = int(((target < 0) | (target >= vocab)).sum())
    distinct = int(target.unique().numel())
    if outside and _absolute(d2t, vocab):
        checkpoint.problem(f"d2t looks like absolute target ids: {outside} of {size} entries leave the vocabulary when read as offsets.")
    elif outside:
        checkpoint.problem(f"d2t sends {outside} of {size} draft ids outside the target's vocabulary of {vocab}.")
    if distinct < size:
        checkpoint.problem(f"d2t sends {size - distinct} of {size} draft ids to a target id that another one has too.")
    if t2d is not None and not outside:
        _check_mask(checkpoint, target, t2d)


def _absolute(d2t: torch.Tensor, vocab: int) -> bool:
    inside = bool(((d2t >= 0) & (d2t < vocab)).all())
    return inside and int(d2t.unique().numel()) == d2t.numel()


def _check_mask(checkpoint: Checkpoint, target: torch.Tensor, t2d: torch.Tensor) -> None:
    mapped = torch.zeros_like(t2d)  # [V]
    mapped[target] = True
    if not bool(t2d.any()):
        if target.numel() < t2d.numel():
            checkpoint.problem("t2d keeps no token at all: the mask was never filled in.")
        return
    differ = int((mapped != t2d).sum())
    if differ:
        checkpoint.problem(f"d2t and t2d disagree about {differ} target ids; d2t decides which tokens can be drafted.")


def head_repeats(checkpoint: Checkpoint, head: torch.Tensor, d2t: torch.Tensor) -> None:
    """Note a head pruned by the offsets instead of the ids (TorchSpec): equal rows where neighbouring offsets repeat."""
    repeats = (d2t[1:] == d2t[:-1]).nonzero().flatten()[:64]  # rows i, i+1 with one offset
    if repeats.numel() < 8:
        return
    equal = int((head[repeats] == head[repeats + 1]).all(dim=1).sum())
    if equal == repeats.numel():
        checkpoint.problem("lm_head repeats rows where d2t repeats its offset: the head was cut with d2t as ids, not i + d2t[i].")
