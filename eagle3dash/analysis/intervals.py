"""95 % intervals of a mean over rows that are not independent. Knows sums and counts only.

Neighbouring rows of a text are alike (an easy stretch is easy for all its rows), so rows are grouped into clusters and the
mean is treated as a ratio of cluster sums (the linearised ratio estimator of survey sampling; Student's t with
clusters - 1 degrees of freedom). Clusters are contiguous blocks of BLOCK rows of one sequence; where whole sequences vary
more than their blocks do, sequences are the clusters. No random numbers: the same rows give the same interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

BLOCK = 32  # rows: several times the reach of one chain (K + 1), short enough to leave many blocks
FEW_CLUSTERS, FEW_ROWS = 8, 200  # fewer than either: the interval itself is uncertain, and says so


@dataclass(frozen=True)
class Interval:
    """Mean and its 95 % interval. `n`: rows or rounds behind it. `small`: too few to trust the width. None: no data."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    method: str
    small: bool

    def shifted(self, by: float, ceiling: float) -> Interval:
        """The same for mean + by, kept inside by .. ceiling (num_accepted -> accept length)."""
        if self.mean is None:
            return self
        low, high = max(by, self.low + by), min(ceiling, self.high + by)
        return Interval(self.mean + by, low, high, self.n, self.clusters, self.method, self.small)


def blocks(values: np.ndarray, which: np.ndarray, sequence: int = 0, size: int = BLOCK) -> np.ndarray:
    """values [S], which bool [S] -> float64 [n, 3]: (sequence, sum, count) of each contiguous block that has any."""
    index = np.arange(len(values)) // size  # [S]
    n = int(index[-1]) + 1 if len(values) else 0
    total = np.bincount(index, weights=np.where(which, values, 0), minlength=n)
    count = np.bincount(index, weights=which, minlength=n)
    kept = count > 0
    return np.column_stack([np.full(int(kept.sum()), float(sequence)), total[kept], count[kept]])  # [n, 3]


def by_sequence(table: np.ndarray) -> np.ndarray:
    """[n, 3] of blocks -> the same summed to one row a sequence."""
    names, index = np.unique(table[:, 0], return_inverse=True)
    total, count = (np.bincount(index, weights=table[:, column]) for column in (1, 2))
    return np.column_stack([names, total, count])


def interval(table: np.ndarray, unit: str = "rows", group: str = "sequences") -> Interval:
    """[n, 3] of (group, sum, count) -> interval of the pooled mean. `unit`, `group`: words for the method text."""
    table = np.asarray(table, dtype=np.float64).reshape(-1, 3)
    n = int(table[:, 2].sum())
    if n == 0:
        return Interval(None, None, None, 0, 0, "no data", True)
    grouped = by_sequence(table)
    block_half, sequence_half = _half_width(table), _half_width(grouped)
    wider = len(grouped) >= FEW_CLUSTERS and sequence_half > block_half
    clusters = len(grouped) if wider else len(table)
    kind = group if wider else f"blocks of {BLOCK} {unit}"
    mean, half = table[:, 1].sum() / n, sequence_half if wider else block_half
    # one more right token among all rows is always possible: an interval of width 0 would claim certainty
    half = max(half, 1.0 / n)
    small = clusters < FEW_CLUSTERS or n < FEW_ROWS
    method = f"95 %, {clusters} {kind} as clusters, ratio estimator, Student t"
    return Interval(float(mean), float(mean - half), float(mean + half), n, clusters, method, small)


def independent(mean: float, variance: float, n: int, unit: str = "rounds") -> Interval:
    """Interval where only totals are known: every round taken as independent, so it is somewhat too narrow."""
    half = max(student(n - 1) * math.sqrt(variance / n), 1.0 / n) if n > 1 else math.inf
    return Interval(mean, mean - half, mean + half, n, n, f"95 %, {n} {unit} taken as independent", n < FEW_ROWS)


def _half_width(table: np.ndarray) -> float:
    n = len(table)
    if n < 2:
        return math.inf
    total, count = table[:, 1], table[:, 2]
    residual = total - total.sum() / count.sum() * count
    variance = n / (n - 1) * (residual**2).sum() / count.sum() ** 2
    return student(n - 1) * math.sqrt(variance)


def student(df: int) -> float:
    """97.5 % point of Student's t (Cornish-Fisher expansion; exact values below 4 degrees of freedom, where it is poor)."""
    if df < 4:
        return {1: 12.706, 2: 4.303, 3: 3.182}.get(df, math.inf)
    z = 1.959964
    terms = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + sum(term / df ** (power + 1) for power, term in enumerate(terms))
