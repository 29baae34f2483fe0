"""Faults of the texts: other token ids at the server than in training, and loss masks that are off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from tests.lab.faults import Fault, like
from tests.lab.healthy import Case, Change, Healthy


def edited(cut: slice, put: Sequence[int] = ()) -> Change:
    """The serving texts with some tokens taken out and others put in their place; states of those put in are borrowed."""

    def change(_: Healthy, case: Case) -> None:
        for text in case.serving:
            rows = torch.arange(len(text.ids))
            start, stop, _step = cut.indices(len(rows))
            lent = torch.arange(len(put)) % max(1, len(rows)) + 5
            order = torch.cat([rows[:start], lent, rows[stop:]])
            text.ids = torch.cat([text.ids[:start], torch.tensor(put, dtype=torch.int64), text.ids[stop:]])
            text.states = [s[order] for s in text.states]

    return change


def others(_: Healthy, case: Case) -> None:
    """The serving capture is of other texts: no token in common at any place."""
    for text in case.serving:
        text.ids = text.ids.roll(50)
        text.states = [s.roll(50, 0) for s in text.states]


def tokens() -> Iterator[Fault]:
    for title, change in (
        ("no first token", edited(slice(0, 1))),
        ("one more token in front", edited(slice(0, 0), (2,))),
        ("another system prompt", edited(slice(3, 20), (504, 905, 553, 253, 1695))),
        ("no system prompt", edited(slice(1, 22))),
        ("thinking text in the answer's head", edited(slice(36, 36), (44, 18, 99, 250, 44, 18))),
        ("texts turned around", others),
    ):
        yield Fault(title, ("tokens-differ",), change, felt=False)


def other_ids(lab: Healthy, case: Case) -> None:
    """Served text of which every token has another id."""
    for text in case.serving:
        text.ids = (text.ids * 7 + 13) % len(lab.embedding)


def moved_mask(by: int) -> Change:
    """The training capture's loss masks so many tokens late."""

    def change(_: Healthy, case: Case) -> None:
        for text in case.training:
            text.mask = text.mask.roll(by)

    return change


def inverted(_: Healthy, case: Case) -> None:
    """The masks cover the prompts and leave the answers out."""
    for text in case.training:
        text.mask = 1 - text.mask


def other_kind(_: Healthy, case: Case) -> None:
    """Training texts in which other tokens are common: every answer of a third of its own tokens, behind its own head."""
    for text in case.training:
        answer = text.mask.nonzero()[:, 0]
        text.ids = text.ids.clone()
        text.ids[answer] = text.ids[answer] % 40 + 9000


def holding(*kept: int) -> Change:
    """The training capture holds these states, and not all of those that the drafter was trained on."""

    def change(lab: Healthy, case: Case) -> None:
        for text, pool in zip(case.training, lab.pool["training"], strict=True):
            text.states = [pool[k] for k in kept]
        case.labels["training"] = list(kept)

    return change


def normed(lab: Healthy, case: Case) -> None:
    """The training capture holds every state after the target's final norm; the server feeds the stream itself."""
    for text in case.training:
        text.states = [post_norm(lab, s) for s in text.states]


def post_norm(lab: Healthy, state: torch.Tensor) -> torch.Tensor:
    x = state.float()
    return like(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * lab.norm.float(), state)


def moved_states(by: int) -> Change:
    """The training capture's states so many rows on."""

    def change(_: Healthy, case: Case) -> None:
        for text in case.training:
            text.states = [s.roll(-by, 0) for s in text.states]

    return change


def training() -> Iterator[Fault]:
    """What training was given: told where eight answers or more are there."""
    both = ("tokens-differ", "off-distribution")
    yield Fault("ids of another tokenizer", both, other_ids, all=both, felt=False)
    for kept in ((2, 15, 27), (0, 2, 27), (0, 15, 27)):
        yield Fault(f"training capture of {kept}", ("drafter-weak",), holding(*kept), felt=False)
    yield Fault("training capture after the final norm", ("normed-features",), normed, felt=False)
    yield Fault("training capture one token early", ("shifted-features",), moved_states(1), felt=False)
    yield Fault("loss mask inverted", ("loss-mask-shifted",), inverted, felt=False)
    yield Fault("training texts of another kind", ("off-distribution",), other_kind, felt=False)
    for by in (-1, 1):
        yield Fault(f"loss mask moved by {by:+d}", ("loss-mask-shifted",), moved_mask(by), felt=False)
