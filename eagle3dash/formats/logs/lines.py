"""Log files as lines, whatever wraps them: block-wise, in constant memory, only the lines that can matter.

What is here: reading (64 KB cap a line), prefixes of docker, compose, kubectl (CRI) and log viewers, ANSI codes,
carriage returns of progress bars, NUL bytes, bad UTF-8, UTF-16. What is not: what a line means.
Every pattern is bounded: its cost is linear in the line. Facts: forms seen in public logs, tests/formats/loglines.txt.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from eagle3dash.records import Progress

CAP = 64 * 1024  # longest line that is looked at
BLOCK = 1 << 20
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
CRI = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]{8,20}\S{0,6}) (?:stdout|stderr) ([FP]) ")
VIEWER = re.compile(r"(?:(\d{4}-\d\d-\d\d[ T][\d:.,]{8,20}\S{0,6})|[\w.-]{1,64}) {0,30}\| ")
LABEL = re.compile(r"([#A-Za-z][\w #()/-]{0,60}?)[ \t]{0,8}[:=][ \t]{0,8}")
LABEL_END = re.compile(r"[#A-Za-z][\w #()/-]{0,60}$")
NUMBER = re.compile(r"[-+]?(?:\d[\d.eE+-]{0,39}|nan\b|inf\b)", re.IGNORECASE)


class Line(NamedTuple):
    """`text` without prefix and codes; `outer`: the time that a log viewer or container runtime put in front."""

    number: int
    text: str
    outer: str | None = None


@dataclass
class Tally:
    """What was passed over: all lines, and those above the cap."""

    lines: int = 0
    long: int = 0


def lines(path: Path, wanted: Sequence[bytes], tally: Tally, progress: Progress) -> Iterator[Line]:
    """The lines that hold one of `wanted`. One that ends with a comma is joined with the indented lines after it."""
    open_line: Line | None = None  # ends with a comma, or was split by the container runtime: may go on
    split = False
    for number, raw, marked in _raw_lines(path, wanted, tally, progress):
        if not marked and open_line is None:
            continue
        text, outer, partial = _unwrap(raw.decode("utf-8", "replace"))
        if open_line is not None and (split or text[:1] in (" ", "\t")):
            line = open_line._replace(text=(open_line.text + text)[:CAP])
        else:
            yield from _pieces(open_line)
            line = Line(number, text, outer) if marked else None
        goes_on = line is not None and (partial or line.text.rstrip().endswith(",")) and number - line.number < 16
        open_line, split = (line, partial) if goes_on else (None, False)
        if not goes_on:
            yield from _pieces(line)
    yield from _pieces(open_line)


def _pieces(line: Line | None) -> Iterator[Line]:
    """What a progress bar's carriage returns separate."""
    if line is not None:
        yield from (line._replace(text=piece) for piece in line.text.split("\r") if piece.strip())


def _raw_lines(path: Path, wanted: Sequence[bytes], tally: Tally, progress: Progress) -> Iterator[tuple[int, bytes, bool]]:
    """(number, raw line, is marked) of the lines that hold one of `wanted` and of those that may continue them."""
    rest, skipping, open_end = b"", False, False
    for block in _blocks(path, progress):
        if skipping:
            cut = block.find(b"\n")
            if cut < 0:
                continue
            block, skipping = block[cut + 1 :], False
        block = rest + block
        end = block.rfind(b"\n") + 1
        open_end = yield from _hits(block[:end], wanted, tally, open_end)
        rest = block[end:]
        if len(rest) > CAP:
            rest, skipping = b"", True
            tally.lines, tally.long = tally.lines + 1, tally.long + 1
    if rest:
        yield from _hits(rest + b"\n", wanted, tally, open_end)


def _hits(
    body: bytes, wanted: Sequence[bytes], tally: Tally, open_end: bool
) -> Generator[tuple[int, bytes, bool], None, bool]:
    """The lines of `body` (whole lines) that matter; returns whether the last one may go on. Others are counted."""
    at, number = 0, tally.lines + 1
    for start in _starts(body, wanted):
        while open_end and at < start:
            raw = _line(body, at)
            yield number, raw, False
            at, number, open_end = at + len(raw) + 1, number + 1, _may_go_on(raw)
        number += body.count(b"\n", at, start)
        raw = _line(body, start)
        at = start
        if len(raw) <= CAP:
            yield number, raw, True
            at, number, open_end = at + len(raw) + 1, number + 1, _may_go_on(raw)
    while open_end and at < len(body):
        raw = _line(body, at)
        yield number, raw, False
        at, number, open_end = at + len(raw) + 1, number + 1, _may_go_on(raw)
    tally.lines += body.count(b"\n")
    tally.long += _long_lines(body)
    return open_end and at >= len(body)


