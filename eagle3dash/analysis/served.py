"""What the server really accepted, from its logs: one number with its source, the best source first.

1. requests: the accepted count of every round of every request (vLLM's detailed metrics, SGLang's histogram): the only
   source that gives the true distribution, so the only one with a histogram.
2. counters: totals of a metrics endpoint, between two snapshots where there are two, else since the server started.
3. windows: log lines, pooled by their rounds or drafted tokens; where a line has neither, by running requests, else
   equally.
Warm-up windows are left out; tensor-parallel ranks report the same rounds, so one of them is kept; data-parallel ranks and
engines report different rounds and are pooled. Facts: what vLLM and SGLang count, as in their metrics code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from eagle3dash.analysis.acceptance import accept_length, alpha, alpha_of, interval_of, ratio, survival
from eagle3dash.analysis.intervals import Interval, blocks, independent, interval
from eagle3dash.errors import BadInput
from eagle3dash.records import Log, Window

TENSOR_RANK = re.compile(r"\b(?:attn_)?TP\s*(\d+)\b", re.IGNORECASE)


def served(logs: Sequence[Log]) -> dict[str, Any] | None:
    """The served acceptance of a run, or None where no log says anything.

    Keys: accept_length (bonus counted), low, high, interval_method, small_sample, rounds, survival, alpha, histogram (None
    unless per-request rounds are known), steps (K), source ("requests" | "counters" | "windows"), label (a sentence),
    engine, version, settings, others (the same numbers from the other sources).
    """
    found = [answer for source in (_requests, _counters, _windows) if (answer := source(logs)) is not None]
    if not found:
        return None
    best = found[0]
    engine = next((log.engine for log in logs if log.engine), None)
    version = next((log.version for log in logs if log.version), None)
    settings = {key: value for log in logs for key, value in log.settings.items()}
    return best | {"engine": engine, "version": version, "settings": settings, "others": found[1:]}


def steps_of(logs: Sequence[Log]) -> int | None:
    """K: as a log states it, else the most positions or drafted tokens that any round shows."""
    stated = [log.steps for log in logs if log.steps]
    if stated:
        return stated[-1]
    seen = [len(w.survival) for log in logs for w in log.windows if w.survival]
    seen += [max(r.drafted) for log in logs for r in log.requests if r.drafted]
    return max(seen) if seen else None


def expected(settings: dict[str, Any], steps: int) -> dict[str, Any] | None:
    """The training run's own validation accuracy as accept length per row on K = steps; None where it isn't given.

    settings["expected"]: one number (taken as alpha of every step) or a list by step; settings["expected_kind"]:
    "cumulative" (each step and all before it right: survival) or "conditional" (right given that all before it were: alpha;
    the default). Percentages are understood. Raises BadInput for anything outside 0..1 (or 0..100).
    """
    given = settings.get("expected")
    if given is None or given == []:
        return None
    kind = str(settings.get("expected_kind") or "conditional").lower()
    one = not isinstance(given, (list, tuple))
    numbers = _fractions([given] if one else given)
    if kind not in ("conditional", "cumulative"):
        raise BadInput(f"expected accuracy of kind {kind!r}; it is conditional or cumulative.")
    if not one and kind == "cumulative" and any(b > a for a, b in zip(numbers, numbers[1:], strict=False)):
        raise BadInput(f"expected accuracy is {given!r}; cumulative numbers never rise. Are they conditional?")
    if not one and kind == "cumulative":
        numbers = [a or 0.0 for a in alpha_of(numbers)]
    known = len(numbers)
    alphas = (numbers + [numbers[-1]] * steps)[:steps]
    survived = [float(s) for s in np.cumprod(alphas)]
    return {
        "accept_length": 1.0 + sum(survived),
        "survival": survived,
        "alpha": alphas,
        "steps": steps,
        "kind": "one number" if one else kind,
        "label": _expected_label(given, one, kind, known, steps),
    }


def _expected_label(given: Any, one: bool, kind: str, known: int, steps: int) -> str:
    if one:
        return f"one validation accuracy ({given}), taken as the conditional acceptance of every step"
    text = f"validation accuracy by step ({kind})"
    return text if known >= steps else text + f"; steps {known}..{steps - 1} are taken to accept like step {known - 1}"


def _fractions(values: Sequence[Any]) -> list[float]:
    try:
        numbers = [float(v) for v in values]
    except (TypeError, ValueError):
        raise BadInput(f"expected accuracy is {values!r}; give one number, or a list of numbers, in 0..1.") from None
    if max(numbers) > 1.0:
        numbers = [n / 100.0 for n in numbers]
    if not all(0.0 <= n <= 1.0 for n in numbers):
        raise BadInput(f"expected accuracy is {values!r}; every number must lie in 0..1 (or 0..100 for per cent).")
    return numbers


# ---- sources -------------------------------------------------------------------------------------------------------


def _requests(logs: Sequence[Log]) -> dict[str, Any] | None:
    requests = [r for log in logs for r in log.requests if r.accepted]
    if not requests:
        return None
    steps = max(steps_of(logs) or 0, max(max(r.accepted) for r in requests))
    histogram = np.bincount(np.concatenate([r.accepted for r in requests]), minlength=steps + 1).tolist()
    table = [blocks(np.array(r.accepted), np.ones(len(r.accepted), bool), i) for i, r in enumerate(requests)]
    label = f"per-request rounds of {len(requests)} requests"
    width = interval(np.concatenate(table), "rounds", "requests").shifted(1.0, steps + 1.0)
    return _answer("requests", label, steps, accept_length(histogram), survival(histogram), sum(histogram), width) | {
        "alpha": alpha(histogram),
        "histogram": histogram,
        "full_rounds": sum(1 for r in requests for n in r.drafted if n == steps),
    }


def _counters(logs: Sequence[Log]) -> dict[str, Any] | None:
    """Totals of metrics endpoints. A difference already taken by the reader comes as one window that is not cumulative."""
    texts = [log for log in logs if is_metrics(log)]
    parts, since_start = [], False
    for log in texts:
        differences = [w for w in log.windows if not w.cumulative and not w.warmup]
        parts += differences or _between(log.windows)
        since_start |= not differences and len({w.rank for w in log.windows}) == len(log.windows)
    label = "counters since the server started" if since_start else "counters between two snapshots"
    return _pool("counters", label, parts, steps_of(logs))


def _windows(logs: Sequence[Log]) -> dict[str, Any] | None:
    # a log of requests has a window for each: no log line, and counted above
    lines = [w for log in logs if not is_metrics(log) and not log.requests for w in log.windows if not w.warmup]
    kept = one_tensor_rank([w for w in lines if not w.cumulative] or lines[-1:])
    return _pool("windows", f"{len(kept)} log windows, weighted by {_weight_name(kept)}", kept, steps_of(logs))


def is_metrics(log: Log) -> bool:
    """Snapshots of a metrics endpoint: totals, or their difference; no log lines."""
    return "prometheus" in log.format or "metrics" in log.format


def one_tensor_rank(windows: Sequence[Window]) -> list[Window]:
    """Windows of the lowest tensor-parallel rank of each group: the others report the same rounds once more."""
    lowest: dict[str, int] = {}
    tagged = []
    for window in windows:
        match = TENSOR_RANK.search(window.rank or "")
        rank = int(match.group(1)) if match else 0
        group = TENSOR_RANK.sub("", window.rank or "").strip()
        lowest[group] = min(rank, lowest.get(group, rank))
        tagged.append((window, group, rank))
    return [window for window, group, rank in tagged if rank == lowest[group]]


def _between(windows: Sequence[Window]) -> list[Window]:
    """Last minus first cumulative window of each rank; the last alone where there is only one."""
    ranks: dict[str | None, list[Window]] = {}
    for window in windows:
        ranks.setdefault(window.rank, []).append(window)
    return [_minus(group[-1], group[0]) if len(group) > 1 else group[0] for group in ranks.values()]


def _minus(last: Window, first: Window) -> Window:
    counts = {name: (getattr(first, name), getattr(last, name)) for name in ("accepted", "drafted", "rounds")}
    if any(a is None or b is None or b < a for a, b in counts.values()):
        return last  # a restart in between, or no counts: the last total stands alone
    accepted, drafted, rounds = (b - a for a, b in counts.values())
    survived = None
    if first.survival and last.survival and rounds:
        pairs = zip(first.survival, last.survival, strict=False)
        survived = tuple((b * last.rounds - a * first.rounds) / rounds for a, b in pairs)
    mean = ratio(accepted, rounds)
    length = None if mean is None else 1.0 + mean
    return Window(last.line, last.time, last.rank, length, ratio(accepted, drafted), accepted, drafted, rounds, survived)


# ---- pooling -------------------------------------------------------------------------------------------------------


def _weight_name(windows: Sequence[Window]) -> str:
    for name in ("rounds", "drafted", "running"):
        if windows and all(getattr(w, name) is not None for w in windows):
            return {"rounds": "rounds", "drafted": "drafted tokens", "running": "running requests"}[name]
    return "nothing (all equal)"


def _weights(windows: Sequence[Window]) -> np.ndarray:
    field = {"rounds": "rounds", "drafted tokens": "drafted", "running requests": "running"}.get(_weight_name(windows))
    return np.array([1.0 if field is None else float(getattr(w, field)) for w in windows])


def _pool(source: str, label: str, windows: Sequence[Window], steps: int | None) -> dict[str, Any] | None:
    windows = [w for w in windows if w.accept_length is not None]
    weights = _weights(windows)
    if not windows or not weights.sum():
        return None
    lengths = np.array([w.accept_length for w in windows])
    mean = float((weights * lengths).sum() / weights.sum())
    counted = [w.rounds if w.rounds is not None else _rounds(w, steps) for w in windows]
    rounds = None if None in counted else int(sum(counted))
    survived = _pooled_survival(windows, weights)
    if survived:  # the sum of survival carries the exact counts, a printed length is rounded
        exact = 1.0 + sum(survived)
        mean = exact if abs(exact - mean) < 0.02 else mean
    width = _pooled_interval(windows, weights, mean, survived, rounds, steps)
    return _answer(source, label, steps, mean, survived, rounds, width)


def _rounds(window: Window, steps: int | None) -> int | None:
    return round(window.drafted / steps) if window.drafted is not None and steps else None


def _pooled_survival(windows: Sequence[Window], weights: np.ndarray) -> list[float] | None:
    have = [(w.survival, weight) for w, weight in zip(windows, weights, strict=True) if w.survival]
    if len(have) != len(windows) or len({len(s) for s, _ in have}) != 1:
        return None
    table = np.array([s for s, _ in have])  # [windows, K]
    return [float(v) for v in (table * weights[:, None]).sum(axis=0) / weights.sum()]


def _pooled_interval(
    windows: Sequence[Window],
    weights: np.ndarray,
    mean: float,
    survived: list[float] | None,
    rounds: int | None,
    steps: int | None,
) -> Interval:
    ceiling = (steps or 1000) + 1.0
    if len(windows) >= 5:  # each window a cluster
        lengths = np.array([w.accept_length for w in windows])
        table = np.column_stack([np.arange(len(windows)), (lengths - 1.0) * weights, weights])
        found = interval(table).shifted(1.0, ceiling)
        method = f"95 %, {len(windows)} log windows as clusters, ratio estimator, Student t"
        return Interval(mean, found.low, found.high, rounds or 0, len(windows), method, len(windows) < 8)
    if survived and rounds:  # E[n^2] = sum of (2i+1) survival[i], so the variance needs no histogram
        square = sum((2 * i + 1) * s for i, s in enumerate(survived))
        variance = max(square - sum(survived) ** 2, 0.0)
        return independent(mean - 1.0, variance, rounds).shifted(1.0, ceiling)
    if len(windows) == 1 and rounds and steps:
        return interval_of(_widest(mean - 1.0, rounds, steps))
    return Interval(mean, None, None, rounds or 0, len(windows), "too few windows for an interval", True)


def _widest(mean: float, rounds: int, steps: int) -> list[int]:
    """The histogram with the largest variance that has this mean: all or nothing. For totals without positions."""
    full = round(mean * rounds / steps)
    return [rounds - full] + [0] * (steps - 1) + [full]


def _answer(
    source: str,
    label: str,
    steps: int | None,
    mean: float | None,
    survived: list[float] | None,
    rounds: int | None,
    width: Interval,
) -> dict[str, Any]:
    return {
        "accept_length": mean,
        "low": width.low,
        "high": width.high,
        "interval_method": width.method,
        "small_sample": width.small,
        "rounds": rounds,
        "survival": survived,
        "alpha": alpha_of(survived) if survived else None,
        "histogram": None,
        "steps": steps,
        "source": source,
        "label": label,
    }
