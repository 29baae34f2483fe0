"""The K-step chain of every row at once: what a server would draft after each position of a text.

Row t pairs the features of position t with token t+1 and predicts token t+2; step j of it reads token t+1+j (the true
one: a chain ends at its first wrong token, so that equals serving) at position t+j and predicts token t+2+j.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from eagle3dash.drafter.chains import Chains, Drafts, Start, Text, drafts_of, half_of
from eagle3dash.drafter.memory import rows_that_fit
from eagle3dash.drafter.model import Model
from eagle3dash.errors import BadInput


@dataclass(frozen=True)
class Step:
    """Step `step` of the chains of `rows` [R]: hidden [R, H] is the state fed back, tokens [R] are target ids.

    valid [R]: the text still has the token that this step reads; elsewhere the numbers mean nothing.
    """

    step: int
    rows: Tensor
    logits: Tensor  # [R, DV] float32
    hidden: Tensor
    tokens: Tensor
    valid: Tensor


def check_features(model: Model, features: Sequence[Tensor], count: int) -> int:
    """Rows S of `features`, after seeing that there are `count` of them, alike, and Ht wide. Raises BadInput."""
    if len(features) != count:
        raise BadInput(f"The drafter reads {count} aux states, {len(features)} were given.")
    shapes = {tuple(x.shape) for x in features}
    rows, width = features[0].shape
    if len(shapes) > 1 or width != model.spec.target_hidden or not rows:
        raise BadInput(f"Features are {sorted(shapes)}; expected all alike and {model.spec.target_hidden} wide.")
    return rows


def start(text: Text, features: Sequence[Tensor]) -> Start:
    """The aux states of one text, fused."""
    parts = [slice(at, at + text.chunk) for at in range(0, text.rows, text.chunk)]
    state = torch.cat([text.model.fuse([x[part] for x in features]) for part in parts])
    return Start(state, half_of(text.model.layers[0], state))


@torch.no_grad()
def chain(
    model: Model, features: Sequence[Tensor], token_ids: Tensor, steps: int, rows: Tensor | np.ndarray | None = None
) -> Iterator[Step]:
    """features: A x [S, Ht]; token_ids [S] or [S + 1]. Chunk after chunk of rows, each through its K steps.

    `rows`: ascending rows to draft for (default all); keys and values are always those of the whole text.
    """
    text = Text(model, token_ids, check_features(model, features, model.spec.num_aux), steps)
    prefix = text.prefix(start(text, features))
    size = min(text.chunk, rows_that_fit(model.device, 8 * model.spec.draft_vocab))
    for part in text.chosen(rows).split(size):
        chains = Chains(text, prefix, part)
        for step in range(steps if len(part) else 0):
            out = chains.advance()
            logits = model.logits(out).float() if model.dtype == torch.bfloat16 else model.logits(out)
            tokens = model.target_ids[logits.argmax(-1)]
            yield Step(step, part, logits, chains.state, tokens, text.valid(part, step))


@torch.no_grad()
def drafts(
    model: Model,
    features: Sequence[Tensor],
    token_ids: Tensor,
    steps: int,
    rows: Tensor | np.ndarray | None = None,
    leading: bool = False,
) -> Drafts:
    """What every row drafts (`rows`, `leading`: see `chains.drafts_of`)."""
    text = Text(model, token_ids, check_features(model, features, model.spec.num_aux), steps)
    return drafts_of(text, text.prefix(start(text, features)), rows, leading)
