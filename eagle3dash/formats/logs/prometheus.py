"""Metrics endpoints as text: counters and gauges of vLLM, SGLang and llama.cpp; two snapshots give what lies between.

Snapshots may be one file each, or follow each other in one file. A counter that shrinks is a restart.
Facts: the Prometheus text format; vllm/v1/spec_decode/metrics.py; sglang metrics_collector.py; llama.cpp tools/server.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eagle3dash.formats.logs.collect import Found, one_tensor_rank
from eagle3dash.formats.logs.lines import Tally, lines, number
from eagle3dash.formats.logs.rates import NEW, OLD, Rates
from eagle3dash.formats.logs.startup import value as value_of
from eagle3dash.records import Progress, Window

MARKS = ("vllm:spec_decode", "sglang:spec_", "vllm:num_requests_running", "sglang:num_running", "sglang:gen_throughput")
MARKS += ("vllm_spec_decode", "sglang_spec_", "vllm_num_requests_running", "sglang_num_running", "llamacpp_")
MARKS += ("vllm:cache_config_info", "llamacpp:", "process_start_time_seconds", "vllm:generation_tokens", "sglang:num_queue")
OWNER = re.compile(r"^(vllm|sglang|llamacpp)_")  # some collectors replace the colon
SAMPLE = re.compile(r"\s*([A-Za-z_:][\w:]{0,120})(?:\{([^}]{0,8000})\})?\s{1,4}(\S{1,40})")
PAIR = re.compile(r'(\w{1,60})="((?:[^"\\]|\\.){0,300})"')
COUNTS = {
    "vllm:spec_decode_num_drafts": "rounds",
    "vllm:spec_decode_num_draft_tokens": "drafted",
    "vllm:spec_decode_num_accepted_tokens": "accepted",
    "sglang:spec_verify_calls": "rounds",
    "llamacpp:n_drafted": "drafted",
    "llamacpp:n_accepted": "accepted",
}
GAUGES = {
    "vllm:num_requests_running": "running",
    "sglang:num_running_reqs": "running",
    "sglang:gen_throughput": "throughput",
    "sglang:spec_accept_length": "accept_length",
    "sglang:spec_accept_rate": "accept_rate",
    "sglang:spec_num_steps": "num_steps",
    "sglang:spec_num_draft_tokens": "num_draft_tokens",
}
PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos"
KEPT = ("model_name", "cache_dtype", "enable_prefix_caching", "block_size")


@dataclass
class Series:
    """What one engine or rank said in one snapshot."""

    counts: dict[str, int] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)
    line: int = 0


Key = tuple[str | None, str | None]  # model, engine or rank
Snapshot = dict[Key, Series]


def read(paths: Sequence[Path], found: Found, tally: Tally, progress: Progress) -> None:
    """All snapshots of all files -> windows: differences of neighbours, or the totals where there is only one."""
    found.kind = "prometheus"
    shots = [shot for path in paths for shot in _snapshots(path, found, tally, progress)]
    servers = _servers(shots)
    several = len({model for shot in shots for model, _ in shot}) > 1
    for server in servers:
        if len(server) == 1:
            _windows({}, server[0], several, found)
        for before, after in zip(server, server[1:], strict=False):
            _windows(before, after, several, found)
    if len(servers) > 1:
        found.problem(
            f"Metrics of {len(servers)} servers (other model_name or engine); they were not subtracted from each other. "
            "Import each server's by themselves."
        )
    found.server.kept, _ = one_tensor_rank(found.server.kept)
    found.definitions |= {
        "accept_length": "1 + accepted / rounds, bonus counted",
        "acceptance_rate": "accepted / drafted tokens",
    }
    found.definitions["survival"] = "unconditional: accepted at position i / rounds"
    if not found.server.accepting:
        found.problem("No counters of speculative decoding here: was it switched on, and had the server answered anything?")
    if any(window.cumulative for window in found.server.kept) and len(shots) == len(servers):
        found.infer("window", "totals since the server started", "one snapshot; an earlier one would be subtracted")


def _servers(shots: list[Snapshot]) -> list[list[Snapshot]]:
    """Snapshots that have a series in common are of one server; in the order of their counts."""
    servers: list[list[Snapshot]] = []
    for shot in shots:
        same = [server for server in servers if any(shot.keys() & other.keys() for other in server)]
        servers = [server for server in servers if server not in same] + [[*sum(same, []), shot]]
    return [sorted(server, key=_size) for server in servers]


def _size(shot: Snapshot) -> int:
    return sum(sum(series.counts.values()) for series in shot.values())


def _snapshots(path: Path, found: Found, tally: Tally, progress: Progress) -> list[Snapshot]:
    shots: list[Snapshot] = [{}]
    seen: set[tuple] = set()
    own = Tally()
    for line in lines(path, [mark.encode() for mark in MARKS], own, progress):
        match = SAMPLE.match(line.text)
        if not match:
            continue
        name, value = match.group(1), number(match.group(3))
        if (name, match.group(2)) in seen and len(shots) < 10_000:
            seen.clear()
            shots.append({})
        seen.add((name, match.group(2)))
        _sample(name, dict(PAIR.findall(match.group(2) or "")), value, line.number, shots[-1], found)
    tally.lines, tally.long = tally.lines + own.lines, tally.long + own.long
    return [shot for shot in shots if shot] or shots[:1]


def _sample(name: str, labels: dict[str, str], value: float | None, line: int, shot: Snapshot, found: Found) -> None:
    if name.endswith("_created") or labels.get("engine_type") == "draft":
        return
    base = OWNER.sub(r"\1:", name.removesuffix("_total"))
    found.engine = found.engine or {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp"}.get(base.split(":")[0])
    for key in KEPT:
        if labels.get(key) not in (None, "", "None"):
            found.set({"model_name": "served_model", "cache_dtype": "kv_cache_dtype"}.get(key, key), value_of(labels[key]))
    if base not in COUNTS and base not in GAUGES and base != PER_POSITION:
        return
    if value is None or value < 0:
        found.problem(f"line {line}: {base} has no usable value; left out.")
        return
    series = shot.setdefault((labels.get("model_name"), _rank(labels)), Series(line=line))
    if base == PER_POSITION and labels.get("position", "").isdigit():
        place = int(labels["position"])
        series.positions[place] = series.positions.get(place, 0) + round(value)
    elif base in COUNTS:
        series.counts[COUNTS[base]] = series.counts.get(COUNTS[base], 0) + round(value)
    elif base in GAUGES:
        series.gauges[GAUGES[base]] = value
        if GAUGES[base] in ("num_steps", "num_draft_tokens") and value:
            found.set(GAUGES[base], round(value))


def _rank(labels: dict[str, str]) -> str | None:
    if "engine" in labels:
        return f"Engine {labels['engine']:0>3}"
    tags = [f"{key[:2].upper()}{labels[key]}" for key in ("dp_rank", "pp_rank", "tp_rank") if labels.get(key)]
    return " ".join(tags) or None


def _windows(before: Snapshot, after: Snapshot, several: bool, found: Found) -> None:
    restarted = any(_shrunk(before[key], series) for key, series in after.items() if key in before)
    if restarted:
        found.problem(
            "A counter is smaller in the later snapshot: the server restarted in between, or these are two servers. "
            "Nothing was subtracted; the later totals are used."
        )
    for (model, rank), series in sorted(after.items(), key=lambda item: item[1].line):
        if series.counts or "accept_length" in series.gauges:
            start = Series() if restarted else before.get((model, rank), Series())
            name = " ".join(part for part in (model, rank) if part) if several else rank
            found.server.add(_window(name, start, series, restarted or not before, found))


def _shrunk(before: Series, after: Series) -> bool:
    return any(after.counts.get(name, 0) < count for name, count in before.counts.items())


def _window(rank: str | None, before: Series, after: Series, cumulative: bool, found: Found) -> Window:
    counts = {name: value - before.counts.get(name, 0) for name, value in after.counts.items()}
    rounds, accepted, drafted = (counts.get(name) for name in ("rounds", "accepted", "drafted"))
    steps = max(after.positions, default=-1) + 1 or None
    survival = None
    if rounds and steps:
        survival = tuple((after.positions.get(i, 0) - before.positions.get(i, 0)) / rounds for i in range(steps))
    if (
        rounds
        and drafted
        and steps
        and drafted % rounds == 0
        and 0 < drafted // rounds < steps
        and not any(survival[drafted // rounds :])
    ):
        steps = drafted // rounds  # padded with positions that no round drafts
        survival = survival[:steps]
    if survival and accepted is not None and sum(survival) * rounds != 0 and abs(sum(survival) * rounds - accepted) > 0.5:
        found.problem(
            f"inconsistent: positions add up to {sum(survival) * rounds:.0f} accepted tokens, the total says {accepted}."
        )
    found.steps = found.steps or steps
    length = 1 + accepted / rounds if rounds and accepted is not None else None
    rate = accepted / drafted if accepted is not None and drafted else None
    extra = {}
    if length is None and "accept_length" in after.gauges:
        length, rate, extra = _gauges(after, found)
        cumulative = False  # a gauge speaks of the last interval
    running = after.gauges.get("running")
    return Window(
        after.line, None, rank, length, rate, accepted, drafted, rounds, survival,
        None if running is None else round(running), after.gauges.get("throughput"), cumulative, extra=extra,
    )  # fmt: skip


def _gauges(series: Series, found: Found) -> tuple[float | None, float | None, dict]:
    """SGLang prints averages: length with the bonus; the rate under one of two definitions."""
    length, rate = series.gauges["accept_length"], series.gauges.get("accept_rate")
    if length < 1.0:
        return None, None, {}
    if rate is None or not 0.0 <= rate <= 1.0:
        return length, None, {}
    window = Window(0, accept_length=length, extra={"accept_rate": rate, "decimals": (4, 4)})
    rates = Rates()
    rates.see(window)
    rates.choose(found.settings.get("num_draft_tokens"))
    found.definitions["accept_rate"] = rates.words
    if rates.definition in (OLD, NEW) and rates.size:
        found.steps = found.steps or rates.size - 1
    return length, rates.acceptance(window)[0], {"accept_rate": rate}
