"""What the replay and the sweep share: step 0 of a whole text, and the chains that look back at it.

Step 0 of all rows comes first, layer by layer, because later rows and steps look back at it; then rows are taken in
chunks through all their steps, so that nothing but keys, values and one state a row grows with the text.
Equal to a growing cache for each row: SpecForge and speculators train this way, `sequential` is the plain form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from eagle3dash.drafter.attention import look_back
from eagle3dash.drafter.block import Layer
from eagle3dash.drafter.memory import rows_that_fit
from eagle3dash.drafter.model import Model
from eagle3dash.errors import BadInput


@dataclass(frozen=True)
class Start:
    """Step 0 before any attention: the state g [S, H], and the hidden half of layer 0's projection for given rows."""

    state: Tensor
    hidden_half: Callable[[Tensor, slice], Tensor]


@dataclass(frozen=True)
class Prefix:
    """What step 0 leaves for all that follows: keys and values [nkv, S, .] of each layer, and the last layer's input."""

    cache: list[tuple[Tensor, Tensor]]
    entering: Tensor  # [S, H]
    hidden_half: Callable[[Tensor, slice], Tensor]  # of the last layer


class Text:
    """One sequence as the drafter reads it, whatever the features are: shared by all layer combinations.

    halves [S + K - 1, width]: the embedding's half of the first projection; index i belongs to token i + 1.
    """

    def __init__(self, model: Model, token_ids: Tensor, rows: int, steps: int):
        ids = _checked(model, token_ids, rows)
        self.model, self.steps, self.rows, self.ids = model, steps, rows, ids.to(model.device)
        self.rotary = model.rotary(rows + steps)
        read = torch.zeros(rows + steps - 1, dtype=torch.long)  # padded with token 0, whose rows are not valid
        read[: len(ids) - 1] = ids[1 : rows + steps]
        size = rows_that_fit(model.device, 16 * model.spec.hidden)
        first = model.layers[0]
        self.halves = torch.cat([first.embedding_half(model.embed(part)) for part in read.split(size)])
        # [R, .] of the widest intermediate result: the MLP's two halves, the projection, the state
        wide = 3 * model.spec.intermediate + 2 * self.halves.shape[1] + 8 * model.spec.hidden
        self.chunk = min(rows_that_fit(model.device, 4 * wide), 4096)
        self.all_rows = torch.arange(rows, device=model.device)

    def valid(self, rows: Tensor, step: int) -> Tensor:
        return rows + 1 + step < len(self.ids)

    def label(self, rows: Tensor, step: int) -> Tensor:
        """The true token that step `step` of `rows` predicts, -1 where the text has ended."""
        at = rows + 2 + step
        return torch.where(at < len(self.ids), self.ids[at.clamp(max=len(self.ids) - 1)], -1)

    def draftable(self, rows: Tensor, step: int) -> Tensor:
        """bool [R]: the token to predict exists and the draft vocabulary holds it."""
        label = self.label(rows, step)
        return (label >= 0) & self.model.in_vocab(label.clamp(min=0))

    def chosen(self, rows: Tensor | np.ndarray | None) -> Tensor:
        """Ascending row indices; None: every row."""
        return self.all_rows if rows is None else torch.as_tensor(rows, dtype=torch.long).to(self.model.device)

    def prefix(self, start: Start) -> Prefix:
        """Step 0 of every row, up to the last layer's keys and values."""
        cache, state, half = [], start.state, start.hidden_half
        for depth, layer in enumerate(self.model.layers):
            if depth:
                half = half_of(layer, state)
            cache.append(self._keys(layer, half))
            if layer is not self.model.layers[-1]:
                parts = self.all_rows.split(self.chunk)
                state = torch.cat([self.first_step(depth, Prefix(cache, state, half), rows) for rows in parts])
        return Prefix(cache, state, half)

    def _keys(self, layer: Layer, half: Callable[[Tensor, slice], Tensor]) -> tuple[Tensor, Tensor]:
        made = []
        for rows in self.all_rows.split(self.chunk):
            projected = half(rows, layer.key_part)
            if layer.first:
                projected = projected + self.halves[rows, layer.key_part]
            made.append(layer.attention.keys_values(projected, self.rotary, rows))
        return torch.cat([k for k, _ in made], 1), torch.cat([v for _, v in made], 1)

    def first_step(self, depth: int, prefix: Prefix, rows: Tensor) -> Tensor:
        """Step 0 of layer `depth` for `rows` -> its output [R, H]."""
        layer = self.model.layers[depth]
        projected = prefix.hidden_half(rows, layer.query_part)
        if layer.first:
            projected = projected + self.halves[rows, layer.query_part]
        q = layer.attention.queries(projected, self.rotary, rows)
        return layer.finish(prefix.entering[rows], look_back(q, rows, *prefix.cache[depth], []))


