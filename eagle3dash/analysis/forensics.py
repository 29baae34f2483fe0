"""What the difference between a serving slot and the training states looks like: the traces that wiring faults leave.

s [R, Ht] is a sample of served rows, t [R, Ht] a training state of the same tokens. Each explanation predicts s from t; its
error is what is left, relative, by row:

match     s = t
scaled    s = w * t
blocks    s is t with channels in another order, equal blocks of them or single ones (perhaps scaled)
residual  s = t - t_j: what the layers between have added, without the stream that entered them
normed    s = w * t / rms(t), a weight a channel: a norm stands between the layer and the capture
raw       t = w * s / rms(s): the same the other way round, training holds the state after a norm
channel   s = w * t, a weight a channel

Rows may be torn: an explanation is judged by the rows it explains best (a tenth), fitted on them, and what it leaves on the
others is told apart by `breaks`. The simplest explanation wins unless another leaves half as much. Every row weighs the
same (the first token's norm can be hundreds of times larger).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from eagle3dash.analysis.breaks import Broken, broken
from eagle3dash.analysis.permuted import block_order, channel_order, coarsest, pattern

QUANTILE = 0.10  # of the rows: those an explanation must fit
CLEAR = 2.0  # a less simple explanation must leave so many times less
FLOOR = 0.02  # below that nothing is left to explain: noise of two implementations
MORE = 0.25  # of the rows: those that tell weights a channel apart
MOST = 0.5  # above that nothing is explained
DISTINCT = 64  # different rows that weights by channel need
WEIGHTED = ("normed", "raw", "channel")  # with a weight a channel
WEIGHTS = ("residual", *WEIGHTED)  # explanations free enough to fit channels that only changed places
UNEXPLAINED = 0.3  # error above which channels are looked at one by one
MOST_BLOCKS = 96  # of an order that is told as it is
LIKE, MOSTLY = 0.1, 0.8  # weights that near to their median are one; share of channels
COARSE = (
    0.5  # different values in a row or a channel, of those in training's: a grid, whose rounding is no weight of a norm
)
PART = 8  # neighbouring channels that hold nothing: a part that was not filled
AWAY = 4  # rows: the widest lag that is looked for
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


def examine(rows: Rows, orders: Sequence[Sequence[int]] = ()) -> dict[str, Any]:
    """The explanation of a slot, how much it leaves, on which rows, and what that looks like. `orders`: of blocks, seen in
    other slots, which are tried where nothing simpler explains this one."""
    live, dead = _live(rows)
    every = [each for n in range(len(live.t)) for each in _explanations(live, n)]
    if min(each.left for each in every) >= UNEXPLAINED or _simplest(every).how in WEIGHTS:
        every += _any_order(rows, orders)
    near = min((each for each in every if each.how == "match"), key=lambda each: each.left)
    levels = _coarseness(live.s, live.t[near.training_slot])
    if levels < COARSE and near.left < MOST:
        every = [each for each in every if each.how not in WEIGHTED]
    found = _simplest(every)
    rows = rows if found.how == "blocks" else live
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
        "levels": levels if found.training_slot == near.training_slot else _coarseness(s, t),
        "dead_channels": dead,
        **_difference(s[good], t[good]),
    }


def _live(rows: Rows) -> tuple[Rows, dict[str, int] | None]:
    """Without the channels that are zero in every served row and in no training state; and a part that was not filled."""
    dead = (rows.s == 0).all(0)
    for t in rows.t:
        dead &= ~(t == 0).all(0)
    which = dead.nonzero()[:, 0].tolist()
    if not which or len(which) == len(dead):
        return rows, None
    kept = replace(rows, s=rows.s[:, ~dead], t=[t[:, ~dead] for t in rows.t])
    if which[-1] - which[0] + 1 != len(which) or len(which) < PART:
        return kept, None  # single ones, here and there, are rounded to zero by a scale a channel
    return kept, {"count": len(which), "first": which[0], "last": which[-1], "of": len(dead)}


def _any_order(rows: Rows, orders: Sequence[Sequence[int]]) -> list[Explanation]:
    """Single channels in another order, or blocks as in other slots; looked at only where nothing simpler explains it."""
    a, found = rows.s / rows.s.norm(dim=-1, keepdim=True).clamp_min(TINY), []
    for n, t in enumerate(rows.t):
        b = t / t.norm(dim=-1, keepdim=True).clamp_min(TINY)
        order = channel_order(a, b)
        found += [_reordered(a, b, n, order)] if order else []
        known = [list(each) for each in orders if a.shape[-1] % len(each) == 0]
        found += [_reordered(a, b, n, (each, None)) for each in known]
    return found


def _left(every: Sequence[Explanation]) -> dict[str, float | None]:
    """What the best of each kind leaves of the rows it fits best; None: it explains nothing at all."""
    lefts = {how: min(each.left for each in every if each.how == how) for how in {each.how for each in every}}
    return {how: value if value < float("inf") else None for how, value in lefts.items()}


def _simplest(every: Sequence[Explanation]) -> Explanation:
    enough = max(CLEAR * min(each.left for each in every), FLOOR)
    by_how: dict[str, list[Explanation]] = {}
    for each in every:
        by_how.setdefault(each.how, []).append(each)
    for how in ("match", "scaled", "blocks", "residual"):
        best = min(by_how.get(how, ()), key=lambda each: each.left, default=None)
        if best is not None and best.left <= enough:
            return best
    weighted = [each for how in WEIGHTED for each in by_how.get(how, ()) if each.left <= enough]
    if weighted:  # alike on the few rows that they fit best, where lengths hardly differ: more rows tell them apart
        return min(weighted, key=lambda each: float(each.error.quantile(MORE)))
    return min(every, key=lambda each: each.left)


def _explanations(rows: Rows, n: int) -> list[Explanation]:
    t, s = rows.t[n], rows.s
    size, served = (x.norm(dim=-1, keepdim=True).clamp_min(TINY) for x in (t, s))  # [R, 1]
    a, b = s / size, t / size
    found = [Explanation("match", n, (a - b).norm(dim=-1)), _scaled(a, b, n)]
    order = block_order(a, b)
    found += [_reordered(a, b, n, order)] if order else []
    for j, other in enumerate(rows.t):
        if j != n:
            left = (s - (t - other)).norm(dim=-1) / served[:, 0]
            found.append(Explanation("residual", n, left, {"missing": j}))
    if len(torch.unique(t[:, :8], dim=0)) >= DISTINCT:
        root = t.shape[-1] ** 0.5
        found.append(_weighted("channel", a, b, n))
        found.append(_weighted("normed", s / served, b * root / served, n))  # in units of the served norm
        found.append(_weighted("raw", b, s / served * root / size, n))  # of training's
    return found


def _scaled(a: torch.Tensor, b: torch.Tensor, n: int) -> Explanation:
    along = (a * b).sum(-1)  # [R]
    off = (a - along[:, None] * b).norm(dim=-1) / a.norm(dim=-1).clamp_min(TINY)
    weight = float(along[off <= off.quantile(QUANTILE)].median())
    error = (a - weight * b).norm(dim=-1) / max(abs(weight), TINY)
    if abs(weight - 1.0) < FLOOR:
        error = error + torch.inf  # no scale at all
    return Explanation("scaled", n, error, {"weight": weight})


def _reordered(a: torch.Tensor, b: torch.Tensor, n: int, found: tuple[list[int], float | None]) -> Explanation:
    """a is b in this order of blocks, or channels."""
    names, lowest = found
    moved = b.unflatten(-1, (len(names), -1))[:, names].flatten(1)
    weight = float((a * moved).sum(-1).median())
    error = (a - weight * moved).norm(dim=-1) / max(abs(weight), TINY)
    order = coarsest(names)
    size = a.shape[-1] // len(names)
    words = pattern([name * size + i for name in names for i in range(size)])
    numbers = {"order": order if len(order) <= MOST_BLOCKS else None, "reordered": words, "weight": weight}
    return Explanation("blocks", n, error, numbers | {"lowest_cosine": lowest})


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
    if how == "channel" and float(((w - w.median()).abs() < LIKE * w.median().abs()).float().mean()) >= MOSTLY:
        error = error + torch.inf  # the weight of nearly every channel is the same: no norm, but noise in the others
    return Explanation(how, n, error, {"weight": float(mean), "spread": float(spread)})


def _nearest(s: torch.Tensor, t: torch.Tensor) -> dict[str, float]:
    """How s lies to a training state: median cosine and norm ratio."""
    size, served = t.norm(dim=-1).clamp_min(TINY), s.norm(dim=-1)
    cosine = (s * t).sum(-1) / (size * served.clamp_min(TINY))
    return {"cosine": float(cosine.median()), "norm_ratio": float((served / size).median())}


def _levels(x: torch.Tensor) -> float:
    """Different values in a row, mean of some rows: few on the grid of a quantisation."""
    return sum(len(torch.unique(row)) for row in x[:: max(1, len(x) // 32)]) / max(1, len(x[:: max(1, len(x) // 32)]))


def _coarseness(s: torch.Tensor, t: torch.Tensor) -> float:
    """Different values of s by row or by channel, whichever are fewer, of those of t."""
    return min(_levels(x) / max(_levels(y), 1.0) for x, y in ((s, t), (s.T, t.T)))


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
    """For each serving slot: rows equal to the row before, where no training state repeats there or some rows away (equal
    tokens may repeat it, and rows may be shifted)."""
    if tokens < 2:
        return [0] * len(serving)
    alike = torch.zeros(tokens - 1, dtype=torch.bool)
    for t in training:
        alike |= (t[1:tokens] == t[: tokens - 1]).all(dim=-1)
    for at in alike.nonzero()[:, 0].tolist():
        alike[max(0, at - AWAY) : at + AWAY + 1] = True
    return [int(((s[1:tokens] == s[: tokens - 1]).all(dim=-1) & ~alike).sum()) for s in serving]
