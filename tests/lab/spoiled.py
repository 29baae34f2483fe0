"""Faults that spoil the right features: rounding, noise, values cut off or missing, and rows that are wrong in places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from tests.lab.faults import Fault, Rewrite, like, moved, rewritten, rng
from tests.lab.healthy import Case, Change, Healthy


def quantised(bits: int, by: str = "row") -> Rewrite:
    """Rounded to so many bits, one scale a row or one a tensor."""

    def rewrite(s: torch.Tensor) -> torch.Tensor:
        x = s.float()
        top = x.abs().amax(dim=-1, keepdim=True) if by == "row" else x.abs().quantile(0.999)
        step = top / (2 ** (bits - 1) - 1)
        return like((x / step).round().clamp(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) * step, s)

    return rewrite


def by_channel(bits: int) -> Rewrite:
    """Rounded to so many bits, one scale a channel."""

    def rewrite(s: torch.Tensor) -> torch.Tensor:
        x = s.float()
        step = x.abs().amax(dim=0, keepdim=True).clamp_min(1e-9) / (2 ** (bits - 1) - 1)
        return like((x / step).round() * step, s)

    return rewrite


def clamped(at: float) -> Rewrite:
    return lambda s: s.clamp(-at, at)


def emptied(start: int, stop: int) -> Rewrite:
    """Some channels hold nothing."""

    def rewrite(s: torch.Tensor) -> torch.Tensor:
        out = s.clone()
        out[:, start:stop] = 0
        return out

    return rewrite


def noisy(share: float, seed: int = 0) -> Rewrite:
    """Gaussian noise of so much of each row's norm."""
    noise = rng(seed)

    def rewrite(s: torch.Tensor) -> torch.Tensor:
        added = torch.randn(s.shape, generator=noise) / s.shape[-1] ** 0.5
        return like(s.float() + share * s.float().norm(dim=-1, keepdim=True) * added, s)

    return rewrite


def deeper(*shares: float) -> Change:
    """Noise that grows with the depth of the slot, as of a quantised target."""

    def change(lab: Healthy, case: Case) -> None:
        for slot, share in enumerate(shares):
            if share:
                rewritten(noisy(share, slot), (slot,))(lab, case)

    return change


def broken(rows: Callable[[int], slice | torch.Tensor], rewrite: Rewrite, slots: Sequence[int] = (0, 1, 2)) -> Change:
    """Only some rows (`rows` of the length) through `rewrite`."""

    def torn(s: torch.Tensor) -> torch.Tensor:
        out = s.clone()
        out[rows(len(s))] = rewrite(s)[rows(len(s))]
        return out

    return rewritten(torn, slots)


def elsewhere(s: torch.Tensor) -> torch.Tensor:
    """States of other tokens: the text backwards."""
    return s.flip(0)


def scattered(share: float, seed: int = 3) -> Callable[[int], torch.Tensor]:
    """Some rows here and there, the same in all slots."""
    return lambda n: (torch.rand(n, generator=rng(seed)) < share).nonzero()[:, 0]


def repeated(s: torch.Tensor) -> torch.Tensor:
    """Each row twice, the second in the place of the next."""
    return s[torch.arange(len(s)) // 2 * 2]


def swapped_texts(_: Healthy, case: Case) -> None:
    """The last texts hold each other's states."""
    a, b = case.serving[-2:]
    n = min(len(a.ids), len(b.ids))
    for slot in range(len(a.states)):
        left, right = a.states[slot].clone(), b.states[slot].clone()
        left[:n], right[:n] = b.states[slot][:n], a.states[slot][:n]
        a.states[slot], b.states[slot] = left, right


def spoiled() -> Iterator[Fault]:
    precision, drift, corrupt = ("precision-loss",), ("drifting-features",), ("corrupt-features",)
    yield Fault("int4 by row", precision, rewritten(quantised(4)))
    yield Fault("int5 by tensor, deep slots", precision, rewritten(quantised(5, "tensor"), (1, 2)))
    yield Fault("int8 by channel", precision, rewritten(by_channel(8)))
    yield Fault("int4 by channel, slot 2", precision, rewritten(by_channel(4), (2,)))
    yield Fault("cut off at 448", precision, rewritten(clamped(448.0)))
    yield Fault("cut off at 100, slot 2", precision, rewritten(clamped(100.0), (2,)))
    yield Fault("cut off at 4", precision, rewritten(clamped(4.0)))
    yield Fault("64 channels empty, slot 2", corrupt, rewritten(emptied(64, 128), (2,)))
    yield Fault("half of the channels empty", corrupt, rewritten(emptied(288, 576)))
    yield Fault("first row is the second", corrupt, broken(lambda n: slice(0, 1), lambda s: s.roll(-1, 0)))
    yield Fault("noise growing with depth", precision, deeper(0.0, 0.1, 0.25))
    yield Fault("noise of 15 % everywhere", precision, rewritten(noisy(0.15)))
    yield Fault("noise of 40 % in slot 2", precision, deeper(0.0, 0.0, 0.4))
    yield Fault("other tokens from position 100", drift, broken(lambda n: slice(100, None), elsewhere))
    yield Fault("noise from position 64", drift, broken(lambda n: slice(64, None), noisy(0.8)))
    yield Fault("moved from position 128", drift, broken(lambda n: slice(128, None), moved(1)))
    yield Fault("wrong up to position 64", drift, broken(lambda n: slice(0, 64), elsewhere))
    yield Fault("slots 1, 2 wrong from position 100", drift, broken(lambda n: slice(100, None), elsewhere, (1, 2)))
    yield Fault("last row of each chunk of 32", drift, broken(lambda n: slice(31, None, 32), elsewhere))
    yield Fault("first 4 rows of each chunk of 64", drift, broken(lambda n: torch.arange(n)[torch.arange(n) % 64 < 4],
                                                                elsewhere))  # fmt: skip
    yield Fault("every second chunk of 32", drift, broken(lambda n: torch.arange(n)[torch.arange(n) // 32 % 2 == 1],
                                                        elsewhere))  # fmt: skip
    yield Fault("each row twice", corrupt, rewritten(repeated))
    yield Fault("a fifth of the rows stale", corrupt, broken(scattered(0.2), moved(1)))
    yield Fault("a tenth of the rows of other tokens", corrupt, broken(scattered(0.1), elsewhere))
    yield Fault("constant row from 150 on", corrupt, broken(lambda n: slice(min(n - 20, 150), None),
                                                           lambda s: s[:1].expand_as(s)))  # fmt: skip
    yield Fault("two texts swapped", corrupt, swapped_texts)
