"""On what acceptance depends, by the server's own words: CUDA graphs, load, cached prefixes, prompt length, first rounds.

Each compares two groups of log windows (or requests) and tells a loss only when it is large and beyond the 95 % interval of
the difference, neighbouring windows taken as alike. A log shows that two things go together, not that one causes the other:
all of these are warnings, and say what would decide. Public cases: a graph captured too early (sglang#22836), graph
ceilings (sglang#33483), data-parallel batches (sglang#16274), cached prefixes (vllm#41838, sglang#11231), drafters trained
on short texts (speculators#684), a transfer that loses the first round (sglang#10059).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eagle3dash.analysis.findings import log_fixes as fixes
from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.lengths import Length, loss
from eagle3dash.analysis.findings.log_windows import AT_LEAST, CHANGE, of_windows, windows_of
from eagle3dash.analysis.intervals import interval
from eagle3dash.records import Finding, Gap, Request

TIMES = 2.0  # the upper group's typical load or prompt must be that many times the lower's
CACHED, FRESH = 0.5, 0.1  # share of prompt tokens taken from the cache
REQUESTS = 24  # for prompt lengths: a third of them at each end
FIRST = 0.4  # first round's accepted tokens / those of later rounds
COUNTED = 20  # accepted tokens to be expected in first rounds: fewer can be missing by chance
EVERY = 20  # requests for the first round
LOADS = ("windows that state the running requests", "running requests")
PROMPTS = ("responses that state rounds and prompt tokens", "tokens")


def graph_loss(e: Evidence) -> list[Finding | Gap]:
    """Windows with CUDA graphs against windows without."""
    windows = windows_of(e)
    groups = [[w for w in windows if w.extra.get("cuda_graph") is on] for on in (True, False)]
    if min(map(len, groups)) < AT_LEAST:
        told = f"(here {len(groups[0])} with and {len(groups[1])} without; serve once with them off)"
        return [Gap("graph-loss", f"add an SGLang log: {AT_LEAST} windows or more with CUDA graphs and without {told}")]
    with_graphs, without = of_windows(groups[0], "with CUDA graphs"), of_windows(groups[1], "without CUDA graphs")
    pair = (without, with_graphs) if without.value >= with_graphs.value else (with_graphs, without)
    return _told("graph-loss", "Acceptance differs with CUDA graphs", pair, fixes.GRAPHS)


def load_loss(e: Evidence) -> list[Finding | Gap]:
    """Windows with many running requests against windows with few."""
    windows = [w for w in windows_of(e) if w.running]
    groups = _ends(windows, lambda w: w.running)
    if groups is None:
        return [
            Gap("load-loss", f"add a log under low and under high load: {_spread(windows, lambda w: w.running, LOADS)}")
        ]
    names = [f"at up to {max(w.running for w in groups[0])} running", f"at {min(w.running for w in groups[1])} or more"]
    pair = of_windows(groups[0], names[0]), of_windows(groups[1], names[1])
    return _told("load-loss", "Acceptance falls with load", pair, fixes.LOAD)


def cache_loss(e: Evidence) -> list[Finding | Gap]:
    """Windows after prompts from the cache against windows after new prompts."""
    windows = [w for w in windows_of(e) if w.extra.get("cached_share") is not None]
    fresh = [w for w in windows if w.extra["cached_share"] <= FRESH]
    cached = [w for w in windows if w.extra["cached_share"] >= CACHED]
    if min(len(fresh), len(cached)) < AT_LEAST:
        needs = f"add an SGLang log: {AT_LEAST} windows or more after cached and after new prompts, by its prefill lines"
        return [Gap("cache-loss", f"{needs} (here {len(cached)} and {len(fresh)})")]
    pair = of_windows(fresh, "after new prompts"), of_windows(cached, "after cached prompts")
    return _told("cache-loss", "Acceptance is lower after cached prompts", pair, fixes.CACHE)


def length_loss(e: Evidence) -> list[Finding | Gap]:
    """Requests with long prompts against requests with short ones."""
    requests = [r for log in e.log_records for r in log.requests if r.accepted and r.prompt_tokens]
    groups = _ends(requests, lambda r: r.prompt_tokens, REQUESTS)
    if groups is None:
        needs = _spread(requests, lambda r: r.prompt_tokens, PROMPTS, REQUESTS)
        return [Gap("length-loss", f"add responses to short and to long prompts: {needs}")]
    names = [
        f"with prompts of up to {max(r.prompt_tokens for r in groups[0])} tokens",
        f"with {min(r.prompt_tokens for r in groups[1])} or more",
    ]
    pair = _of_requests(groups[0], names[0]), _of_requests(groups[1], names[1])
    fields = {f.path: f.value for f in (e.spec_of.fields if e.spec_of else ()) if "max_position" in f.path}
    return _told("length-loss", "Acceptance falls with the length of the prompt", pair, fixes.PROMPTS, fields)


def first_round_loss(e: Evidence) -> list[Finding | Gap]:
    """The first round of each request against its later ones."""
    logs = [log for log in e.log_records if "histogram" not in log.definitions.get("rounds", "")]
    requests = [r for log in logs for r in log.requests if len(r.accepted) > 1]
    if len(requests) < EVERY:
        needs = f"add responses with their rounds in order (vLLM: detailed per-request metrics): {EVERY} or more"
        return [Gap("first-round-loss", f"{needs} (here {len(requests)})")]
    first = _pooled([(r.accepted[0], 1) for r in requests], "in the first round of a request")
    later = _pooled([(sum(r.accepted[1:]), len(r.accepted) - 1) for r in requests], "in later rounds")
    expected = (later.value - 1.0) * len(requests)
    if expected < COUNTED:
        needs = f"add more responses: the first rounds of these {len(requests)} should hold {expected:.0f} accepted tokens"
        return [Gap("first-round-loss", f"{needs}, and fewer than {COUNTED} can be missing by chance")]
    if first.value - 1.0 >= FIRST * (later.value - 1.0):
        return []
    return _told("first-round-loss", "The first round of a request accepts far less", (later, first), fixes.FIRST_ROUND)


def _told(
    identity: str, title: str, pair: tuple[Length, Length], fix: str, more: dict[str, Any] | None = None
) -> list[Finding | Gap]:
    found = loss(*pair, least=CHANGE)
    if found is None or not found.shown:
        return []
    before, after = pair
    told = f"{title}: {after.value:.2f} {after.source}, {before.value:.2f} {before.source}"
    evidence = {"lower": after.told(), "higher": before.told(), **(more or {})}
    return [Finding(identity, "warning", told, evidence, fix)]


def _ends(
    items: Sequence[Any], size: Callable[[Any], float], least: int = 3 * AT_LEAST
) -> tuple[list[Any], list[Any]] | None:
    """The third with the smallest and the third with the largest `size`, in their own order; None where they are alike, or
    fewer than `least`. Equal sizes are never put into both thirds."""
    if len(items) < least:
        return None
    sizes = np.array([size(item) for item in items], dtype=float)
    low, high = np.quantile(sizes, (1 / 3, 2 / 3))
    if high < TIMES * low or low >= high:
        return None
    lower, upper = ([i for i, in_it in zip(items, which, strict=True) if in_it] for which in (sizes <= low, sizes >= high))
    return (lower, upper) if min(len(lower), len(upper)) >= AT_LEAST else None


def _spread(items: Sequence[Any], size: Callable[[Any], float], words: tuple[str, str], least: int = 3 * AT_LEAST) -> str:
    """Why `_ends` cannot compare: too few of them, or too much alike. words: what states the size, the size's unit."""
    stating, unit = words
    if len(items) < least:
        return f"{least} or more {stating} (here {len(items)})"
    low, high = np.quantile([size(item) for item in items], (1 / 3, 2 / 3))
    return f"of the {len(items)} here a third has up to {low:.0f}, a third {high:.0f} or more {unit}: too much alike"


def _of_requests(requests: Sequence[Request], name: str) -> Length:
    return _pooled([(sum(r.accepted), len(r.accepted)) for r in requests], name)


def _pooled(counts: Sequence[tuple[int, int]], name: str) -> Length:
    """(accepted, rounds) of each request, a request being a cluster."""
    table = np.array([(i, accepted, rounds) for i, (accepted, rounds) in enumerate(counts)], dtype=float)  # [n, 3]
    found = interval(table, "rounds", "requests")
    return Length(1.0 + found.mean, 1.0 + found.low, 1.0 + found.high, len(counts), "requests", name)
