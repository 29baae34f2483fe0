"""What the server's logs show by themselves. A log alone names no cause: these are symptoms, or notes on how to read it.

Signatures from public cases: an accept length of exactly 1 (EAGLE for EAGLE3), just above 1 (dead), of exactly K+1 for
minutes (loops, NaN), falling with uptime, some data-parallel ranks lower, two definitions of SGLang's accept rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eagle3dash.analysis.findings import fixes
from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.lengths import Length, loss
from eagle3dash.analysis.intervals import Interval, interval
from eagle3dash.analysis.served import TENSOR_RANK, one_tensor_rank
from eagle3dash.records import Finding, Gap, Window

DEAD = 1.1  # accept length: at or below, next to nothing is accepted
ENOUGH = 50  # rounds
WINDOWS = 12  # for a trend; a third of them at each end
RANK_WINDOWS = 5
CHANGE = 0.15  # share of the accepted draft tokens
FULL = 0.02  # of K: how near to all


def dead_acceptance(e: Evidence) -> list[Finding | Gap]:
    """Next to nothing is accepted."""
    served = e.served
    if served["accept_length"] > DEAD or _pinned(served) or (served["rounds"] or ENOUGH) < ENOUGH:
        return []
    title = f"Next to nothing is accepted: accept length {served['accept_length']:.2f} (bonus token included)"
    return [Finding("dead-acceptance", "error", title, _told(served), fixes.DEAD)]


def pinned_acceptance(e: Evidence) -> list[Finding | Gap]:
    """Not one drafted token was accepted."""
    if not _pinned(e.served):
        return []
    title = "Not one drafted token was accepted: accept length is exactly 1"
    return [Finding("pinned-acceptance", "error", title, _told(e.served), fixes.PINNED)]


def too_good_acceptance(e: Evidence) -> list[Finding | Gap]:
    """Everything is accepted, in all or in many windows."""
    served, steps = e.served, e.served["steps"]
    if not steps:
        return []
    full = (1.0 - FULL) * steps + 1.0
    windows = _windows(e)
    many = [w for w in windows if w.accept_length >= full]
    whole = served["accept_length"] >= full and (served["rounds"] or ENOUGH) >= ENOUGH
    if not whole and (len(many) < RANK_WINDOWS or len(many) < 0.2 * len(windows)):
        return []
    title = f"Acceptance is too good: {len(many)} of {len(windows)} log windows accept every drafted token"
    if whole:
        title = f"Acceptance is too good: accept length {served['accept_length']:.2f} of at most {steps + 1}"
    return [Finding("too-good-acceptance", "warning", title, _told(served), fixes.TOO_GOOD)]


def acceptance_trend(e: Evidence) -> list[Finding | Gap]:
    """Falls while the server runs."""
    windows = _windows(e)
    if len(windows) < WINDOWS:
        return []
    third = len(windows) // 3
    first, last = _length(windows[:third], "first third"), _length(windows[-third:], "last third")
    found = loss(first, last, least=CHANGE)
    if found is None or not found.shown:
        return []
    title = f"Acceptance falls as the server runs: {first.value:.2f} in the log's first third, {last.value:.2f} in its last"
    return [Finding("acceptance-trend", "warning", title, {"first": first.told(), "last": last.told()}, fixes.TREND)]


def ranks_differ(e: Evidence) -> list[Finding | Gap]:
    """Data-parallel ranks or engines that accept less than the others, or that were loaded differently."""
    told = [w["fact"] for log in e.log_records for w in log.settings.get("warnings", ()) if w["id"] == "ranks-disagree"]
    if told:
        title = f"Ranks were loaded differently: {told[0]}"
        return [Finding("ranks-differ", "warning", title, {"warnings": told}, fixes.RANKS)]
    groups: dict[str, list[Window]] = {}
    for window in _windows(e):
        groups.setdefault(TENSOR_RANK.sub("", window.rank or "").strip(), []).append(window)
    lengths = {name: _length(group, name) for name, group in groups.items() if len(group) >= RANK_WINDOWS}
    if len(lengths) < 2:
        return []
    best, worst = (pick(lengths, key=lambda name: lengths[name].value) for pick in (max, min))
    found = loss(lengths[best], lengths[worst], least=CHANGE)
    if not found.shown:
        return []
    title = f"Rank {worst} accepts less than rank {best}: {lengths[worst].value:.2f} against {lengths[best].value:.2f}"
    return [Finding("ranks-differ", "warning", title, {name: found.told() for name, found in lengths.items()}, fixes.RANKS)]


def metric_definition(e: Evidence) -> list[Finding | Gap]:
    """A number of this log means something else than the same words elsewhere."""
    told = {}
    for log in e.log_records:
        rate, length = log.definitions.get("accept_rate", ""), log.definitions.get("accept_length", "")
        if rate.startswith("accept_len / num_draft_tokens") or rate == "mixed":
            told["accept_rate"] = f"this SGLang's accept rate is {rate}; from 0.5.11 it is accepted / drafted"
        if "without the bonus" in length:
            told["accept_length"] = f"mean acceptance length is {length}"
    if not told:
        return []
    title = f"Read this log with care: {next(iter(told.values()))}"
    fix = "Nothing in the server. Numbers here are converted: accept length with the bonus, rate = accepted / drafted."
    return [Finding("metric-definition", "info", title, {"definitions": told}, fix)]


def speed_not_acceptance(e: Evidence) -> list[Finding | Gap]:
    """Acceptance is what it is, but decoding ran without CUDA graphs for a good part."""
    windows = [w for w in _windows(e) if isinstance(w.extra.get("cuda_graph"), bool)]
    slow = [w for w in windows if not w.extra["cuda_graph"]]
    if len(windows) < RANK_WINDOWS or len(slow) < 0.2 * len(windows):
        return []
    title = f"{len(slow)} of {len(windows)} log windows ran without CUDA graphs: slow, whatever is accepted"
    fix = "SGLang: raise --cuda-graph-max-bs above the running requests of these windows, or remove --disable-cuda-graph."
    running = [w.running for w in slow if w.running is not None]
    evidence = {"windows": len(windows), "without": len(slow), "most_running": max(running, default=None)}
    return [Finding("speed-not-acceptance", "info", title, evidence, fix)]


def _pinned(served: dict[str, Any]) -> bool:
    rounds = served["rounds"]
    if rounds is None:
        return served["accept_length"] < 1.0005
    return rounds >= ENOUGH and (served["accept_length"] - 1.0) * rounds < 0.5


def _told(served: dict[str, Any]) -> dict[str, Any]:
    return {key: served[key] for key in ("accept_length", "low", "high", "rounds", "survival", "steps", "label", "engine")}


def _windows(e: Evidence) -> list[Window]:
    """Log lines in order, one tensor-parallel rank each, that say an accept length."""
    lines = [w for log in e.log_records if not log.requests for w in log.windows]
    return one_tensor_rank([w for w in lines if w.accept_length is not None and not w.cumulative and not w.warmup])


def _length(windows: Sequence[Window], name: str) -> Length:
    counted = all(w.rounds for w in windows)
    weights = np.array([float(w.rounds) if counted else 1.0 for w in windows])
    lengths = np.array([w.accept_length for w in windows])
    found: Interval = interval(np.column_stack([np.arange(len(windows)), (lengths - 1.0) * weights, weights]))
    return Length(1.0 + found.mean, 1.0 + found.low, 1.0 + found.high, len(windows), "windows", name)
