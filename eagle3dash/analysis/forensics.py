"""What the difference between a serving slot and a training state looks like: the traces that wiring faults leave.

s [n, Ht] is served, t [n, Ht] is the training state of the same tokens. Every row weighs the same (rows are divided by
their norm), or the first token, whose norm can be hundreds of times larger, would decide alone. Each test is exact for
its fault: the error it reports is then the noise of the capture.

normed      s = w * t / rms(t): a norm stands between the layer and the capture
channel     s = w * t by channel; a constant w is a scale
residual    s = t - t_j: the layer's output without the residual that entered it
blocks      s is t with equal blocks of the hidden dimension in another order
systematic  share of the difference that is the same for all tokens: 1/n for noise, more for another layer
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

BLOCKS = (16, 8, 4, 2)
SAME_BLOCK = 0.95  # cosine of two blocks that are the same one
TINY = 1e-30
CHUNK = 512  # rows held in float64 at a time


def repeated_rows(training: Sequence[torch.Tensor], serving: Sequence[torch.Tensor], tokens: int) -> list[int]:
    """For each serving slot: rows equal to the row before, where no training state repeats (equal tokens may repeat it)."""
    if tokens < 2:
        return [0] * len(serving)
    alike = torch.zeros(tokens - 1, dtype=torch.bool)
    for t in training:
        alike |= (t[1:tokens] == t[: tokens - 1]).all(dim=-1)
    return [int(((s[1:tokens] == s[: tokens - 1]).all(dim=-1) & ~alike).sum()) for s in serving]


def examine(pairs: Iterable[Any], nearest: int, slot: int, lag: int) -> dict[str, Any]:
    """All tests of one serving slot on a sample of aligned pairs. `nearest`: the training slot of lowest relative error."""
    fits: list[Fit] = []
    for pair in pairs:
        low, high = max(0, -lag), max(max(0, -lag), min(pair.tokens, pair.tokens - lag))
        fits = fits or [Fit(n, t.shape[-1], len(pair.training)) for n, t in enumerate(pair.training)]
        for start in range(low, high, CHUNK):
            rows = slice(start, min(start + CHUNK, high))
            s = pair.serving[slot][rows.start + lag : rows.stop + lag].double()
            states = [t[rows].double() for t in pair.training]
            for fit in fits:
                fit.add(s, states)
    found = [fit.result() for fit in fits]
    return {
        "normed": min((f["normed"] for f in found), key=lambda f: f["error"], default=None),
        "channel": min((f["channel"] for f in found), key=lambda f: f["error"], default=None),
        "residual": min((f["residual"] for f in found if f["residual"]), key=lambda f: f["error"], default=None),
        "blocks": next((f["blocks"] for f in found if f["blocks"]), None),
        "systematic": found[nearest]["systematic"] if found else None,
    }


class Fit:
    """Sums over the tokens of one serving slot against training state n. Memory: a few vectors of width Ht."""

    def __init__(self, n: int, width: int, states: int):
        self.n, self.rows = n, 0
        self.normed, self.channel = Weighted(width), Weighted(width)
        self.difference, self.squared = torch.zeros(width, dtype=torch.float64), 0.0
        self.residual = torch.zeros(states, dtype=torch.float64)
        self.count = next((b for b in BLOCKS if width % b == 0), 1)
        self.cross = torch.zeros(self.count, self.count, dtype=torch.float64)
        self.own = torch.zeros(2, self.count, dtype=torch.float64)

    def add(self, s: torch.Tensor, states: Sequence[torch.Tensor]) -> None:
        """s [n, Ht] and every training state [n, Ht], float64."""
        t = states[self.n]
        size = t.norm(dim=-1, keepdim=True).clamp_min(TINY)  # [n, 1]
        served = s.norm(dim=-1, keepdim=True).clamp_min(TINY)
        a, b = s / size, t / size
        self.rows += len(t)
        self.channel.add(a, b)
        self.normed.add(s / served, b * t.shape[-1] ** 0.5 / served)  # rows in units of the served norm
        self.difference += (a - b).sum(0)
        self.squared += float((a - b).square().sum())
        for j, other in enumerate(states):
            self.residual[j] += ((s + other - t).norm(dim=-1) / served[:, 0]).sum()
        a, b = (x.unflatten(-1, (self.count, -1)) for x in (a, b))  # [n, blocks, Ht / blocks]
        self.cross += torch.einsum("nid,njd->ij", a, b)
        self.own += torch.stack([a.square().sum((0, 2)), b.square().sum((0, 2))])

    def result(self) -> dict[str, Any]:
        """Errors relative to the served rows; each with the training slot it belongs to."""
        rows = max(self.rows, 1)
        residual = self.residual / rows
        residual[self.n] = torch.inf
        j = int(residual.argmin())
        mean = (self.difference / rows).square().sum()
        return {
            "normed": {"training_slot": self.n, **self.normed.result()},
            "channel": {"training_slot": self.n, **self.channel.result()},
            "residual": {"training_slot": self.n, "missing": j, "error": float(residual[j])} if len(residual) > 1 else None,
            "blocks": self._blocks(),
            "systematic": float(mean * rows / self.squared) if self.squared else 0.0,
        }

    def _blocks(self) -> dict[str, Any] | None:
        """The order of blocks, if s is a reordering of t and not t itself."""
        cosine = self.cross / (self.own[0][:, None] * self.own[1][None, :]).sqrt().clamp_min(TINY)
        best, order = cosine.max(dim=1)
        names = order.tolist()
        if self.count < 2 or float(best.min()) < SAME_BLOCK or sorted(names) != list(range(self.count)):
            return None
        if names == sorted(names):
            return None
        return {"training_slot": self.n, "order": names, "lowest_cosine": float(best.min())}


class Weighted:
    """Least squares of y = w * x with one weight a channel, from sums."""

    def __init__(self, width: int):
        self.xy, self.xx, self.yy = (torch.zeros(width, dtype=torch.float64) for _ in range(3))

    def add(self, y: torch.Tensor, x: torch.Tensor) -> None:
        """y, x [n, Ht]."""
        self.xy += (x * y).sum(0)
        self.xx += x.square().sum(0)
        self.yy += y.square().sum(0)

    def result(self) -> dict[str, float]:
        """error: what is left of y, relative; weight and spread: mean and relative deviation of w (by the energy of x)."""
        w = self.xy / self.xx.clamp_min(TINY)
        left = (self.yy - self.xy * w).clamp_min(0).sum()
        share = self.xx / self.xx.sum().clamp_min(TINY)
        mean = (share * w).sum()
        spread = (share * (w - mean).square()).sum().sqrt() / mean.abs().clamp_min(TINY)
        error = (left / self.yy.sum().clamp_min(TINY)).sqrt()
        return {"error": float(error), "weight": float(mean), "spread": float(spread)}


def drift(columns: dict[str, np.ndarray], training_slot: int, serving_slot: int) -> dict[str, Any] | None:
    """The position that best splits the errors of a cell in two levels, by least squares of their logarithm.

    -> position, before, after (mean relative errors), rows; None with fewer than 32 positions."""
    which = (columns["training_slot"] == training_slot) & (columns["serving_slot"] == serving_slot)
    position, error = columns["position"][which], np.maximum(columns["relative_error"][which], 1e-6)
    if not len(position) or position.max() < 31:
        return None
    count = np.bincount(position).astype(float)  # [P]
    total = np.bincount(position, weights=np.log(error))
    left_n, left = np.cumsum(count)[:-1], np.cumsum(total)[:-1]
    right_n, right = count.sum() - left_n, total.sum() - left
    usable = (left_n >= 8) & (right_n >= 8)
    gain = np.where(usable, left**2 / np.maximum(left_n, 1) + right**2 / np.maximum(right_n, 1), -np.inf)
    split = int(gain.argmax()) + 1
    after = position >= split
    return {
        "position": split,
        "before": float(error[~after].mean()),
        "after": float(error[after].mean()),
        "rows": [int((~after).sum()), int(after.sum())],
    }
