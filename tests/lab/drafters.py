"""Faults of the drafter's file: a switch flipped in its config, or weights that are not those that were trained.

Features are healthy. The log is that of a server which honours the file as it is, or there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from tests.lab.faults import Fault, rng
from tests.lab.healthy import Case, Change, Healthy

ROPE = "rope_parameters"


def config(**keys: object) -> Change:
    """Top keys of config.json."""
    return lambda _, case: case.config.update(keys)


def rope(**keys: object) -> Change:
    """RoPE settings of the layer."""

    def change(_: Healthy, case: Case) -> None:
        layer = case.config["transformer_layer_config"]
        layer[ROPE] = layer[ROPE] | keys

    return change


def weight(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    """One tensor of the file."""

    def changed(_: Healthy, case: Case) -> None:
        found = next(key for key in case.weights if key.endswith(name))
        case.weights[found] = change(case.weights[found])

    return changed


def embedding(change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    """An embedding of the file's own, which engines prefer to the target's."""

    def changed(lab: Healthy, case: Case) -> None:
        case.weights["embed_tokens.weight"] = change(lab.embedding).to(torch.bfloat16)

    return changed


def absolute(offsets: torch.Tensor) -> torch.Tensor:
    return torch.arange(len(offsets)) + offsets


def shuffled(rows: torch.Tensor) -> torch.Tensor:
    return rows[torch.randperm(len(rows), generator=rng(7))]


def random(like: torch.Tensor) -> torch.Tensor:
    return (torch.randn(like.shape, generator=rng(8)) * 0.02).to(like.dtype)


def narrow(size: int) -> Change:
    """A draft vocabulary of its first ids only, and everything else true to it."""

    def changed(_: Healthy, case: Case) -> None:
        names = {part: next(key for key in case.weights if key.endswith(part)) for part in ("d2t", "lm_head.weight", "t2d")}
        for part in ("d2t", "lm_head.weight"):
            case.weights[names[part]] = case.weights[names[part]][:size].clone()
        held = torch.zeros_like(case.weights[names["t2d"]])
        held[torch.arange(size) + case.weights[names["d2t"]]] = True
        case.weights[names["t2d"]] = held
        case.config["draft_vocab_size"] = size

    return changed


def drafters() -> Iterator[Fault]:
    """Every fault of this module."""
    residual, feedback, vocab = ("wrong-residual-norm",), ("wrong-feedback-norm",), ("wrong-vocab-map",)
    table, head = ("wrong-embedding",), ("wrong-lm-head",)
    yield Fault("config: norm_before_residual", residual, config(norm_before_residual=True))
    yield Fault("config: norm_output", feedback, config(norm_output=True))
    yield Fault("config: RoPE base 10000", ("wrong-rope",), rope(rope_theta=10000.0))
    yield Fault("config: RoPE linear by 8", ("wrong-rope",), rope(rope_type="linear", factor=8.0))
    yield Fault("d2t absolute", vocab, weight("d2t", absolute))
    yield Fault("d2t all zero", vocab, weight("d2t", torch.zeros_like))
    yield Fault("d2t in another order", vocab, weight("d2t", lambda d: shuffled(absolute(d)) - torch.arange(len(d))))
    yield Fault("lm_head in another order", (*head, *vocab), weight("lm_head.weight", shuffled))
    yield Fault("lm_head random", head, weight("lm_head.weight", random))
    yield Fault("embedding random", table, embedding(random))
    yield Fault("embedding moved by one row", table, embedding(lambda e: e.roll(1, 0)))
    yield Fault("embedding in another order", table, embedding(shuffled))
    yield Fault("draft vocabulary of 256", ("low-vocab-coverage",), narrow(256))
