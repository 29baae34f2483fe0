"""vLLM's acceptance lines, all eras: `Speculative metrics` (V0, totals), `SpecDecoding metrics` (V1), and `Engine` lines.

An acceptance line names no engine: rank, running requests and throughput come from the engine line before it.
Facts: vllm-project/vllm vllm/v1/spec_decode/metrics.py and vllm/v1/metrics/loggers.py over their versions; vllm#9539,
#15902, #24127, #24049; the mean length lacked the bonus token up to 0.8.5.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from eagle3dash.formats.logs.collect import Found
from eagle3dash.formats.logs.lines import Line, decimals, fields, number, whole
from eagle3dash.records import Window

MARKS = ("SpecDecoding metrics", "Speculative metrics", "Avg generation throughput", "Mean acceptance length:")
BODY = re.compile(r"SpecDecoding metrics:|Speculative metrics:|(?=\bMean acceptance length:)")
STAMP = re.compile(r"\b(?:INFO|WARNING|DEBUG|ERROR)\s{1,4}(\d\d-\d\d(?: \d\d:\d\d:\d\d(?:[.,]\d{1,6})?)?)(?=\s)")
ISO = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?")
ENGINE = re.compile(r"\bEngine (\d{1,5}):")
PROCESS = re.compile(r"\bEngineCore_DP(\d{1,5})\b")
INCLUDED, EXCLUDED = "as printed, bonus counted", "printed without the bonus token (vLLM up to 0.8.5): 1 added"


def read(line: Line, found: Found) -> None:
    if "Avg generation throughput" in line.text:
        _engine(line, found)
    found_bodies = list(BODY.finditer(line.text))
    starts = [match for match in found_bodies if match.group()] or found_bodies
    ends = [match.start() for match in starts[1:]] + [len(line.text)]
    for match, end in zip(starts, ends, strict=False):
        body = line.text[match.end() : end]
        if match.group().startswith("Speculative"):
            _totals(line, line.text[: match.start()], fields(body), found)
        elif "cceptance" in body or "Drafted" in body:
            _window(line, line.text[: match.start()], fields(body), found)


def _when(head: str, line: Line) -> tuple[str | None, dict[str, Any]]:
    stamps, full = STAMP.findall(head), ISO.findall(head)
    own = stamps[-1] if stamps else (full[-1] if full else line.outer)
    outer = line.outer or (full[0] if stamps and full else None)
    return own, {"time_outer": outer} if outer else {}


def _engine(line: Line, found: Found) -> None:
    """Keep what an engine line says for the acceptance line that follows; on its own it is a window without acceptance."""
    mark = ENGINE.search(line.text)
    at = line.text.find("Avg prompt throughput")
    labels = fields(line.text[at if at >= 0 else line.text.find("Avg generation") :])
    when, extra = _when(line.text[: max(at, 0)], line)
    extra |= {"waiting": whole(labels.get("waiting"))} if "waiting" in labels else {}
    extra |= {"engine_id": int(mark.group(1))} if mark else {}
    window = Window(
        line.number,
        when,
        f"Engine {int(mark.group(1)):03d}" if mark else None,
        running=whole(labels.get("running")),
        throughput=number(labels.get("avg generation throughput")),
        extra=extra,
    )
    found.engine = found.engine or "vllm"
    found.state.setdefault("vllm engines", {})[window.rank] = window
    found.plain.add(window)


def _near(line: Line, head: str, found: Found) -> Window | None:
    """The engine line that this acceptance line belongs to: named in its own prefix, else the latest one not yet taken."""
    waiting: dict[str | None, Window] = found.state.get("vllm engines", {})
    if mark := ENGINE.search(head) or PROCESS.search(head):
        name = f"Engine {int(mark.group(1)):03d}"
        return waiting.pop(name, None) or Window(line.number, rank=name, extra={"engine_id": int(mark.group(1))})
    latest = max(waiting.values(), key=lambda w: w.line, default=None)
    if latest is None or line.number - latest.line > 50:
        return None
    return waiting.pop(latest.rank)


def _window(line: Line, head: str, labels: dict[str, str], found: Found) -> None:
    found.engine = found.engine or "vllm"
    near = _near(line, head, found)
    when, extra = _when(head, line)
    _drop_cut(labels)
    mean = _checked("mean acceptance length", labels, line, found, 0.0, 1000.0)
    rate = _percent(labels.get("avg draft acceptance rate", labels.get("draft acceptance rate")))
    accepted, drafted = whole(labels.get("accepted")), whole(labels.get("drafted"))
    for name in ("accepted throughput", "drafted throughput"):
        if (value := number(labels.get(name))) is not None:
            extra[name.replace(" ", "_")] = value
    survival, positions = _survival(labels, mean)
    length, included = _length(mean, rate, accepted, drafted, survival)
    if included is not None:
        known = found.state.setdefault("vllm bonus", {True: 0, False: 0})
        known[included] += 1
    steps = _steps(length, rate, accepted, drafted, positions)
    said = next(
        (n for label in ("num drafts", "drafts", "number of drafts") if (n := whole(labels.get(label))) is not None), None
    )
    rounds = said if said is not None else _rounds(length, accepted, drafted, steps)
    if steps:
        extra["steps"] = steps
    if near:
        extra = near.extra | extra
    window = Window(line.number, when, near and near.rank, length, rate, accepted, drafted, rounds, survival, extra=extra)
    if near:
        window = replace(window, running=near.running, throughput=near.throughput)
    _contradictions(window, found)
    found.server.add(window)


def _drop_cut(labels: dict[str, str]) -> None:
    """The last value of a line that was cut off may lack digits: it counts only with its unit or all its decimals."""
    label, text = next(reversed(labels.items()), ("", ""))
    units = {"accepted": "tokens", "drafted": "tokens", "accepted throughput": "tokens/s", "drafted throughput": "tokens/s"}
    whole_unit = units.get(label, "") in text
    if not whole_unit or (label == "mean acceptance length" and decimals(text) < 2 and number(text) is not None):
        del labels[label]


def _checked(name: str, labels: dict[str, str], line: Line, found: Found, low: float, high: float) -> float | None:
    value = number(labels.get(name))
    if value is not None and not low <= value <= high:
        found.problem(f"line {line.number}: {name} is {value:g}; expected {low:g} to {high:g}. Left out.")
        return None
    return value


def _percent(text: str | None) -> float | None:
    value = number(text)
    if value is None or not 0.0 <= value <= 100.0:
        return None
    return round(value / 100, 9) if text and "%" in text[:12] else (value if value <= 1.0 else None)


def _survival(labels: dict[str, str], mean: float | None) -> tuple[tuple[float, ...] | None, int | None]:
    """(unconditional acceptance by position, how many positions); a list that was cut off is left out."""
    text = next((labels[k] for k in labels if k.endswith("per-position acceptance rate")), None)
    if not text:
        return None, None
    values = [number(part) for part in text.split(",") if part.strip()][:64]
    if any(value is None or not 0.0 <= value <= 1.0 for value in values):
        return None, len(values) if all(v is None for v in values) else None
    last = list(labels)[-1].endswith("per-position acceptance rate") and list(labels)[0] == "mean acceptance length"
    if last and mean is not None and abs(1 + sum(values) - mean) > 0.006 + 0.0006 * len(values):
        return None, None  # today's line goes on after the list: it was cut
    return tuple(values), len(values)


def _length(
    mean: float | None, rate: float | None, accepted: int | None, drafted: int | None, survival: tuple[float, ...] | None
) -> tuple[float | None, bool | None]:
    """(accept length with the bonus, whether the line counted it: None where the line can't tell)."""
    if mean is None:
        return None, None
    if mean < 0.995:
        return mean + 1.0, False
    if survival:
        total = sum(survival)
        near = 0.006 + 0.0006 * len(survival)
        if abs(mean - total) <= near:
            return mean + 1.0, False
        return mean, True if abs(mean - 1.0 - total) <= near else None
    return mean, None


def _steps(
    length: float | None, rate: float | None, accepted: int | None, drafted: int | None, positions: int | None
) -> int | None:
    """K: positions of the list, else from (accept length - 1) / rate where rounding leaves one whole number."""
    if positions:
        return positions
    if rate is None and accepted and drafted:
        rate = accepted / drafted
    if length is None or not rate or length <= 1.0:
        return None
    steps = (length - 1.0) / rate
    width = (0.006 / (length - 1.0) + 0.0006 / rate) * steps
    return round(steps) if abs(steps - round(steps)) <= width < 0.5 and steps >= 0.9 else None


def _rounds(length: float | None, accepted: int | None, drafted: int | None, steps: int | None) -> int | None:
    """Draft-verify cycles: drafted / K rounded up (a round near the end drafts less), if that agrees with the length."""
    if drafted == 0:
        return 0
    if drafted is None or not steps:
        return None
    rounds = -(-drafted // steps)
    if accepted is not None and length is not None and abs(1 + accepted / rounds - length) > 0.02:
        return None
    return rounds


def _contradictions(window: Window, found: Found) -> None:
    said = []
    if window.accepted is not None and window.drafted:
        true = window.accepted / window.drafted
        if window.acceptance_rate is not None and abs(true - window.acceptance_rate) > 0.002:
            said.append(f"accepted / drafted is {true:.1%}, the rate says {window.acceptance_rate:.1%}")
        if window.accepted > window.drafted:
            said.append("more accepted than drafted")
        if window.accepted == 0 and (window.accept_length or 0) > 1.01:
            said.append(f"nothing accepted, but an accept length of {window.accept_length:g}")
    if window.survival and window.accept_length is not None:
        total = 1 + sum(window.survival)
        if abs(total - window.accept_length) > 0.01 + 0.0006 * len(window.survival):
            said.append(f"1 + sum of positions is {total:.3f}, the accept length {window.accept_length:g}")
    if window.survival and any(b > a + 1e-9 for a, b in zip(window.survival, window.survival[1:], strict=False)):
        said.append("a later position is accepted more often than an earlier one")
    if said:
        found.problem(f"line {window.line}: inconsistent: {'; '.join(said)}.")


def _totals(line: Line, head: str, labels: dict[str, str], found: Found) -> None:
    """V0: totals since the start; accepted counts tokens after a rejected one, so the length is emitted / rounds."""
    found.engine = found.engine or "vllm"
    steps = whole(labels.get("number of speculative tokens"))
    counts = {n: whole(labels.get(f"number of {n} tokens")) for n in ("accepted", "draft", "emitted")}
    when, extra = _when(head, line)
    before = found.state.get("vllm totals")
    found.state["vllm totals"] = counts
    grown = before and all(counts[n] is not None and before[n] is not None and counts[n] >= before[n] for n in counts)
    spent = {n: counts[n] - before[n] for n in counts} if grown else counts
    rounds = spent["draft"] // steps if steps and spent["draft"] is not None and spent["draft"] % steps == 0 else None
    length = spent["emitted"] / rounds if rounds and spent["emitted"] is not None else None
    rate = number(labels.get("draft acceptance rate")) if not grown else None
    if rate is None and spent["accepted"] is not None and spent["draft"]:
        rate = spent["accepted"] / spent["draft"]
    extra |= {"emitted": spent["emitted"], "steps": steps, "system_efficiency": number(labels.get("system efficiency"))}
    found.definitions["accept_length"] = "emitted tokens / rounds (vLLM V0 counts tokens accepted after a rejected one)"
    found.server.add(
        Window(
            line.number,
            when,
            None,
            length,
            rate,
            spent["accepted"],
            spent["draft"],
            rounds,
            cumulative=not grown,
            extra=extra,
        )
    )
    found.steps = found.steps or steps


def finish(found: Found) -> None:
    """Settle K and the bonus over all lines; fill what K tells."""
    bonus = found.state.get("vllm bonus")
    windows = found.server.kept
    if bonus is None and not any("accepted_throughput" in w.extra or w.drafted is not None for w in windows):
        return
    without = bool(bonus and bonus[False] > bonus[True])
    if found.engine != "vllm":
        return
    found.definitions.setdefault("accept_length", EXCLUDED if without else INCLUDED)
    found.definitions.setdefault("acceptance_rate", "accepted / drafted tokens")
    found.definitions.setdefault("survival", "unconditional: accepted at position i / rounds")
    if without:
        found.infer("accept_length", "1 added", "the printed mean equals the sum of the per-position rates")
    seen = {w.extra["steps"] for w in windows if w.extra.get("steps")}
    steps = found.settings.get("num_speculative_tokens") or (max(seen) if seen else None)
    if found.steps is None and steps:
        found.steps = steps
        if "num_speculative_tokens" not in found.settings:
            found.infer("steps", steps, "positions of the per-position list, or (accept length - 1) / rate")
    found.server.kept = [_filled(w, found.steps) for w in windows]


def _filled(window: Window, steps: int | None) -> Window:
    if window.rounds is not None or not steps or not window.drafted or window.survival:
        return window
    if window.accept_length is not None and window.accepted and window.drafted % steps == 0:
        mean = window.accepted * steps / window.drafted
        if abs(mean - window.accept_length) < 0.006:  # printed without the bonus, as K tells
            return replace(window, accept_length=mean + 1.0, rounds=window.drafted // steps)
    if window.accept_length is not None:
        return replace(window, rounds=_rounds(window.accept_length, window.accepted, window.drafted, steps))
    if window.accepted is None or window.drafted % steps:
        return window
    rounds = window.drafted // steps
    return replace(window, rounds=rounds, accept_length=1 + window.accepted / rounds)
