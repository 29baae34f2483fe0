"""Numbers, sizes, times and names as text for a page. What came out of a file passes `safe` before it is Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from eagle3dash.analysis.wording import name_of as name_of
from eagle3dash.analysis.wording import number as number
from eagle3dash.analysis.wording import value as value

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>$:~&])")


def safe(text: object, longest: int = 400) -> str:
    """Any text so that Markdown shows it as it is: no emphasis, no link, no image, no formula."""
    line = " ".join(str(text).split())
    return _MARKDOWN.sub(r"\\\1", line if len(line) <= longest else line[: longest - 1] + "…")


def count(n: int, noun: str) -> str:
    """1 text, 8 texts"""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def size(count: float) -> str:
    """Bytes as a person says them: 15.2 MB."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"


def duration(seconds: float | None) -> str:
    """3 s, 2 min 10 s, 1 h 5 min."""
    if seconds is None:
        return "unknown"
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def state(label: Any) -> str:
    """HF[15] for a known state, s1 for a slot whose state nobody knows."""
    return "unknown" if label is None else f"HF[{label}]" if isinstance(label, int) else str(label)


def states(labels: Sequence[Any] | None) -> str:
    """HF[0], HF[2], HF[15]"""
    return "unknown" if not labels else ", ".join(state(label) for label in labels)
