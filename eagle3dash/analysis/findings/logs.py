"""What the server's logs show by themselves. A log alone names no cause: these are symptoms, or notes on how to read it.

Signatures from public cases: an accept length of exactly 1 (EAGLE for EAGLE3), just above 1 (dead), of exactly K+1 for
minutes (loops, NaN), falling with uptime, some data-parallel ranks lower, two definitions of SGLang's accept rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eagle3dash.analysis.findings import fixes, log_fixes
from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.lengths import Loss, loss
from eagle3dash.analysis.findings.log_windows import AT_LEAST, CHANGE, of_windows, windows_of
from eagle3dash.analysis.served import TENSOR_RANK
from eagle3dash.records import Finding, Gap, Window

DEAD = 1.1  # accept length: at or below, next to nothing is accepted
ENOUGH = 50  # rounds
WINDOWS = 12  # for a trend; a third of them at each end
CONSTANT = 12  # windows of one and the same accept length
LOOP = 0.5  # share of an answer's runs of tokens that stood in it before
FULL = 0.02  # of K: how near to all


def dead_acceptance(e: Evidence) -> list[Finding | Gap]:
    """Next to nothing is accepted."""
    served = e.served
    if served["accept_length"] > DEAD or _pinned(served) or (served["rounds"] or ENOUGH) < ENOUGH:
        return []
    title = f"Next to nothing is accepted: accept length {served['accept_length']:.2f} (bonus token included)"
    return [Finding("dead-acceptance", "error", title, _told(served), fixes.DEAD)]


def pinned_acceptance(e: Evidence) -> list[Finding | Gap]:
    """Not one drafted token was accepted; or always the same number, as no traffic does."""
    told = _told(e.served)
    if _pinned(e.served):
        title = "Not one drafted token was accepted: accept length is exactly 1"
        return [Finding("pinned-acceptance", "error", title, told, fixes.PINNED)]
    simulated = e.served["settings"].get("simulate_acc_len")
    if simulated is not None:
        title = f"The server simulates acceptance (SIMULATE_ACC_LEN {simulated:g}): its numbers are not the drafter's"
        return [Finding("pinned-acceptance", "warning", title, told, log_fixes.SIMULATED)]
    lengths = [w.accept_length for w in windows_of(e)]
    if len(lengths) < CONSTANT or max(lengths) - min(lengths) > 0.0051 or not 1.005 < lengths[0] < _full(e.served):
        return []
    title = f"Accept length is {lengths[0]:.2f} in each of {len(lengths)} log windows: no real traffic is that even"
    return [Finding("pinned-acceptance", "warning", title, told, log_fixes.CONSTANT)]


def too_good_acceptance(e: Evidence) -> list[Finding | Gap]:
    """Everything is accepted, in all or in many windows; or the answers repeat themselves and so are accepted."""
    served, steps = e.served, e.served["steps"]
    if not steps:
        return [Gap("too-good-acceptance", "add a log that states the number of drafted tokens, or set K for the run")]
    windows = windows_of(e)
    many = [w for w in windows if w.accept_length >= _full(served)]
    whole = served["accept_length"] >= _full(served) and (served["rounds"] or ENOUGH) >= ENOUGH
    loops, gain = _loops(e)
    evidence = _told(served) | loops
    if whole:
        title = f"Acceptance is too good: accept length {served['accept_length']:.2f} of at most {steps + 1}"
    elif len(many) >= AT_LEAST and len(many) >= 0.2 * len(windows):
        title = f"Acceptance is too good: {len(many)} of {len(windows)} log windows accept every drafted token"
    elif gain is not None and gain.shown:
        title = (
            f"Acceptance owes much to answers that repeat themselves: {gain.before.value:.2f} in {gain.before.n} of them, "
            f"{gain.after.value:.2f} in the other {gain.after.n}"
        )
        evidence |= {"repeating": gain.before.told(), "others": gain.after.told()}
        return [Finding("too-good-acceptance", "info", title, evidence, log_fixes.REPEATS)]
    else:
        return []
    return [Finding("too-good-acceptance", "warning", title, evidence, fixes.TOO_GOOD)]


def _loops(e: Evidence) -> tuple[dict[str, Any], Loss | None]:
    """Answers whose token ids repeat themselves (see `formats.logs`: repeated), and what they accept beyond the others."""
    known = [w for log in e.log_records for w in log.windows if w.extra.get("repeated") is not None and w.rounds]
    if not known:
        return {}, None
    loops = [w for w in known if w.extra["repeated"] >= LOOP]
    others = [w for w in known if w.extra["repeated"] < LOOP]
    gain = None
    if min(len(loops), len(others)) >= AT_LEAST:
        gain = loss(of_windows(loops, "repeating answers"), of_windows(others, "other answers"), least=CHANGE)
    return {"answers": len(known), "answers_that_repeat": len(loops)}, gain


def acceptance_trend(e: Evidence) -> list[Finding | Gap]:
    """Falls while the server runs."""
    windows = windows_of(e)
    if len(windows) < WINDOWS:
        return [Gap("acceptance-trend", f"add a longer log: {WINDOWS} windows or more over time (here {len(windows)})")]
    third = len(windows) // 3
    ends = windows[:third], windows[-third:]
    first, last = of_windows(ends[0], "first third"), of_windows(ends[1], "last third")
    found = loss(first, last, least=CHANGE)
    if found is None or not found.shown:
        return []
    title = f"Acceptance falls as the server runs: {first.value:.2f} in the log's first third, {last.value:.2f} in its last"
    evidence = {"first": first.told(), "last": last.told(), **_meanwhile(ends), **_break(windows)}
    return [Finding("acceptance-trend", "warning", title, evidence, fixes.TREND)]


def _meanwhile(ends: tuple[Sequence[Window], Sequence[Window]]) -> dict[str, Any]:
    """What else changed: mean running requests, and tokens held for each, first and last. A fall may be theirs."""
    readings = {
        "running_requests": lambda w: w.running,
        "tokens_held_a_request": lambda w: w.extra["tokens"] / w.running if w.running and w.extra.get("tokens") else None,
    }
    found = {}
    for name, read in readings.items():
        values = [[value for w in part if (value := read(w)) is not None] for part in ends]
        if all(values):
            found[name] = [sum(part) / len(part) for part in values]
    return found


def _break(windows: Sequence[Window]) -> dict[str, Any]:
    """Where the log splits best into two levels, with the share of the variance that the split explains."""
    lengths = [w.accept_length for w in windows]
    total, n = sum(lengths), len(lengths)
    spread = sum((value - total / n) ** 2 for value in lengths)
    best, at, left = 0.0, None, sum(lengths[: AT_LEAST - 1])
    for i in range(AT_LEAST, n - AT_LEAST + 1):
        left += lengths[i - 1]
        between = i * (left / i - total / n) ** 2 + (n - i) * ((total - left) / (n - i) - total / n) ** 2
        best, at = (between, i) if between > best else (best, at)
    if at is None or not spread:
        return {}
    return {"falls_at_line": windows[at].line, "falls_at": windows[at].time, "share_of_variance": best / spread}


def ranks_differ(e: Evidence) -> list[Finding | Gap]:
    """Data-parallel ranks or engines that accept less than the others, or that were loaded differently."""
    told = [w["fact"] for log in e.log_records for w in log.settings.get("warnings", ()) if w["id"] == "ranks-disagree"]
    if told:
        title = f"Ranks were loaded differently: {told[0]}"
        return [Finding("ranks-differ", "warning", title, {"warnings": told}, fixes.RANKS)]
    groups: dict[str, list[Window]] = {}
    for window in windows_of(e):
        groups.setdefault(TENSOR_RANK.sub("", window.rank or "").strip(), []).append(window)
    lengths = {name: of_windows(group, name) for name, group in groups.items() if len(group) >= AT_LEAST}
    if len(lengths) < 2:
        needs = f"add a log of several data-parallel ranks, {AT_LEAST} windows or more of each (here {len(lengths)} such)"
        return [Gap("ranks-differ", needs)]
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
        told |= _changes_inside(log.windows)
    sizes = {log.steps for log in e.log_records if log.steps}
    if len(sizes) > 1:
        told["steps"] = f"the logs draft {', '.join(map(str, sorted(sizes)))} tokens a round: their numbers do not compare"
    if not told:
        return []
    title = f"Read this log with care: {next(iter(told.values()))}"
    fix = "Nothing in the server. Numbers here are converted: accept length with the bonus, rate = accepted / drafted."
    return [Finding("metric-definition", "info", title, {"definitions": told}, fix)]


def _changes_inside(windows: Sequence[Window]) -> dict[str, str]:
    """The line at which SGLang's accept rate begins to mean something else: an update within the log."""
    named = [(w.line, w.extra["accept_rate_definition"]) for w in windows if w.extra.get("accept_rate_definition")]
    changes = [here for before, here in zip(named, named[1:], strict=False) if here[1] != before[1]]
    return {"changes": f"from line {changes[0][0]} on the accept rate is {changes[0][1]}"} if changes else {}


