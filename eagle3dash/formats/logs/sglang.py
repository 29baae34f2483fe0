"""SGLang's decode lines: fields in any order, missing, damaged or unknown; both definitions of `accept rate`.

What is here: one line -> one window, and at the end of the log the choice of definition (`rates.py` does the arithmetic).
What is not: start-up facts (startup.py), metrics and replies. Facts: sgl-project/sglang
python/sglang/srt/managers/scheduler_metrics_mixin.py over its versions; sglang#11948, #25960, #30393.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from eagle3dash.formats.logs.collect import Found, ranks
from eagle3dash.formats.logs.lines import Line, decimals, fields, number, whole
from eagle3dash.formats.logs.rates import Rates
from eagle3dash.records import Window

MARKS = ("Decode batch", "Prefill batch", "accept len", "accept rate", "accept_len", "accept_rate")
BODY = re.compile(r"Decode batch|(?=#running-req)|(?=\bspec tokens:)|(?=\baccept[ _]len)|(?=\baccept[ _]rate)")
STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)")
FORWARD = re.compile(r"^ \[(\d{1,12})\]")
NAMES = (  # the end of a label -> what it is; a longer one that ends the same stands first
    ("block accept len", None),
    ("cap len", None),
    ("valid draft len", None),
    ("accept len", "accept_len"),
    ("accept length", "accept_len"),
    ("acceptance length", "accept_len"),
    ("accept rate", "accept_rate"),
    ("acceptance rate", "accept_rate"),
    ("#running-req", "running"),
    ("#queue-req", "queue"),
    ("#token", "tokens"),
    ("#full token", "tokens"),
    ("gen throughput (token/s)", "throughput"),
    ("gen throughput", "throughput"),
    ("#retracted-req", "retracted"),
    ("#transfer-req", "transfer"),
    ("#prealloc-req", "prealloc"),
    (" graph", "cuda_graph"),
    ("spec tokens", "spec_tokens"),
    ("spec rounds", "spec_rounds"),
)


def read(line: Line, found: Found) -> None:
    """Every decode line in `line` (two ranks may have written over each other) becomes a window."""
    if "Prefill batch" in line.text and "accept len" not in line.text:
        found.engine = found.engine or "sglang"
        _prefill(line, found)
        return
    starts = [m.start() for m in re.finditer(r"Decode batch", line.text)] or [0]
    cuts = [0] + [max(line.text.rfind("[", ends, start), ends) for ends, start in zip(starts, starts[1:], strict=False)]
    for start, end in zip(cuts, [*cuts[1:], len(line.text)], strict=True):
        _read_one(line, line.text[start:end], found)


def _prefill(line: Line, found: Found) -> None:
    """Prompt tokens of a prefill: from the prefix cache, and new. Told by the next decode line of the same rank."""
    values = fields(line.text[line.text.find("Prefill batch") + len("Prefill batch") :])
    counts = [whole(values.get(name, "")) for name in ("#cached-token", "#new-token")]
    if None not in counts:
        sums = found.state.setdefault("sglang prefills", {}).setdefault(_rank(line.text), [0, 0])
        sums[:] = [total + count for total, count in zip(sums, counts, strict=True)]


def _rank(text: str) -> str | None:
    head = text[: max(text.find("]"), 0)]
    return " ".join(f"{name.upper()}{value}" for name, value in ranks(head).items()) or None


def _read_one(line: Line, text: str, found: Found) -> None:
    body = BODY.search(text)
    if not body:
        return
    head, rest = text[: body.start()], text[body.end() :]
    stamps = STAMP.findall(head)
    where = head[max(head.rfind("["), 0) :] if "[" in head else head[-40:]
    found.engine = found.engine or "sglang"
    values, extra = _values(fields(rest), line, found)
    if forward := FORWARD.match(rest):
        extra["forward_ct"] = int(forward.group(1))
    if not values and not any(extra.get(name) is not None for name in ("accept_rate", "queue", "cuda_graph")):
        return
    extra |= {"ranks": tags} if (tags := ranks(where)) else {}
    extra |= {"time_outer": line.outer} if line.outer else {}
    rank = " ".join(f"{name.upper()}{value}" for name, value in tags.items()) or None
    cached, new = found.state.get("sglang prefills", {}).pop(rank, (0, 0))
    if cached + new:
        extra["cached_share"] = cached / (cached + new)
    window = Window(line.number, stamps[-1] if stamps else line.outer, rank, extra=extra, **values)
    _rates(found).see(window)
    found.server.add(window)


def _rates(found: Found) -> Rates:
    return found.state.setdefault("sglang rates", Rates())


@lru_cache(maxsize=1024)
def _name(label: str) -> str | None:
    return next((name for end, name in NAMES if label.endswith(end)), None)


def _values(labels: dict[str, str], line: Line, found: Found) -> tuple[dict[str, Any], dict[str, Any]]:
    """(fields of Window, other facts). A number that cannot be is left out and said."""
    texts: dict[str, str] = {}
    for label, text in labels.items():
        if name := _name(label):
            texts.setdefault(name, text)
    last = _name(next(reversed(labels), ""))
    if last in ("accept_len", "accept_rate", "throughput") and "running" in texts and _cut(texts[last]):
        del texts[last]
    values: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name in ("running", "queue", "tokens", "retracted", "transfer", "prealloc", "spec_tokens", "spec_rounds"):
        if name not in texts:
            continue
        if (count := whole(texts[name])) is not None:
            (values if name == "running" else extra)[name] = count
        elif texts[name]:
            found.problem(f"line {line.number}: {name} is {texts[name][:30]!r}, not a count; left out.")
    if (speed := number(texts.get("throughput"))) is not None and speed >= 0:
        values["throughput"] = speed
    if (graph := texts.get("cuda_graph", "")[:5].strip(" ,")) in ("True", "False"):
        extra["cuda_graph"] = graph == "True"
    _accept(texts, values, extra, line, found)
    return values, extra


def _cut(text: str) -> bool:
    """The last value of a line that was cut off may lack digits: SGLang prints two decimals."""
    return decimals(text) < 2 and text.replace(".", "").isdigit()


def _accept(texts: dict[str, str], values: dict, extra: dict, line: Line, found: Found) -> None:
    length, rate = number(texts.get("accept_len")), number(texts.get("accept_rate"))
    percent = rate is not None and "%" in texts["accept_rate"][:12]
    rate = rate / 100 if percent else rate
    if "accept_len" in texts and texts["accept_len"] and (length is None or not 1.0 <= length <= 1000):
        found.problem(f"line {line.number}: accept len is {texts['accept_len'][:30]!r}; expected 1 or more. Left out.")
        length = None
    if rate is not None and not 0.0 <= rate <= 1.0:
        found.problem(f"line {line.number}: accept rate is {rate:g}; expected 0 to 1 (an early SGLang fault). Left out.")
        rate = None
    if length is not None:
        values["accept_length"] = length
    if rate is not None:
        digits = decimals(texts["accept_rate"]) + 2 * percent
        extra |= {"accept_rate": rate, "decimals": (decimals(texts["accept_len"]) if length else 2, digits)}
    if rounds := extra.get("spec_rounds"):
        values["rounds"] = rounds
        if length is not None and abs(extra.get("spec_tokens", 0) / rounds - length) < 0.006:
            values["accepted"] = extra["spec_tokens"] - rounds


def finish(found: Found) -> None:
    """Give every window the acceptance rate accepted / drafted, and the log its K and definitions."""
    rates: Rates | None = found.state.get("sglang rates")
    if rates is None:
        return
    if any(w.accept_length is not None for w in found.server.kept):
        found.definitions["accept_length"] = "as printed (accept len), bonus counted"
    size = found.settings.get("num_draft_tokens")
    rates.choose(size if isinstance(size, int) else None, found.version if found.engine == "sglang" else None)
    if rates.lines:
        found.definitions["accept_rate"] = rates.words
        found.infer("accept_rate definition", rates.words, rates.why)
    found.server.kept = [_with_rate(w, rates, found) for w in found.server.kept]
    _warmups(found)
    if found.steps is None and rates.size:
        found.steps = rates.size - 1
        found.infer(
            "steps", rates.size - 1, f"accept len and accept rate of {rates.lines} lines fit {rates.size} draft tokens"
        )


def _with_rate(window: Window, rates: Rates, found: Found) -> Window:
    if window.extra.get("accept_rate") is None:
        return window
    rate, fits = rates.acceptance(window)
    if not fits:
        found.problem(
            f"line {window.line}: inconsistent: accept len {window.accept_length:g} and accept rate "
            f"{window.extra['accept_rate']:g} fit no definition with a whole number of draft tokens."
            if rates.size is None
            else f"line {window.line}: inconsistent: accept len {window.accept_length:g} and accept rate "
            f"{window.extra['accept_rate']:g} do not fit {rates.size} draft tokens, as the other lines do."
        )
    extra = {key: value for key, value in window.extra.items() if key != "decimals"}
    if rates.size is not None and fits and rates.definition_of(window):
        extra["accept_rate_definition"] = rates.definition_of(window)
    return replace(window, acceptance_rate=rate, extra=extra)


def _warmups(found: Found) -> None:
    """Throughput is tokens since the last line, so the first line after a start or an idle gap is no speed: flag it.

    Flagged: less than one round a second, or the first line of a rank at under a fifth of the rank's median.
    """
    by_rank: dict[str | None, list[float]] = {}
    for window in found.server.kept:
        if window.throughput:
            by_rank.setdefault(window.rank, []).append(window.throughput)
    median = {rank: sorted(speeds)[len(speeds) // 2] for rank, speeds in by_rank.items()}
    seen: set[str | None] = set()
    flagged = []
    for window in found.server.kept:
        slow = window.throughput is not None and window.throughput < (window.accept_length or 1.0)
        first = window.rank not in seen and window.throughput is not None and len(by_rank.get(window.rank, ())) > 2
        slow |= first and window.throughput < 0.2 * median[window.rank]
        seen.add(window.rank)
        flagged.append(replace(window, warmup=True) if slow and (window.running or 0) <= 4 else window)
    found.server.kept = flagged
