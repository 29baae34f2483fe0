"""What the difference between a serving slot and the training states looks like: the traces that wiring faults leave.

s [R, Ht] is a sample of served rows, t [R, Ht] a training state of the same tokens. Each explanation predicts s from t; its
error is what is left, relative, by row:

match     s = t
scaled    s = w * t
blocks    s is t with equal blocks of the hidden dimension in another order (perhaps scaled)
residual  s = t - t_j: what the layers between have added, without the stream that entered them
normed    s = w * t / rms(t), a weight a channel: a norm stands between the layer and the capture
channel   s = w * t, a weight a channel

Rows may be torn: an explanation is judged by the rows it explains best (a tenth), fitted on them, and what it leaves on the
others is told apart by `breaks`. The simplest explanation wins unless another leaves half as much. Every row weighs the
same (the first token's norm can be hundreds of times larger).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from eagle3dash.analysis.breaks import Broken, broken

COUNTS = (96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2)  # blocks: the finest that divides the width holds the coarser ones
SAME_BLOCK = 0.9  # cosine of two blocks that are the same one
QUANTILE = 0.10  # of the rows: those an explanation must fit
CLEAR = 2.0  # a less simple explanation must leave so many times less
FLOOR = 0.02  # below that nothing is left to explain: noise of two implementations
MOST = 0.5  # above that nothing is explained
DISTINCT = 64  # different rows that weights by channel need
TINY = 1e-30


@dataclass(frozen=True)
class Rows:
    """A sample of one serving slot: s [R, Ht], every training state [R, Ht], and where the rows stand. float32."""

    s: torch.Tensor
    t: Sequence[torch.Tensor]
    position: torch.Tensor  # [R], of the training text
    sequence: torch.Tensor  # [R]


@dataclass(frozen=True)
class Explanation:
    """`error` [R]: what is left of each row, relative. `numbers`: those of the explanation."""

    how: str
    training_slot: int
    error: torch.Tensor
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def left(self) -> float:
        """The error of the best rows."""
        return float(self.error.quantile(QUANTILE))


def examine(rows: Rows) -> dict[str, Any]:
    """The explanation of a slot, how much it leaves, on which rows, and what that looks like."""
    every = [each for n in range(len(rows.t)) for each in _explanations(rows, n)]
    found = _simplest(every)
    out = {"how": found.how if found.left < MOST else "unknown", "training_slot": found.training_slot, **found.numbers}
    torn: Broken = broken(found.error.numpy(), rows.position.numpy(), rows.sequence.numpy(), found.left)
    s, t = rows.s, rows.t[found.training_slot]
    good = torch.from_numpy(~torn.rows)
    return out | {
        "error": float(found.error[good].median()) if bool(good.any()) else None,
        "share": float(good.double().mean()),
        "break": torn.pattern,
        "rows": len(s),
        "nearest": [_nearest(s, each) for each in rows.t],
        "left": _left(every),
        "levels": _levels(s) / max(_levels(t), 1.0),
        **_difference(s[good], t[good]),
    }


def _left(every: Sequence[Explanation]) -> dict[str, float | None]:
    """What the best of each kind leaves of the rows it fits best; None: it explains nothing at all."""
    lefts = {how: min(each.left for each in every if each.how == how) for how in {each.how for each in every}}
    return {how: value if value < float("inf") else None for how, value in lefts.items()}


def _simplest(every: Sequence[Explanation]) -> Explanation:
    enough = max(CLEAR * min(each.left for each in every), FLOOR)
    by_how: dict[str, list[Explanation]] = {}
    for each in every:
        by_how.setdefault(each.how, []).append(each)
    for how in ("match", "scaled", "blocks", "residual", "normed", "channel"):
        best = min(by_how.get(how, ()), key=lambda each: each.left, default=None)
        if best is not None and best.left <= enough:
            return best
    return min(every, key=lambda each: each.left)


def _explanations(rows: Rows, n: int) -> list[Explanation]:
    t, s = rows.t[n], rows.s
    size, served = (x.norm(dim=-1, keepdim=True).clamp_min(TINY) for x in (t, s))  # [R, 1]
    a, b = s / size, t / size
    found = [Explanation("match", n, (a - b).norm(dim=-1)), _scaled(a, b, n)]
    blocks = _blocks(a, b, n)
    found += [blocks] if blocks else []
    for j, other in enumerate(rows.t):
        if j != n:
            left = (s - (t - other)).norm(dim=-1) / served[:, 0]
            found.append(Explanation("residual", n, left, {"missing": j}))
    if len(torch.unique(t[:, :8], dim=0)) >= DISTINCT:
        root = t.shape[-1] ** 0.5
        found.append(_weighted("channel", a, b, n))
        found.append(_weighted("normed", s / served, b * root / served, n))  # in units of the served norm
    return found


def _scaled(a: torch.Tensor, b: torch.Tensor, n: int) -> Explanation:
    along = (a * b).sum(-1)  # [R]
    off = (a - along[:, None] * b).norm(dim=-1) / a.norm(dim=-1).clamp_min(TINY)
    weight = float(along[off <= off.quantile(QUANTILE)].median())
    error = (a - weight * b).norm(dim=-1) / max(abs(weight), TINY)
    if abs(weight - 1.0) < FLOOR:
        error = error + torch.inf  # no scale at all
    return Explanation("scaled", n, error, {"weight": weight})


def _blocks(a: torch.Tensor, b: torch.Tensor, n: int) -> Explanation | None:
    """Another order of blocks, if a is a reordering of b and not b itself."""
    count = next((c for c in COUNTS if a.shape[-1] % c == 0), 1)
    left, right = (x.unflatten(-1, (count, -1)) for x in (a, b))  # [R, blocks, Ht / blocks]
    cross = torch.einsum("nid,njd->ij", left, right)
    own = [x.square().sum((0, 2)) for x in (left, right)]
    cosine = cross / (own[0][:, None] * own[1][None, :]).sqrt().clamp_min(TINY)
    best, order = cosine.max(dim=1)
    names = order.tolist()
    if float(best.quantile(QUANTILE)) < SAME_BLOCK or sorted(names) != list(range(count)) or names == sorted(names):
        return None
    moved = right[:, order].flatten(1)
    weight = float((a * moved).sum(-1).median())
    error = (a - weight * moved).norm(dim=-1) / max(abs(weight), TINY)
    numbers = {"order": _coarsest(names), "weight": weight, "lowest_cosine": float(best.min())}
    return Explanation("blocks", n, error, numbers)


def _coarsest(order: list[int]) -> list[int]:
    """The same order with as few blocks as can say it."""
    for size in range(len(order) // 2, 1, -1):
        if len(order) % size == 0:
            heads = order[::size]
            if all(h % size == 0 for h in heads) and order == [h + i for h in heads for i in range(size)]:
                return [h // size for h in heads]
    return order


def _weighted(how: str, y: torch.Tensor, x: torch.Tensor, n: int) -> Explanation:
    """Least squares of y = w * x with one weight a channel, on the half of the rows that fit best."""
    kept = torch.ones(len(y), dtype=torch.bool)
    for _ in range(4):
        w = (x[kept] * y[kept]).sum(0) / x[kept].square().sum(0).clamp_min(TINY)
        error = (y - w * x).norm(dim=-1) / y.norm(dim=-1).clamp_min(TINY)
        kept = error <= error.median()
    share = x[kept].square().sum(0)
    share = share / share.sum().clamp_min(TINY)
    mean = (share * w).sum()
    spread = (share * (w - mean).square()).sum().sqrt() / mean.abs().clamp_min(TINY)
    return Explanation(how, n, error, {"weight": float(mean), "spread": float(spread)})


def _nearest(s: torch.Tensor, t: torch.Tensor) -> dict[str, float]:
    """How s lies to a training state: median cosine and norm ratio."""
    size, served = t.norm(dim=-1).clamp_min(TINY), s.norm(dim=-1)
    cosine = (s * t).sum(-1) / (size * served.clamp_min(TINY))
    return {"cosine": float(cosine.median()), "norm_ratio": float((served / size).median())}


def _levels(x: torch.Tensor) -> float:
    """Different values in a row, mean of some rows: few on the grid of a quantisation."""
    return sum(len(torch.unique(row)) for row in x[:: max(1, len(x) // 32)]) / max(1, len(x[:: max(1, len(x) // 32)]))


def _difference(s: torch.Tensor, t: torch.Tensor) -> dict[str, float | None]:
    """systematic: share of the difference that is the same for all tokens (1/n for noise, more for another layer or for
    weights that were rounded). lean: change of the norm in units of the difference."""
    if not len(s):
        return {"systematic": None, "lean": None}
    size = t.norm(dim=-1, keepdim=True).clamp_min(TINY)
    d = (s - t) / size
    squared = float(d.square().sum())
    ratio = float((s.norm(dim=-1) / size[:, 0]).median())
    error = float(d.norm(dim=-1).median())
    systematic = float(d.mean(0).square().sum() * len(d) / squared) if squared else 0.0
    return {"systematic": systematic, "lean": abs(ratio - 1.0) / error if error else 0.0}


def repeated_rows(training: Sequence[torch.Tensor], serving: Sequence[torch.Tensor], tokens: int) -> list[int]:
    """For each serving slot: rows equal to the row before, where no training state repeats (equal tokens may repeat it)."""
    if tokens < 2:
        return [0] * len(serving)
    alike = torch.zeros(tokens - 1, dtype=torch.bool)
    for t in training:
        alike |= (t[1:tokens] == t[: tokens - 1]).all(dim=-1)
    return [int(((s[1:tokens] == s[: tokens - 1]).all(dim=-1) & ~alike).sum()) for s in serving]