class Chains:
    """The chains of some rows, advanced together one step at a time."""

    def __init__(self, text: Text, prefix: Prefix, rows: Tensor):
        self.text, self.prefix, self.rows, self.steps_done = text, prefix, rows, 0
        self.own: list[list[tuple[Tensor, Tensor]]] = [[] for _ in text.model.layers]

    def advance(self) -> Tensor:
        """The next step's output [R, H] of the last layer, before any norm."""
        model = self.text.model
        if self.steps_done == 0:
            out = self.text.first_step(len(model.layers) - 1, self.prefix, self.rows)
        else:
            out = self.state
            for depth, layer in enumerate(model.layers):
                out = self._later(depth, layer, out)
        self.state, self.steps_done = model.feedback(out), self.steps_done + 1
        return out

    def _later(self, depth: int, layer: Layer, state: Tensor) -> Tensor:
        positions = self.rows + self.steps_done
        projected = layer.hidden_half(state)
        if layer.first:
            projected = projected + self.text.halves[positions]
        q = layer.attention.queries(projected[:, layer.query_part], self.text.rotary, positions)
        made = layer.attention.keys_values(projected[:, layer.key_part], self.text.rotary, positions)
        self.own[depth].append(made)
        return layer.finish(state, look_back(q, self.rows, *self.prefix.cache[depth], self.own[depth]))

    def keep(self, chosen: Tensor) -> None:
        """Drop the chains where `chosen` [R] is False."""
        self.rows, self.state = self.rows[chosen], self.state[chosen]
        self.own = [[(k[:, chosen], v[:, chosen]) for k, v in layer] for layer in self.own]


def half_of(layer: Layer, state: Tensor) -> Callable[[Tensor, slice], Tensor]:
    return lambda rows, part: layer.hidden_half(state[rows], part)


def _checked(model: Model, token_ids: Tensor, rows: int) -> Tensor:
    ids = torch.as_tensor(token_ids).cpu().long()
    if len(ids) not in (rows, rows + 1):
        raise BadInput(f"{len(ids)} token ids for {rows} rows of features; expected {rows} or {rows + 1}.")
    if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= model.spec.vocab):
        raise BadInput(
            f"Token ids run from {int(ids.min())} to {int(ids.max())}, the drafter knows 0..{model.spec.vocab - 1}. "
            "Capture and drafter belong to different targets."
        )
    return ids


@dataclass(frozen=True)
class Drafts:
    """right bool [K, S]: step j drafted token t+2+j. logprob float32 [S]: log-probability (nats, over the draft vocabulary)
    that step 0 gives token t+2; NaN where it was not asked, or cannot be drafted. It tells far smaller differences than
    right and wrong do, for training maximised it."""

    right: np.ndarray
    logprob: np.ndarray


def drafts_of(text: Text, prefix: Prefix, rows: Tensor | np.ndarray | None = None, leading: bool = False) -> Drafts:
    """False and NaN past the end and in rows that are not among `rows`.

    `leading`: True only while all earlier steps were right too. Accept length and survival need no more, and a chain is
    dropped at its first wrong step, or where the draft vocabulary lacks the token.
    """
    device = text.model.device
    right = torch.zeros(text.steps, text.rows, dtype=torch.bool, device=device)
    logprob = torch.full((text.rows,), torch.nan, device=device)
    chosen = text.chosen(rows)
    if leading:
        chosen = chosen[text.draftable(chosen, 0)]
    for part in chosen.split(text.chunk):
        chains = Chains(text, prefix, part)
        for step in range(text.steps):
            if not len(chains.rows):
                break
            label = text.label(chains.rows, step)
            drafted, known = text.model.draft(chains.advance(), label if step == 0 else None)
            if known is not None:
                logprob[chains.rows] = known
            hit = drafted == label
            right[step, chains.rows] = hit
            if leading:
                chains.keep(hit & text.draftable(chains.rows, step + 1))
    return Drafts(right.cpu().numpy(), logprob.cpu().numpy())
