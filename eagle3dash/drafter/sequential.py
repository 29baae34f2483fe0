"""One chain as a server runs it: a prefix, then token after token with a growing cache. The plain form.

Slow and simple on purpose: it is what `replay` must equal, and it can feed back the drafter's own tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from eagle3dash.drafter.block import Layer
from eagle3dash.drafter.model import Model
from eagle3dash.drafter.norm import rms_norm
from eagle3dash.drafter.rope import Rotary


@dataclass(frozen=True)
class Drafted:
    """K steps after one prefix: logits [K, DV], hidden [K, H] as fed back, tokens [K] (target ids)."""

    logits: Tensor
    hidden: Tensor
    tokens: Tensor


@torch.no_grad()
def chain_after(
    model: Model, features: Sequence[Tensor], token_ids: Tensor, prefix: int, steps: int, forced: bool = False
) -> Drafted:
    """Draft from features [S, Ht] of positions 0..prefix-1 and tokens 1..prefix.

    forced: later steps read the text's tokens instead of the drafted ones.
    """
    rotary = model.rotary(prefix + steps)
    state = model.fuse([x[:prefix] for x in features])  # [prefix, H]
    read, positions = token_ids[1 : prefix + 1], torch.arange(prefix, device=model.device)
    caches: list[list[tuple[Tensor, Tensor]]] = [[] for _ in model.layers]
    logits, hidden, tokens = [], [], []
    for step in range(steps):
        embedded = model.embed(read)
        for layer, cache in zip(model.layers, caches, strict=True):
            state = _layer(layer, cache, embedded, state, rotary, positions)
        logits.append(model.logits(state)[-1])
        state = model.feedback(state)[-1:]  # [1, H]: only the newest row goes on
        hidden.append(state[0])
        tokens.append(model.target_ids[logits[-1].argmax()])
        following = prefix + 1 + step
        read = token_ids[following : following + 1] if forced else tokens[-1][None]
        positions = positions[-1:] + 1
    return Drafted(torch.stack(logits), torch.stack(hidden), torch.stack(tokens))


def _layer(
    layer: Layer, cache: list[tuple[Tensor, Tensor]], embedded: Tensor, state: Tensor, rotary: Rotary, at: Tensor
) -> Tensor:
    """New rows [R, H] at positions `at`, seeing everything in the cache and, causally, each other."""
    normed = layer.normed(state)
    if layer.first:
        normed = torch.cat([rms_norm(embedded, layer.input_norm, layer.eps), normed], -1)  # [R, 2H]
    projected = F.linear(normed, layer.attention.weight, layer.attention.bias)
    q = layer.attention.queries(projected[:, layer.query_part], rotary, at)
    cache.append(layer.attention.keys_values(projected[:, layer.key_part], rotary, at))
    group = layer.attention.heads // layer.attention.kv_heads
    keys, values = (torch.cat(part, 1).repeat_interleave(group, 0) for part in zip(*cache, strict=True))
    scores = q @ keys.transpose(1, 2)  # [nh, R, all rows so far]
    unseen = torch.arange(keys.shape[1], device=at.device) > at[:, None]
    seen = scores.masked_fill(unseen, -torch.inf).softmax(-1) @ values
    return layer.finish(state, seen.transpose(0, 1).flatten(1))
