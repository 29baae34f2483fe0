"""Values of documents as words, for pages and reports. Missing numbers are "no data"."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

ENGINE_STARTS = re.compile(r"(?<=[.;])\s+(?=(?:vLLM|SGLang|TensorRT-LLM|llama\.cpp|Or)\b)")
EXACT = 12  # significant digits: what is beyond them is an accident of binary arithmetic
LENGTH = {"accept_length", "low", "high"}
NUMBERS = {  # the four numbers (and the step from per row to per round): name, what it is
    "expected": ("expected", "what the training run's own validation accuracy promises, per row"),
    "replayed_training_rows": ("replayed on training features, per row", "our replay of the drafter, mean over every row"),
    "replayed_training": ("replayed on training features", "the same replay, mean over the rounds a server would start"),
    "replayed_serving": ("replayed on serving features", "the drafter replayed on what the server fed it, per round"),
    "served": ("served", "what the server's own logs and counters say, per round"),
}


def number(value: float | None, digits: int = 2) -> str:
    """1.77, or "no data". Halves are rounded up, as people do: 1.985 is 1.99 whatever its binary digits are."""
    if value is None or value != value:
        return "no data"
    if abs(value) in (0.0, float("inf")):
        return f"{value:,.{digits}f}"
    told = Decimal(f"{value:.{EXACT}g}").quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{told:,f}" if told else f"{0.0:.{digits}f}"  # no minus before a zero


def signed(value: float | None, digits: int = 3) -> str:
    """+0.003, −0.940, or "no data"."""
    told = number(value, digits)
    return told.replace("-", "−") if value is None or told.startswith("-") else f"+{told}"


def spread(low: float | None, high: float | None, digits: int = 2) -> str:
    """1.29 to 2.20, or "no interval"."""
    return "no interval" if low is None or high is None else f"{number(low, digits)} to {number(high, digits)}"


def by_engine(fix: str) -> tuple[str, ...]:
    """What to change, a sentence for each engine that it names."""
    return tuple(ENGINE_STARTS.split(fix))


def how_sure(finding: dict[str, Any]) -> str:
    """What a finding rests on, and what would confirm it, in a sentence."""
    told = finding["confidence"]
    confirm = f" To confirm: {told['confirm'].rstrip('.')}." if told["confirm"] else ""
    return f"How sure: {told['level']}, by {told['because']}.{confirm}"


def value(found: Any) -> str:
    """A value of an evidence or a setting in a few words."""
    if found is None:
        return "no data"
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, float):
        return f"{found:,.4g}" if abs(found) < 1e6 else f"{found:,.0f}"
    if isinstance(found, int):
        return f"{found:,}"
    if isinstance(found, (list, tuple)):
        return ", ".join(value(item) for item in found)
    if isinstance(found, dict):
        if set(found) >= LENGTH:
            return length(found)
        return "; ".join(f"{name_of(key)} {value(item)}" for key, item in found.items())
    return str(found)


def length(found: dict[str, Any]) -> str:
    """1.75 (95 %: 1.29 to 2.20), 736 rounds: an accept length as one thing, whatever else is told of it."""
    known = number(found["accept_length"])
    if found["low"] is not None:
        known += f" (95 %: {spread(found['low'], found['high'])})"
    counted = [f"{found[name]:,} {name}" for name in ("rounds", "rows") if found.get(name) is not None]
    return ", ".join([known, *counted])


def name_of(key: str) -> str:
    """accept_length -> accept length"""
    return key.replace("_", " ")
