"""The windows of a run's logs as accept lengths with intervals, for the checks that compare groups of them.

Neighbouring windows are alike (the same requests run on), so blocks of them are the clusters where that widens an interval.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.lengths import Length
from eagle3dash.analysis.intervals import interval
from eagle3dash.analysis.served import is_metrics, one_tensor_rank
from eagle3dash.records import Window

AT_LEAST = 5  # windows of a group
CHANGE = 0.15  # share of the accepted draft tokens
NEIGHBOURS = 4  # windows that are taken as one


def windows_of(e: Evidence) -> list[Window]:
    """Log lines in order, one tensor-parallel rank each, that say an accept length. Metrics and responses have none."""
    lines = [w for log in e.log_records if not log.requests and not is_metrics(log) for w in log.windows]
    return one_tensor_rank([w for w in lines if w.accept_length is not None and not w.cumulative and not w.warmup])


def of_windows(windows: Sequence[Window], name: str) -> Length:
    """Pooled by rounds where all windows know them, else equally."""
    counted = all(w.rounds for w in windows)
    weights = np.array([float(w.rounds) if counted else 1.0 for w in windows])
    lengths = np.array([w.accept_length for w in windows])
    block = np.arange(len(windows)) // NEIGHBOURS
    found = interval(np.column_stack([block, (lengths - 1.0) * weights, weights]))  # [n, 3]
    return Length(1.0 + found.mean, 1.0 + found.low, 1.0 + found.high, len(windows), "windows", name)
