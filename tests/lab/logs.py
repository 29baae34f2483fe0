"""Server logs as text, made from counts of real replays: healthy ones and those of engines that lose tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tests.lab.faults import Fault
from tests.lab.healthy import Case, Change, Healthy

Accepted = np.ndarray  # num_accepted of each round
Write = Callable[[Accepted], str]
START = (
    "(APIServer pid=1) INFO 11-30 01:17:56 [api_utils.py:347]        version 0.32.0\n"
    "(EngineCore pid=2) INFO 11-30 01:18:05 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
    "model='/models/target', speculative_config=SpeculativeConfig(method='eagle3', model='/models/drafter', "
    "num_spec_tokens={steps})\n"
)
SERVER_ARGS = (
    "[2026-11-30 01:17:56] server_args=ServerArgs(model_path='/models/target', speculative_algorithm='EAGLE3', "
    "speculative_draft_model_path='/models/drafter', speculative_num_steps={steps}, speculative_eagle_topk=1, "
    "speculative_num_draft_tokens={drafts}, dp_size={ranks}, tp_size=1)\n"
)


def own(write: Write) -> Change:
    """A log of the counts that a right engine would have on the case's serving features."""
    return lambda _, case: setattr(case, "log", write)


def traffic(accepted: Accepted, rounds: int = 4000, seed: int = 0) -> Accepted:
    """Rounds of other traffic with the same chances."""
    return np.random.default_rng(seed).choice(accepted, rounds)


def thinned(accepted: Accepted, chance: float, first: int = 0, steps: int = 4, seed: int = 2) -> Accepted:
    """Each step from `first` on accepted only with this chance besides: a round ends where one is refused."""
    refused = np.random.default_rng(seed).random((len(accepted), steps)) >= chance  # [rounds, K]
    refused[:, :first] = False
    ends = np.where(refused.any(axis=1), refused.argmax(axis=1), steps)
    return np.minimum(accepted, ends)


def parts(accepted: Accepted, windows: int, rounds: int) -> list[Accepted]:
    return np.array_split(traffic(accepted, rounds), windows)


def vllm(accepted: Accepted, steps: int = 4, windows: int = 20, rounds: int = 4000) -> str:
    """A vLLM log of these rounds."""
    return START.format(steps=steps) + "".join(
        vllm_line(part, steps, number) for number, part in enumerate(parts(accepted, windows, rounds))
    )


def vllm_line(part: Accepted, steps: int, number: int, engine: str = "APIServer pid=1") -> str:
    """One window."""
    survived = ", ".join(f"{(part > step).mean():.3f}" for step in range(steps))
    return (
        f"({engine}) INFO 11-30 {1 + number // 60:02d}:{number % 60:02d}:14 [metrics.py:120] SpecDecoding metrics: Mean "
        f"acceptance length: {1 + part.mean():.2f}, Accepted throughput: {part.sum() / 10:.2f} tokens/s, Drafted "
        f"throughput: {steps * len(part) / 10:.2f} tokens/s, Accepted: {part.sum()} tokens, Drafted: {steps * len(part)} "
        f"tokens, Per-position acceptance rate: {survived}, Avg Draft acceptance rate: "
        f"{100 * part.mean() / steps:.1f}%\n"
    )


def sglang(accepted: Accepted, steps: int = 4, windows: int = 40, old: bool = False) -> str:
    """An SGLang log of these rounds; `old`: with the accept rate of 2025 (accept length / draft tokens)."""
    text = SERVER_ARGS.format(steps=steps, drafts=steps + 1, ranks=1)
    for number, part in enumerate(parts(accepted, windows, 4000)):
        text += sglang_line(part, steps, number, old=old)
    return text


def sglang_line(part: Accepted, steps: int, number: int, rank: str = "", old: bool = False) -> str:
    """One window."""
    length = 1 + part.mean()
    rate = length / (steps + 1) if old else (length - 1) / steps
    return (
        f"[2026-11-30 {1 + number // 60:02d}:{number % 60:02d}:17{rank}] Decode batch, #running-req: 8, #token: 22796, "
        f"token usage: 0.64, accept len: {length:.2f}, accept rate: {rate:.2f}, cuda graph: True, gen throughput "
        f"(token/s): 631.96, #queue-req: 0\n"
    )