def speed_not_acceptance(e: Evidence) -> list[Finding | Gap]:
    """Acceptance is what it is, but decoding ran without CUDA graphs for a good part."""
    windows = [w for w in windows_of(e) if isinstance(w.extra.get("cuda_graph"), bool)]
    slow = [w for w in windows if not w.extra["cuda_graph"]]
    if len(windows) < AT_LEAST:
        needs = f"add an SGLang log: {AT_LEAST} windows or more that state the CUDA graph flag (here {len(windows)})"
        return [Gap("speed-not-acceptance", needs)]
    if len(slow) < 0.2 * len(windows):
        return []
    title = f"{len(slow)} of {len(windows)} log windows ran without CUDA graphs: slow, whatever is accepted"
    fix = "SGLang: raise --cuda-graph-max-bs above the running requests of these windows, or remove --disable-cuda-graph."
    most = {
        on: max((w.running for w in windows if w.extra["cuda_graph"] is on and w.running is not None), default=None)
        for on in (True, False)
    }
    evidence = {"windows": len(windows), "without": len(slow)}
    evidence |= {"most_running_with_graphs": most[True], "most_running_without": most[False]}
    return [Finding("speed-not-acceptance", "info", title, evidence, fix)]


def _full(served: dict[str, Any]) -> float:
    return (1.0 - FULL) * (served["steps"] or 1000) + 1.0


def _pinned(served: dict[str, Any]) -> bool:
    rounds = served["rounds"]
    if rounds is None:
        return served["accept_length"] < 1.0005
    return rounds >= ENOUGH and (served["accept_length"] - 1.0) * rounds < 0.5


def _told(served: dict[str, Any]) -> dict[str, Any]:
    return {key: served[key] for key in ("accept_length", "low", "high", "rounds", "survival", "steps", "label", "engine")}
