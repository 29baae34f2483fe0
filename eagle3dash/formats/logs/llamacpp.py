"""llama.cpp's server and its `speculative` example: slot timings, cumulative statistics, the summary block.

Drafts have varying length, so rate and length are not tied. Facts: ggml-org/llama.cpp tools/server/server-context.cpp,
common/speculative.cpp; #24536 (mean acceptance length), #2926 (summary block), #14104 (what counts as drafted).
"""

from __future__ import annotations

import re

from eagle3dash.formats.logs.collect import Found
from eagle3dash.formats.logs.lines import Line, fields, number, whole
from eagle3dash.records import Window

MARKS = (
    "draft acceptance",
    "#gen drafts",
    "eval time",
    "n_draft ",
    "n_predict",
    "n_drafted",
    "n_accept",
    "accept  ",
)
SLOT = re.compile(r"\bid {1,4}(\d{1,6}) \| task {1,4}(-?\d{1,12})")
ACCEPTANCE = re.compile(
    r"draft acceptance(?: rate)? = {0,4}([\d.]{1,20}|nan) \( {0,10}(\d{1,15}) accepted / {0,10}(\d{1,15}) generated\)"
)
MEAN = re.compile(r"mean acceptance length = {0,6}([\d.]{1,20})")
POSITIONS = re.compile(r"(?:acceptance rate per position|#acc rate/pos) = {0,4}\(([\d., ]{1,400})\)")
EVAL = re.compile(
    r"(?<!prompt )eval time = {0,10}[\d.]{1,20} ms / {0,10}(\d{1,12}) (?:tokens|runs)"
    r".{0,60}?([\d.]{1,20}) tokens per second"
)
CLOCK = re.compile(r"^(\d{1,4}\.\d\d\.\d\d\d\.\d\d\d)\b")
STATISTICS = re.compile(r"statistics\s{1,8}([\w-]{1,40}):")
CALLS = re.compile(r"#calls\(b,g,a\) = {0,6}(\d{1,15}) {1,8}(\d{1,15}) {1,8}(\d{1,15})")
SUMMARY = re.compile(r"^\s{0,8}(n_draft|n_predict|n_drafted|n_accept|accept)\s{0,12}= {0,6}([\d.]{1,20})(%?)")


def read(line: Line, found: Found) -> None:
    if "draft acceptance" in line.text:
        _slot(line, found)
    elif "#gen drafts" in line.text or "#acc tokens" in line.text:
        _statistics(line, found)
    elif "eval time" in line.text:
        _speed(line, found)
    elif match := SUMMARY.match(line.text):
        _summary(line, match.group(1), match.group(2), bool(match.group(3)), found)


def _where(line: Line) -> tuple[str | None, dict]:
    extra = {"time_outer": line.outer} if line.outer else {}
    if match := SLOT.search(line.text):
        extra |= {"slot": int(match.group(1)), "task": int(match.group(2))}
    clock = CLOCK.match(line.text)
    return clock.group(1) if clock else line.outer, extra


def _slot(line: Line, found: Found) -> None:
    match = ACCEPTANCE.search(line.text)
    if not match:
        return
    found.engine = found.engine or "llama.cpp"
    when, extra = _where(line)
    accepted, drafted = int(match.group(2)), int(match.group(3))
    mean = MEAN.search(line.text)
    length = number(mean.group(1)) if mean else None
    if length is not None and length < 1.0:
        found.problem(f"line {line.number}: mean acceptance length is {length:g}; expected 1 or more. Left out.")
        length = None
    survival = _positions(line.text)
    rate = number(match.group(1))
    if drafted and rate is not None and abs(accepted / drafted - rate) > 0.001:
        found.problem(
            f"line {line.number}: inconsistent: accepted / generated is {accepted / drafted:.4f}, the rate says {rate:g}."
        )
    rounds = _rounds(length, accepted, survival)
    if survival and length is not None and abs(1 + sum(survival) - length) > 0.02:
        found.problem(
            f"line {line.number}: inconsistent: 1 + sum of positions is {1 + sum(survival):.3f}, the mean says {length:g}."
        )
    speed, tokens = found.state.get("llama speed", {}).pop((extra.get("slot"), extra.get("task")), (None, None))
    extra |= {"tokens": tokens} if tokens is not None else {}
    extra["kind"] = "slot"
    found.server.add(
        Window(line.number, when, None, length, rate, accepted, drafted, rounds, survival, throughput=speed, extra=extra)
    )


def _rounds(length: float | None, accepted: int, survival: tuple[float, ...] | None) -> int | None:
    """Rounds from accepted / (length - 1): the whole number in reach of the rounding that the positions fit best."""
    if length is None or not accepted or length <= 1.0:
        return None
    low, high = accepted / (length - 1 + 0.0051), accepted / max(length - 1 - 0.0051, 1e-9)
    options = range(int(low) + 1, int(high) + 1)
    if len(options) == 1:
        return options[0]
    if not survival or not options or len(options) > 10_000:
        return None
    return min(options, key=lambda n: sum(abs(p * n - round(p * n)) for p in survival) / n**0.5)


