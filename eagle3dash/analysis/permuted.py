"""Channels of a state in another order: equal blocks (shards concatenated wrongly), or any order at all.

a [R, Ht] and b [R, Ht] are served and training rows of norm 1. Blocks are told by their cosines; single channels by how
they go along over the rows, which noise and a scale leave as it is.
"""

from __future__ import annotations

import torch

COUNTS = (96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2)  # blocks: the finest that divides the width holds the coarser ones
SAME_BLOCK = 0.9  # cosine of two blocks that are the same one
QUANTILE = 0.10  # of the blocks: those that must be the same
ROWS, MOST_ROWS = 64, 512  # by which single channels are told
ALIKE = 0.5  # median correlation of channels that are the same, noise and all
TINY = 1e-30


def block_order(a: torch.Tensor, b: torch.Tensor) -> tuple[list[int], float] | None:
    """(where each block of a stands in b, lowest cosine), if a is a reordering of b and not b itself."""
    count = next((c for c in COUNTS if a.shape[-1] % c == 0), 1)
    left, right = (x.unflatten(-1, (count, -1)) for x in (a, b))  # [R, blocks, Ht / blocks]
    cross = torch.einsum("nid,njd->ij", left, right)
    own = [x.square().sum((0, 2)) for x in (left, right)]
    cosine = cross / (own[0][:, None] * own[1][None, :]).sqrt().clamp_min(TINY)
    best, order = cosine.max(dim=1)
    names = order.tolist()
    if float(best.quantile(QUANTILE)) < SAME_BLOCK or sorted(names) != list(range(count)) or names == sorted(names):
        return None
    return names, float(best.min())


def channel_order(a: torch.Tensor, b: torch.Tensor) -> tuple[list[int], float] | None:
    """The same for single channels, by their correlation over the rows."""
    if len(a) < ROWS:
        return None
    left, right = (_standard(x[:: max(1, len(x) // MOST_ROWS)]) for x in (a, b))  # [R, Ht]
    best, order = (left.T @ right).max(dim=1)  # [Ht, Ht] over the training channels
    names = order.tolist()
    if float(best.median()) < ALIKE or sorted(names) != list(range(len(names))) or names == sorted(names):
        return None
    return names, float(best.min())


def _standard(x: torch.Tensor) -> torch.Tensor:
    """Each channel with mean 0 and norm 1 over the rows."""
    x = x - x.mean(0)
    return x / x.norm(dim=0).clamp_min(TINY)


def coarsest(order: list[int]) -> list[int]:
    """The same order with as few blocks as can say it."""
    for size in range(len(order) // 2, 0, -1):
        if len(order) % size == 0:
            heads = order[::size]
            if all(h % size == 0 for h in heads) and order == [h + i for h in heads for i in range(size)]:
                return [h // size for h in heads]
    return order


def pattern(order: list[int]) -> str:
    """The order in words: "9 blocks", "rolled by 64 channels", "reversed", "interleaved by 2", or "no simple order"."""
    n = len(order)
    if order == [(i + order[0]) % n for i in range(n)]:
        return f"rolled by {order[0]} channels"
    if order == list(range(n))[::-1]:
        return "reversed"
    for by in range(2, 65):
        if n % by == 0 and order in ([i for start in range(by) for i in range(start, n, by)], _woven(n, by)):
            return f"interleaved by {by}"
    blocks = len(coarsest(order))
    return f"{blocks} blocks" if blocks <= COUNTS[0] else "no simple order"


def _woven(n: int, by: int) -> list[int]:
    return [at * (n // by) + i for i in range(n // by) for at in range(by)]
