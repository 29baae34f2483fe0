"""Many layer combinations over one text, without computing twice what they share.

fc is linear in each aux state and RMSNorm is one scalar a row times a linear map, so for layer 0 at step 0
    g = r * sum_s fc_s(state_s) + b                      r: `input_norm`'s scalar, 1 without it
    hidden half of q, k, v = scale(g) * sum_s W fc_s(state_s)  (and W b)
The products with one state in one slot are computed once and summed per combination. The embedding's half, RoPE and
labels are the same for all combinations (`chains.Text`); keys and values of step 0 serve all steps. What remains is
each combination's own: attention, MLP and head.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from eagle3dash.drafter.chains import Drafts, Start, Text, drafts_of
from eagle3dash.drafter.memory import free_bytes
from eagle3dash.drafter.model import Model
from eagle3dash.drafter.norm import inverse_rms, rms_norm, widened
from eagle3dash.drafter.replay import check_features, start


class Sweep:
    """states: N x [S, Ht], of which every combination picks A by index, in fc's order; token_ids [S] or [S + 1]."""

    @torch.no_grad()
    def __init__(self, model: Model, states: Sequence[Tensor], token_ids: Tensor, steps: int):
        self.model, self.states = model, list(states)
        self.text = Text(model, token_ids, check_features(model, states, len(self.states)), steps)
        self.products: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
        self.squares: dict[int, Tensor] = {}
        layer = model.layers[0]
        weight = layer.hidden_norm * layer.input_norm if layer.double else layer.hidden_norm
        self.folded = layer.hidden_weight * weight  # [width, H]: the norm's weight is part of the linear map
        self.bias = None if model.fc_bias is None else F.linear(model.fc_bias, self.folded)
        pairs = model.spec.num_aux * len(self.states)
        row = (self.folded.shape[0] + model.spec.hidden) * self.folded.element_size()
        self.shared = pairs * self.text.rows * row <= free_bytes(model.device) // 4

    @torch.no_grad()
    def drafts(self, combination: Sequence[int], rows: Tensor | np.ndarray | None = None, leading: bool = False) -> Drafts:
        """As `replay.drafts` with the states of `combination`. `rows`, `leading`: see `chains.drafts_of`."""
        check_features(self.model, [self.states[i] for i in combination], self.model.spec.num_aux)
        return drafts_of(self.text, self.text.prefix(self._start(tuple(combination))), rows, leading)

    def _start(self, combination: tuple[int, ...]) -> Start:
        if not self.shared:  # the products would not fit: only the text's share is saved
            return start(self.text, [self.states[i] for i in combination])
        products = [self._product(slot, index) for slot, index in enumerate(combination)]
        state = sum(product for product, _ in products)  # [S, H]
        outer = self._input_scale(combination)
        state = state if outer is None else state * outer
        state = state if self.model.fc_bias is None else state + self.model.fc_bias
        scale = self._hidden_scale(state)

        def hidden_half(rows: Tensor, part: slice) -> Tensor:
            half = sum(projected[rows, part] for _, projected in products)
            half = half if outer is None else half * outer[rows]
            return (half if self.bias is None else half + self.bias[part]) * scale[rows]

        return Start(state, hidden_half)

    def _product(self, slot: int, index: int) -> tuple[Tensor, Tensor]:
        """State `index` in `slot`: its share of g [S, H], and of the hidden half's outputs [S, width]."""
        if (slot, index) not in self.products:
            model, width = self.model, self.model.spec.target_hidden
            cut = slice(slot * width, (slot + 1) * width)
            weight = model.fc[:, cut] if model.input_norm is None else model.fc[:, cut] * model.input_norm[cut]
            made = []
            for part in self.states[index].split(self.text.chunk):
                part = part.to(model.device, model.dtype)
                normed = rms_norm(part, model.fc_norms[slot], model.spec.rms_eps) if model.fc_norms else part
                made.append(F.linear(normed, weight))
            state = torch.cat(made)
            self.products[slot, index] = state, F.linear(state, self.folded)
        return self.products[slot, index]

    def _input_scale(self, combination: tuple[int, ...]) -> Tensor | None:
        """The scalar of `input_norm` over the A joined states, a row [S, 1]."""
        if self.model.input_norm is None:
            return None
        for index in set(combination) - set(self.squares):
            state = widened(self.states[index].to(self.model.device, self.model.dtype))
            self.squares[index] = state.square().mean(-1, keepdim=True)
        mean = sum(self.squares[index] for index in combination) / len(combination)
        return torch.rsqrt(mean + self.model.spec.rms_eps).to(self.model.dtype)

    def _hidden_scale(self, state: Tensor) -> Tensor:
        """The scalar by which layer 0 normalises the state g, a row [S, 1]."""
        layer, scale = self.model.layers[0], inverse_rms(state, self.model.spec.rms_eps)
        if layer.double:
            inner = widened(state) * scale * layer.input_norm
            scale = scale * inverse_rms(inner, self.model.spec.rms_eps)
        return scale.to(self.model.dtype)