def _positions(text: str) -> tuple[float, ...] | None:
    match = POSITIONS.search(text)
    values = [number(part) for part in match.group(1).split(",")] if match else []
    return tuple(values) if values and all(v is not None and 0 <= v <= 1 for v in values) else None


def _statistics(line: Line, found: Found) -> None:
    """Totals of one speculative method; the difference to its line before is the window."""
    found.engine = found.engine or "llama.cpp"
    labels = fields(line.text[max(line.text.find("#calls"), 0) :])
    when, extra = _where(line)
    counts = {name: whole(labels.get(f"#{name}")) for name in ("gen drafts", "acc drafts", "gen tokens", "acc tokens")}
    if counts["gen drafts"] is None or counts["acc tokens"] is None:
        return
    method = match.group(1) if (match := STATISTICS.search(line.text)) else "draft"
    found.set("method", method)
    totals = found.state.setdefault("llama totals", {})
    before = totals.get(method)
    totals[method] = counts
    grown = before is not None and all(b is None or (counts[n] is not None and counts[n] >= b) for n, b in before.items())
    if grown:
        counts = {n: None if v is None or before[n] is None else v - before[n] for n, v in counts.items()}
    drafts, accepted, drafted = counts["gen drafts"], counts["acc tokens"], counts["gen tokens"]
    if calls := CALLS.search(line.text):
        extra["generate_calls"] = int(calls.group(2))
    extra["kind"] = "statistics"
    length = 1 + accepted / drafts if drafts else None
    rate = accepted / drafted if drafted else None
    survival = _positions(line.text) if not grown else None
    found.server.add(
        Window(
            line.number, when, None, length, rate, accepted, drafted, drafts, survival, cumulative=not grown, extra=extra
        )
    )


def _speed(line: Line, found: Found) -> None:
    """A slot's `eval time`: its generation speed, kept for the acceptance line that follows; else a window of its own."""
    match = EVAL.search(line.text)
    if not match:
        return
    found.engine = found.engine or "llama.cpp"
    when, extra = _where(line)
    speed, tokens = number(match.group(2)), int(match.group(1))
    waiting = found.state.setdefault("llama speed", {})
    if len(waiting) > 1000:
        waiting.clear()
    waiting[extra.get("slot"), extra.get("task")] = (speed, tokens)
    found.plain.add(Window(line.number, when, throughput=speed, extra=extra | {"tokens": tokens}))


def _summary(line: Line, name: str, text: str, percent: bool, found: Found) -> None:
    block = found.state.setdefault("llama summary", {})
    value = number(text)
    block[name] = value / 100 if percent and value is not None else value
    block["line"] = line.number
    if name == "accept":
        _close_summary(found)


def _close_summary(found: Found) -> None:
    """The block as a window; its last line, the rate, may be missing."""
    block = found.state.pop("llama summary", {})
    if block.get("n_drafted") is None or block.get("n_accept") is None:
        return
    found.engine = found.engine or "llama.cpp"
    accepted, drafted, at = int(block["n_accept"]), int(block["n_drafted"]), int(block["line"])
    if block.get("n_draft"):
        found.steps = found.steps or int(block["n_draft"])
    true, rate = accepted / drafted if drafted else None, block.get("accept")
    if true is not None and rate is not None and abs(true - rate) > 0.001:
        found.problem(f"line {at}: inconsistent: n_accept / n_drafted is {true:.4f}, accept says {rate:g}.")
    extra = {"output_tokens": int(block["n_predict"])} if block.get("n_predict") else {}
    found.server.add(Window(at, None, None, None, true if rate is None else rate, accepted, drafted, extra=extra))


def finish(found: Found) -> None:
    """Slot lines and statistics speak of the same traffic: keep one kind, the one that knows the accept length."""
    _close_summary(found)
    if found.engine != "llama.cpp":
        return
    found.definitions.setdefault("acceptance_rate", "accepted / drafted tokens")
    found.definitions.setdefault(
        "accept_length", "1 + accepted / drafts, bonus counted; rounds without a draft are left out"
    )
    kinds = {"slot": [], "statistics": []}
    for window in found.server.kept:
        if window.extra.get("kind") in kinds:
            kinds[window.extra["kind"]].append(window)
    if all(kinds.values()):
        drop = "statistics" if any(w.accept_length is not None for w in kinds["slot"]) else "slot"
        found.server.kept = [w for w in found.server.kept if w.extra.get("kind") != drop]
        found.infer("windows", f"without the {len(kinds[drop])} {drop} lines", "they repeat the same rounds")
    lengths = [len(w.survival) for w in found.server.kept if w.survival]
    if found.steps is None and lengths:
        found.steps = max(lengths)
        found.infer("steps", found.steps, "positions of the per-position list")
