"""Changes that are no fault: other files, dtypes, orders, lengths, other traffic, a weak but rightly wired drafter.

Nothing of severity error may be told of any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from tests.lab import logs
from tests.lab.faults import Fault, rewritten
from tests.lab.healthy import Case, Change, Healthy, Made
from tests.lab.spoiled import noisy


def each(role: str, change: Callable[[Made], None]) -> Change:
    """`change` on every text of a capture."""

    def changed(_: Healthy, case: Case) -> None:
        for text in getattr(case, role):
            change(text)

    return changed


def cast(role: str, dtype: torch.dtype) -> Change:
    """States in another dtype."""

    def change(text: Made) -> None:
        text.states = [s.to(dtype) for s in text.states]

    return each(role, change)


def cut(role: str, start: int = 0, stop: int | None = None) -> Change:
    """Only part of every text."""

    def change(text: Made) -> None:
        text.ids, text.states = text.ids[start:stop], [s[start:stop] for s in text.states]
        text.mask = None if text.mask is None else text.mask[start:stop]

    return each(role, change)


def chosen(role: str, which: slice) -> Change:
    """Only some texts, or in another order."""
    return lambda _, case: setattr(case, role, getattr(case, role)[which])


def logged(log: str | None) -> Change:
    return lambda _, case: setattr(case, "log", log)


def lacking(*kinds: str) -> Change:
    return lambda _, case: setattr(case, "without", kinds)


def unmasked(text: Made) -> None:
    text.mask = None


def masked(value: int) -> Callable[[Made], None]:
    def change(text: Made) -> None:
        text.mask = torch.full_like(text.mask, value)

    return change


def reordered(order: tuple[int, ...]) -> Change:
    """The training capture's slots in another order, and named so."""

    def change(_: Healthy, case: Case) -> None:
        for text in case.training:
            text.states = [text.states[i] for i in order]
        case.labels["training"] = [case.labels["training"][i] for i in order]
        case.aux["training"] = tuple(order.index(i) for i in range(3))

    return change


def unnamed(_: Healthy, case: Case) -> None:
    """A training capture that does not say which states it holds."""
    case.labels["training"] = [None] * 4


def fourth(lab: Healthy, case: Case) -> None:
    """A serving capture with the state of the last layer besides."""
    for text, pool in zip(case.serving, lab.pool["serving"], strict=True):
        text.states = [*text.states, pool[27]]
    case.labels["serving"] = [None] * 4


def part_ways(_: Healthy, case: Case) -> None:
    """Answers that go on differently after some tokens, as two implementations do."""
    for text, other in zip(case.serving, reversed(list(case.serving)), strict=True):
        at = len(text.ids) * 2 // 3
        text.ids = torch.cat([text.ids[:at], other.ids[-40:]])
        text.states = [torch.cat([s[:at], o[-40:]]) for s, o in zip(text.states, other.states, strict=True)]


def sinks(_: Healthy, case: Case) -> None:
    """The first row, an outlier hundreds of times as large, by another kernel."""
    for text in case.serving:
        text.states = [torch.cat([s[:1] * 0.8, s[1:]]) for s in text.states]


def weights(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Change:
    return lambda _, case: setattr(case, "weights", change(dict(case.weights)))


def weaker(share: float, *parts: str) -> Change:
    """A drafter that learned less: its weights with noise."""

    def change(found: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {k: noisy(share, 1)(v) if v.dim() == 2 and any(p in k for p in parts) else v for k, v in found.items()}

    return weights(change)


def own_embedding(lab: Healthy, case: Case) -> None:
    """The file carries a copy of the target's embeddings."""
    case.weights["embed_tokens.weight"] = lab.embedding.to(torch.bfloat16)


def other_answers(lab: Healthy, case: Case) -> None:
    """Two captures of different prompts: nothing to compare, everything rightly wired."""
    half = len(case.training) // 2
    case.training, case.serving = case.training[:half], case.serving[half:]


def renumbered(lab: Healthy, case: Case) -> None:
    """Extra tensors, a metadata key that nobody knows."""
    case.weights["verifier_norm.scale"] = torch.ones(3)
    case.config["note_of_the_trainer"] = {"loss": 1.5}


def _cast(weight: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return weight.to(dtype) if weight.is_floating_point() else weight


def harmless() -> Iterator[Fault]:
    """Every harmless case."""

    def fine(title: str, *changes: Change) -> Fault:
        def change(lab: Healthy, case: Case) -> None:
            for one in changes:
                one(lab, case)

        return Fault(title, (), change)

    yield fine("healthy")
    yield fine("healthy, a vLLM log of its own", logs.own(logs.vllm))
    yield fine("serving in float16", cast("serving", torch.float16))
    yield fine("serving in float32", cast("serving", torch.float32))
    yield fine("both in float32", cast("serving", torch.float32), cast("training", torch.float32))
    yield fine("noise of bf16", rewritten(noisy(0.004)))
    yield fine("noise of another kernel, 2 %", rewritten(noisy(0.02)))
    yield fine("serving texts in reverse", chosen("serving", slice(None, None, -1)))
    yield fine("training texts in reverse", chosen("training", slice(None, None, -1)))
    yield fine("fewer serving texts", chosen("serving", slice(0, None, 2)))
    yield fine("fewer training texts", chosen("training", slice(1, None, 2)))
    yield fine("one serving text", chosen("serving", slice(0, 1)))
    yield fine("other prompts", other_answers)
    yield fine("serving cut short", cut("serving", 0, 120))
    yield fine("training cut short", cut("training", 0, 150))
    yield fine("loss mask on everything", each("training", masked(1)))
    yield fine("loss mask on nothing", each("training", masked(0)))
    yield fine("no loss mask", each("training", unmasked))
    yield fine("slots of training in another order", reordered((2, 0, 3, 1)))
    yield fine("training states without numbers", unnamed)
    yield fine("a fourth serving state", fourth)
    yield fine("answers that part ways", part_ways)
    yield fine("another first row", sinks)
    for dtype in (torch.float32, torch.float16):
        yield fine(f"drafter in {dtype}", weights(lambda w, d=dtype: {k: _cast(v, d) for k, v in w.items()}))
    yield fine("unused tensors", renumbered)
    yield fine("own copy of the embeddings", own_embedding)
    yield fine("weak drafter: fc", weaker(0.5, "fc."))
    yield fine("weak drafter: layer", weaker(0.5, "mlp", "self_attn"))
    yield fine("weak drafter: all", weaker(0.35, "fc.", "mlp", "self_attn", "lm_head"))
    yield fine("no expected accuracy", lambda _, case: case.settings.clear())
    yield fine("expected as one number", lambda _, case: case.settings.update(expected=0.5, expected_kind=None))
    yield fine("no log", logged(None))
    yield fine("no serving capture", lacking("serving"), logged("demo"))
    yield fine("only log", lacking("drafter", "training", "serving", "target"), logged("demo"))
    yield fine("only captures", lacking("drafter", "target"), logged(None))
    yield fine("no target", lacking("target"), logged("demo"))
    yield fine("an SGLang log", logs.own(logs.sglang))
    yield fine("K = 2", logs.own(lambda a: logs.vllm(np.minimum(a, 2), steps=2)))
    yield fine("a short log", logs.own(lambda a: logs.vllm(a, windows=2, rounds=60)))
    yield fine("traffic a little harder", logs.own(lambda a: logs.vllm(logs.thinned(a, 0.95))))
    yield fine("sampled at temperature 1", lambda _, case: case.settings.update(temperature=1.0),
               logs.own(lambda a: logs.vllm(logs.thinned(a, 0.75))))  # fmt: skip