def _line(body: bytes, start: int) -> bytes:
    return body[start : body.index(b"\n", start)]


def _may_go_on(raw: bytes) -> bool:
    return raw[-8:].rstrip().endswith(b",") or b" P " in raw[:64]


def _starts(body: bytes, wanted: Sequence[bytes]) -> list[int]:
    """Where the lines begin that hold one of `wanted`, in order."""
    starts = set()
    for mark in wanted:
        at = body.find(mark)
        while at >= 0:
            starts.add(body.rfind(b"\n", 0, at) + 1)
            at = body.find(mark, body.index(b"\n", at))
    return sorted(starts)


def _long_lines(body: bytes) -> int:
    """Lines above the cap, found in steps of the cap."""
    at, count = 0, 0
    while len(body) - at > CAP:
        end = body.rfind(b"\n", at, at + CAP + 1)
        if end < 0:
            end, count = body.index(b"\n", at), count + 1
        at = end + 1
    return count


def _blocks(path: Path, progress: Progress) -> Iterator[bytes]:
    total, done, decoder = path.stat().st_size, 0, None
    with path.open("rb", buffering=0) as file:
        while block := file.read(BLOCK):
            if not done and block[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                decoder = codecs.getincrementaldecoder("utf-16")("replace")
            done += len(block)
            progress(done, total, f"reading {path.name}")
            yield decoder.decode(block).encode() if decoder else block


def _unwrap(text: str) -> tuple[str, str | None, bool]:
    """(text, outer time, goes on in the next line) without what a container runtime or viewer added."""
    text = text.replace("\x00", "")
    if "\x1b" in text:
        text = ANSI.sub("", text)
    if text.startswith('{"') and (found := _structured(text)):
        return found
    if match := CRI.match(text):
        return text[match.end() :], match.group(1), match.group(2) == "P"
    if match := VIEWER.match(text):
        return text[match.end() :], match.group(1), False
    return text, None, False


def _structured(text: str) -> tuple[str, str | None, bool] | None:
    """The message in a JSON log line (docker's json-file: log; others: message, msg), or None."""
    if not text.startswith(('{"log"', '{"message"', '{"msg"', '{"time"', '{"timestamp"', '{"ts"', '{"level"', '{"stream"')):
        return None
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    message = next((entry[key] for key in ("log", "message", "msg") if isinstance(entry.get(key), str)), None)
    if message is None:
        return None
    stamp = next((entry[key] for key in ("time", "timestamp", "ts") if isinstance(entry.get(key), str)), None)
    return ANSI.sub("", message).rstrip("\n"), stamp, False


def fields(body: str) -> dict[str, str]:
    """`label: value` pairs of a comma-separated line body, labels in lower case, spaces for underscores; the first wins."""
    found: dict[str, str] = {}
    latest = None
    for part in body[:4096].split(","):
        marks = part.count(":") + part.count("=")
        if marks == 1:
            label, _, text = part.partition(":" if ":" in part else "=")
            latest = _label(label[-80:])
            found.setdefault(latest, text.strip(" \t;|"))
        elif marks:
            found = _pairs(part) | found
            latest = None
        elif latest is not None and len(found[latest]) < 1000:  # a list of values
            found[latest] += "," + part.rstrip(" \t;|")
    return found


@lru_cache(maxsize=4096)
def _label(text: str) -> str:
    match = LABEL_END.search(text.rstrip())
    return " ".join(match.group().lower().replace("_", " ").split()) if match else ""


def _pairs(part: str) -> dict[str, str]:
    """Pairs that no comma parts."""
    marks = list(LABEL.finditer(part))
    ends = [*(mark.start() for mark in marks[1:]), len(part)] if marks else []
    return {_label(m.group(1)): part[m.end() : end].strip(" \t;|") for m, end in zip(marks, ends, strict=True)}


def number(text: str | None) -> float | None:
    """The finite number that `text` starts with, else None (nan, inf and overflow included)."""
    match = NUMBER.match(text.strip()) if text else None
    if not match:
        return None
    try:
        value = float(match.group())
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def whole(text: str | None) -> int | None:
    """A count: a whole number in 0..10^15, else None."""
    value = number(text)
    return int(value) if value is not None and 0 <= value <= 1e15 and value == int(value) else None


def decimals(text: str) -> int:
    """Digits after the point of the number that `text` starts with."""
    match = re.match(r"\s*[-+]?\d{1,20}\.(\d{0,20})", text)
    return len(match.group(1)) if match else 0
