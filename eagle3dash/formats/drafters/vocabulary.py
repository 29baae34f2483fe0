"""Checks of the draft vocabulary's map. Faults are reported, never repaired.

d2t [DV] is an offset: target id = i + d2t[i]. t2d [V] marks the kept target ids. The order of d2t differs between tools
(SafeAILab, SpecForge and speculators sort it; ModelOpt and NeMo Automodel keep frequency order), so it is never rebuilt.
"""

from __future__ import annotations

from typing import Any

import torch

from eagle3dash.formats.drafters.checkpoint import Checkpoint, rows


def check(checkpoint: Checkpoint, d2t: torch.Tensor | None, t2d: torch.Tensor | None, vocab: int) -> None:
    """Note what is wrong with d2t [DV] int64 and t2d [V] bool. `vocab` is V."""
    if d2t is None:
        return
    size = d2t.numel()
    if size < vocab and not bool(d2t.any()):
        checkpoint.problem(
            f"d2t is all zeros although {size} of {vocab} tokens can be drafted: the map was never filled in, "
            f"so drafts are ids 0 to {size - 1}."
        )
        return
    target = torch.arange(size) + d2t  # [DV]
    outside = int(((target < 0) | (target >= vocab)).sum())
    if outside and _absolute(d2t, vocab):
        checkpoint.problem(f"d2t holds absolute ids, not offsets: i + d2t[i] leaves the vocabulary {outside} times.")
    elif outside:
        checkpoint.problem(f"d2t sends {outside} of {size} draft ids outside the target's vocabulary of {vocab}.")
    repeated = size - int(target.unique().numel())
    if repeated:
        checkpoint.problem(f"d2t sends {repeated} of {size} draft ids to a target id that another draft id has already.")
    if t2d is not None and not outside:
        _check_mask(checkpoint, target, t2d)


def _absolute(d2t: torch.Tensor, vocab: int) -> bool:
    inside = bool(((d2t >= 0) & (d2t < vocab)).all())
    return inside and int(d2t.unique().numel()) == d2t.numel()


def _check_mask(checkpoint: Checkpoint, target: torch.Tensor, t2d: torch.Tensor) -> None:
    if not bool(t2d.any()):  # SafeAILab's buffer when nothing was left out
        if target.numel() < t2d.numel():
            checkpoint.problem("t2d keeps no token at all: the mask was never filled in.")
        return
    mapped = torch.zeros_like(t2d)  # [V]
    mapped[target] = True
    differ = int((mapped != t2d).sum())
    if differ:
        checkpoint.problem(f"d2t and t2d disagree about {differ} target ids; d2t decides which tokens can be drafted.")


def check_head(checkpoint: Checkpoint, head: Any, d2t: torch.Tensor) -> None:
    """Note a head that was cut with the offsets as ids: neighbouring rows are equal wherever d2t repeats an offset.

    head: [DV, H], stored. Looks at up to 64 pairs of rows.
    """
    if head.shape[0] != d2t.numel() or not bool(d2t.any()):
        return
    pairs = (d2t[1:] == d2t[:-1]).nonzero().flatten()[:64].tolist()
    if len(pairs) < 8:
        return
    both = (rows(head, i, i + 2) for i in pairs)
    if all(bool((pair[0] == pair[1]).all()) for pair in both):
        checkpoint.problem("lm_head repeats a row wherever d2t repeats an offset: it was cut by d2t, not by i + d2t[i].")