# ---- engines that lose tokens ---------------------------------------------------------------------------------------


def falling(accepted: Accepted) -> str:
    """Accepts less and less while it runs."""
    text = START.format(steps=4)
    for number, part in enumerate(parts(accepted, 60, 9000)):
        text += vllm_line(thinned(part, 1.0 - 0.5 * number / 60, seed=number), 4, number)
    return text


def two_ranks(accepted: Accepted) -> str:
    """Data-parallel rank 1 accepts half."""
    text = SERVER_ARGS.format(steps=4, drafts=5, ranks=2)
    for number, part in enumerate(parts(accepted, 40, 8000)):
        half = len(part) // 2
        text += sglang_line(part[:half], 4, number, " DP0 TP0")
        text += sglang_line(thinned(part[half:], 0.5, seed=number), 4, number, " DP1 TP1")
    return text


def constant(value: int, steps: int = 4) -> Write:
    """Every round accepts so many."""
    return lambda accepted: vllm(np.full(4000, value), steps)


def only(*kinds: str) -> Change:
    """The run has nothing but these kinds, and its log."""
    kept = set(kinds)
    return lambda _, case: setattr(
        case, "without", tuple(k for k in ("drafter", "training", "serving", "target") if k not in kept)
    )


def engines() -> Iterator[Fault]:
    """Faults of the engine, on healthy features."""
    lost, alone = ("engine-loss",), ("dead-acceptance",)
    later = ("later-steps-loss", "wrong-feedback-norm")  # the second where that reading explains what was served
    for name, write in (("vLLM", vllm), ("SGLang", sglang)):
        yield _engine(f"{name}: every step at 60 %", lost, lambda a, w=write: w(thinned(a, 0.6)))
        yield _engine(f"{name}: every step at 30 %", lost, lambda a, w=write: w(thinned(a, 0.3)))
    yield _engine("vLLM: every step at 72 %", lost, lambda a: vllm(thinned(a, 0.72)))
    yield _engine("vLLM: dead", ("engine-loss", "dead-acceptance"), lambda a: vllm(thinned(a, 0.05)))
    yield _engine("vLLM: exactly 1", ("pinned-acceptance",), constant(0))
    yield _engine("vLLM: no step after the first", later, lambda a: vllm(thinned(a, 0.02, first=1)))
    yield _engine("vLLM: later steps at 35 %", later, lambda a: vllm(thinned(a, 0.35, first=1)))
    yield _engine("vLLM: everything accepted", ("too-good-acceptance",), constant(4))
    yield _engine("vLLM: falls with uptime", ("acceptance-trend", "engine-loss"), falling)
    yield _engine("SGLang: rank 1 accepts half", ("ranks-differ", "engine-loss"), two_ranks)
    yield _engine("SGLang: the rate of 2025", ("metric-definition",), lambda a: sglang(a, old=True))
    yield _engine("log alone: dead", alone, lambda a: vllm(thinned(a, 0.05)), only())
    yield _engine("log alone: exactly 1", ("pinned-acceptance",), constant(0), only())
    yield _engine("log alone: everything accepted", ("too-good-acceptance",), constant(4), only())
    yield _engine("log alone: falls with uptime", ("acceptance-trend",), falling, only())
    yield _engine("log alone: rank 1 accepts half", ("ranks-differ",), two_ranks, only())
    yield _engine("log alone: cliff at position 2", ("position-cliff",),
                  lambda a: vllm(np.where(np.random.default_rng(5).random(4000) < 0.7, 2, 0)
                                 + (np.random.default_rng(6).random(4000) < 0.05)), only())  # fmt: skip


def _engine(title: str, names: tuple[str, ...], write: Write, also: Change | None = None) -> Fault:
    def change(lab: Healthy, case: Case) -> None:
        own(write)(lab, case)
        if also is not None:
            also(lab, case)

    return Fault(title, names, change)
