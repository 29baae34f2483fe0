"""Every case of the laboratory: single faults, pairs, harmless changes. Beside them a log of vLLM, of SGLang, the demo's,
or none, in turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tests.lab import drafters, faults, logs, spoiled, texts
from tests.lab.faults import Fault
from tests.lab.harmless import harmless
from tests.lab.healthy import Case, Change, Healthy

LOGS = (("vLLM log", logs.vllm), ("SGLang log", logs.sglang), ("the healthy log", "demo"), ("no log", None))


def features() -> list[Fault]:
    """Faults of served features."""
    return [*faults.wiring(), *faults.changed(), *spoiled.spoiled(), *texts.tokens()]


def everything(turn: int = 0) -> list[Fault]:
    """All cases. `turn` moves the logs on by so many."""
    beside = [*with_logs(features(), turn), *with_logs(pairs(), turn)]
    whole = [replace(fault, whole=True) for fault in (*of_the_file(), *texts.training())]
    return [*beside, *logs.engines(), *whole, *harmless()]


def of_the_file() -> list[Fault]:
    """Faults of the drafter's file, beside a log of what it gives, or none."""
    both_logs = (("vLLM log", logs.vllm), ("no log", None))
    found = enumerate(drafters.drafters())
    return [_beside(fault, *both_logs[number % 2]) for number, fault in found]


def _beside(fault: Fault, name: str, log: object) -> Fault:
    return replace(fault, title=f"{fault.title} [{name}]", change=both(logged(log), fault.change))


def with_logs(found: Iterable[Fault], turn: int = 0) -> list[Fault]:
    """The same faults, each beside one of the logs."""
    return [_beside(fault, *LOGS[number % len(LOGS)]) for number, fault in enumerate(found, turn)]


def logged(log: object) -> Change:
    return lambda _, case: setattr(case, "log", log)


def both(*changes: Change) -> Change:
    """One after another."""

    def change(lab: Healthy, case: Case) -> None:
        for each in changes:
            each(lab, case)

    return change


PAIRS = (
    ("order (2, 0, 15)", "scaled: all by 0.25"),
    ("order (0, 15, 2)", "shifted by +1"),
    ("states (2, 15, 27)", "noise of 15 % everywhere"),
    ("states (2, 15, 27)", "shifted by -1"),
    ("shifted by +1", "scaled: slot 2 by 0.5"),
    ("shifted by +2", "other tokens from position 100"),
    ("post-norm in slot 2", "noise from position 64"),
    ("post-norm in slot 2", "shifted by +1"),
    ("blocks: 4 shards reversed", "scaled: all by 2"),
    ("order (15, 2, 0)", "blocks: 2 halves"),
    ("noise of 15 % everywhere", "other tokens from position 100"),
    ("thinking text in the answer's head", "scaled: all by 2"),
    ("scaled: slot 0 by sqrt(H)", "a tenth of the rows of other tokens"),
    ("blocks: 4 shards reversed", "shifted by +1"),
    ("blocks: 2 halves", "int4 by row"),
    ("shifted by -1", "post-norm in slot 2"),
    ("config: norm_before_residual", "shifted by +1"),
    ("config: norm_output", "states (2, 15, 27)"),
    ("d2t absolute", "order (0, 15, 2)"),
    ("config: norm_before_residual", "config: RoPE base 10000"),
)


def pairs() -> list[Fault]:
    """Two faults at once: one of them first, and both named."""
    known = {fault.title: fault for fault in (*features(), *drafters.drafters())}
    return [_pair([known[title] for title in titles]) for titles in PAIRS]


def _pair(of: Sequence[Fault]) -> Fault:
    names = tuple(name for fault in of for name in fault.names)
    change, felt = both(*(fault.change for fault in of)), all(fault.felt for fault in of)
    whole = any(fault.title in {each.title for each in drafters.drafters()} for fault in of)
    return Fault(" + ".join(fault.title for fault in of), names, change, names, whole, felt)
