"""Values of documents as words, for pages and reports. Missing numbers are "no data"."""

from __future__ import annotations

from typing import Any

LENGTH = {"accept_length", "low", "high"}
NUMBERS = {  # the four numbers (and the step from per row to per round): name, what it is
    "expected": ("expected", "what the training run's own validation accuracy promises, per row"),
    "replayed_training_rows": ("replayed on training features, per row", "our replay of the drafter, mean over every row"),
    "replayed_training": ("replayed on training features", "the same replay, mean over the rounds a server would start"),
    "replayed_serving": ("replayed on serving features", "the drafter replayed on what the server fed it, per round"),
    "served": ("served", "what the server's own logs and counters say, per round"),
}


def number(value: float | None, digits: int = 2) -> str:
    """1.77, or "no data"."""
    return "no data" if value is None else f"{value:,.{digits}f}"


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
        known += f" (95 %: {number(found['low'])} to {number(found['high'])})"
    counted = [f"{found[name]:,} {name}" for name in ("rounds", "rows") if found.get(name) is not None]
    return ", ".join([known, *counted])


def name_of(key: str) -> str:
    """accept_length -> accept length"""
    return key.replace("_", " ")
