"""Faults of the features that a server feeds: each rewrites the serving capture of the healthy run.

A fault is what public cases did (wrong states, another order, rows moved, a norm, no residual, another scale, shards in the
wrong order, quantised, torn or stale rows, other tokens), in several strengths and places. `names`: the finding that must
be told first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import torch

from tests.lab.healthy import Case, Change, Healthy

Rewrite = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Fault:
    """`change` breaks a case; `names`: ids of which one must be told first; `all`: ids that must be told somewhere.
    No names: the case is harmless, and nothing of severity error may be told."""

    title: str
    names: tuple[str, ...]
    change: Change
    all: tuple[str, ...] = ()
    whole: bool = False  # told by all of the demo's texts only
    felt: bool = True  # the loss must be told as an error (False: other texts, whose loss proves nothing)


def rewritten(rewrite: Rewrite, slots: Sequence[int] = (0, 1, 2)) -> Change:
    """Every text's serving states in these slots through `rewrite`."""

    def change(_: Healthy, case: Case) -> None:
        for text in case.serving:
            text.states = [rewrite(s) if slot in slots else s for slot, s in enumerate(text.states)]

    return change


def like(values: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
    """In the dtype of a state."""
    return values.to(state.dtype)


def rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# ---- states --------------------------------------------------------------------------------------------------------


def states(*wanted: int) -> Change:
    """The server feeds these HF[k]."""

    def change(lab: Healthy, case: Case) -> None:
        for text, pool in zip(case.serving, lab.pool["serving"], strict=False):
            text.states = [pool[k] for k in wanted]

    return change


def claimed(*wanted: int) -> Change:
    """The same, because the config says so."""

    def change(lab: Healthy, case: Case) -> None:
        states(*wanted)(lab, case)
        case.config["eagle_aux_hidden_state_layer_ids"] = list(wanted)

    return change


def unseen(lab: Healthy, case: Case) -> None:
    """The server feeds HF[27], which the training capture does not hold."""
    states(2, 15, 27)(lab, case)
    for text in case.training:
        text.states = text.states[:3]
    case.labels["training"] = [0, 2, 15]


def beside(slots: Sequence[int]) -> Change:
    """The state after one more layer: HF[k] and what a layer adds to it, made of this and the tokens before. Sizes as
    measured on the demo's target: 0.39 of HF[2], 0.29 of HF[15], half of it along the stream; HF[1] is 15 times HF[0]."""

    def change(_: Healthy, case: Case) -> None:
        width = case.serving[0].states[0].shape[1]
        for slot, size in zip(slots, ((15.0, 0.39, 0.29)[slot] for slot in slots), strict=True):
            noise = rng(slot + 5)
            up, down = (torch.randn(width, width, generator=noise) / width**0.5 for _ in range(2))
            for text in case.serving:
                state = text.states[slot].float()
                x = state / state.pow(2).mean(-1, keepdim=True).sqrt()
                before = x.cumsum(0) / torch.arange(1, len(x) + 1)[:, None]
                added = torch.tanh((x + before) @ up) @ down + 0.3 * (slot > 0) * x  # [S, Ht]
                added *= size * state.norm(dim=-1, keepdim=True) / added.norm(dim=-1, keepdim=True)
                text.states[slot] = like(state + added, text.states[slot])

    return change


def wiring() -> Iterator[Fault]:
    wrong, order = ("wrong-aux-states",), ("aux-order",)
    yield Fault("states 2,15,27 as the config says", wrong, claimed(2, 15, 27))
    for triple in ((2, 15, 27), (0, 2, 27), (0, 15, 27), (0, 2, 2), (15, 15, 15), (27, 2, 0), (15, 2, 27)):
        yield Fault(f"states {triple}", wrong, states(*triple))
    yield Fault("states 2,15,27, HF[27] not in training", wrong, unseen)
    for slots in ((1, 2), (2,), (0, 1, 2)):
        yield Fault(f"one layer further in slots {slots}", wrong, beside(slots))
    for triple in list(permutations((0, 2, 15)))[1:]:
        yield Fault(f"order {triple}", order, states(*triple))


# ---- moved and changed ---------------------------------------------------------------------------------------------


def moved(lag: int) -> Rewrite:
    """Row t holds what row t - lag should."""
    return lambda s: torch.roll(s, lag, dims=0)


def post_norm(lab: Healthy, state: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    """RMSNorm with the target's weights."""
    x = state.float()
    x = x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
    return like(x if weight is None else x * weight, state)


def normed(slots: Sequence[int], weight: str = "final") -> Change:
    """The states of these slots after a norm."""

    def change(lab: Healthy, case: Case) -> None:
        made = {"final": lab.norm, "none": None, "other": torch.rand(len(lab.norm), generator=rng(1)) * 0.8 + 0.1}[weight]
        rewritten(lambda s: post_norm(lab, s, made), slots)(lab, case)

    return change


def without_residual(slot: int, state: int, entered: int) -> Change:
    """HF[state] - HF[entered] in this slot: what the layers between have added."""

    def change(lab: Healthy, case: Case) -> None:
        for text, pool in zip(case.serving, lab.pool["serving"], strict=False):
            text.states[slot] = like(pool[state].float() - pool[entered].float(), text.states[slot])

    return change


def blocks(count: int, order: Sequence[int] | None = None) -> Rewrite:
    """Equal blocks of the hidden dimension in another order; reversed unless said."""
    wanted = list(order) if order is not None else list(range(count))[::-1]
    return lambda s: torch.cat([s.chunk(count, dim=-1)[i] for i in wanted], dim=-1)


def scaled(factor: float) -> Rewrite:
    return lambda s: like(s.float() * factor, s)


def changed() -> Iterator[Fault]:
    shift, norm, residual = ("shifted-features",), ("normed-features",), ("missing-residual",)
    for lag in (-2, -1, 1, 2):
        yield Fault(f"shifted by {lag:+d}", shift, rewritten(moved(lag)))
    yield Fault("one slot shifted by +1", shift, rewritten(moved(1), (2,)))
    yield Fault("post-norm in slot 2", norm, normed((2,)))
    yield Fault("post-norm in all slots", norm, normed((0, 1, 2)))
    yield Fault("norm without weights in slots 1, 2", norm, normed((1, 2), "none"))
    yield Fault("another norm in slot 1", norm, normed((1,), "other"))
    yield Fault("HF[15] without HF[2]", residual, without_residual(2, 15, 2))
    yield Fault("HF[2] without HF[0]", residual, without_residual(1, 2, 0))
    for name, rewrite, slots in (
        ("2 halves", blocks(2), (0, 1, 2)),
        ("4 shards reversed", blocks(4), (0, 1, 2)),
        ("8 shards, two swapped", blocks(8, (0, 1, 5, 3, 4, 2, 6, 7)), (0, 1, 2)),
        ("3 shards rotated", blocks(3, (1, 2, 0)), (0, 1, 2)),
        ("4 shards rotated, slot 2", blocks(4, (1, 2, 3, 0)), (2,)),
        ("6 shards, interleaved", blocks(6, (0, 2, 4, 1, 3, 5)), (1, 2)),
    ):
        yield Fault(f"blocks: {name}", ("permuted-features",), rewritten(rewrite, slots))
    for name, rewrite, slots in (
        ("rolled by 64", lambda s: s.roll(64, -1), (0, 1, 2)),
        ("rolled by 1, slot 1", lambda s: s.roll(1, -1), (1,)),
        ("reversed", lambda s: s.flip(-1), (0, 1, 2)),
        ("even before odd, slot 2", lambda s: torch.cat([s[:, ::2], s[:, 1::2]], -1), (2,)),
    ):
        yield Fault(f"channels: {name}", ("permuted-features",), rewritten(rewrite, slots))
    for name, factor, slots in (
        ("all by 2", 2.0, (0, 1, 2)),
        ("all by 0.25", 0.25, (0, 1, 2)),
        ("slot 0 by sqrt(H)", 24.0, (0,)),
        ("slot 2 by 0.5", 0.5, (2,)),
        ("slot 1 by 3", 3.0, (1,)),
        ("slots 0, 1 by -1", -1.0, (0, 1)),
    ):
        yield Fault(f"scaled: {name}", ("scaled-features",), rewritten(scaled(factor), slots))
