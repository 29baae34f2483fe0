"""Everything the drafter computed for one text, for comparing with an engine's own numbers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eagle3dash.drafter.model import Model
from eagle3dash.drafter.replay import chain


def trace(model: Model, features: Sequence[Tensor], token_ids: Tensor, steps: int) -> dict[str, Tensor]:
    """features: A x [S, Ht]; token_ids [S] or [S + 1].

    logits [K, S, DV] float32; hidden [K, S, H], the state fed back; tokens [K, S] int64, target ids; valid [K, S] bool:
    the text has the token that this step reads. Row t, step j as in `replay`. On the CPU.
    """
    rows, spec = features[0].shape[0], model.spec
    wide = torch.promote_types(model.dtype, torch.float32)
    made = {
        "logits": torch.empty(steps, rows, spec.draft_vocab, dtype=wide),
        "hidden": torch.empty(steps, rows, spec.hidden, dtype=wide),
        "tokens": torch.empty(steps, rows, dtype=torch.long),
        "valid": torch.empty(steps, rows, dtype=torch.bool),
    }
    for step in chain(model, features, token_ids, steps):
        for name, whole in made.items():
            whole[step.step, step.rows.cpu()] = getattr(step, name).to("cpu", whole.dtype)
    return made
