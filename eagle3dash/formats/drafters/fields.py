"""A drafter's config.json as untrusted fields: read with bounds, every use remembered.

`Fields` answers "what does the config say", by dotted path, and afterwards lists every field with what was made of it.
It doesn't know what a field means. Numbers are only compared with tensor shapes: nothing is ever allocated from them.
"""

from __future__ import annotations

import json
import math
from typing import Any

from eagle3dash.errors import BadInput
from eagle3dash.records import ConfigField

MOST_FIELDS = 2000
DEEPEST = 6
LONGEST = 200  # characters of a value or a path that are kept


def clean(text: str) -> str:
    """At most 200 characters that every file and page can hold (JSON may smuggle lone surrogates)."""
    return text[:LONGEST].encode("utf-8", "replace").decode()


class Fields:
    """Reads a config. `block` is the path prefix of the layer's own fields: speculators nests them, others don't."""

    def __init__(self, config: dict[str, Any] | None):
        self.leaves: dict[str, Any] = {}
        self._flatten("", config or {}, 0)
        self._used: set[str] = set()
        self._contradicting: dict[str, str] = {}
        self._ignored: dict[str, str] = {}
        self.given = config is not None
        self.block = "transformer_layer_config." if self.under("transformer_layer_config") else ""

    def _flatten(self, prefix: str, value: dict[str, Any], depth: int) -> None:
        for key, item in value.items():
            path = clean(f"{prefix}{key}")
            if len(self.leaves) >= MOST_FIELDS:
                raise BadInput(f"config.json has over {MOST_FIELDS} fields, a drafter's has 50. Give the drafter's own.")
            if isinstance(item, dict) and item and depth < DEEPEST:
                self._flatten(f"{path}.", item, depth + 1)
            else:
                self.leaves[path] = item

    def under(self, path: str) -> bool:
        """Whether the config has an object at `path` with something in it."""
        return any(leaf.startswith(f"{path}.") for leaf in self.leaves)

    def find(self, *paths: str) -> tuple[Any, str | None]:
        """(value, path) of the first path that is present and not null, else (None, None). Marks it used."""
        for path in paths:
            if self.leaves.get(path) is not None:
                self._used.add(path)
                return self.leaves[path], path
            if path in self.leaves:
                self._used.add(path)
        return None, None

    def integer(self, *paths: str, low: int = 1, high: int = 1 << 20) -> int | None:
        """A whole number within [low, high], or None where the config has none. BadInput outside the bounds."""
        value, path = self.find(*paths)
        if value is None:
            return None
        whole = type(value) is int or (type(value) is float and math.isfinite(value) and value == int(value))
        if not whole or not low <= value <= high:
            raise BadInput(f"config.json: {path} is {self._show(value)}; expected a whole number from {low} to {high}.")
        return int(value)

    def number(self, *paths: str, low: float, high: float) -> float | None:
        """A finite number within [low, high], or None where the config has none. BadInput outside the bounds."""
        value, path = self.find(*paths)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise BadInput(f"config.json: {path} is {self._show(value)}; expected a number from {low:g} to {high:g}.")
        return float(value)

    def flag(self, *paths: str) -> bool | None:
        """true or false, or None where the config has neither. BadInput for anything else."""
        value, path = self.find(*paths)
        if value is None or isinstance(value, bool):
            return value
        raise BadInput(f"config.json: {path} is {self._show(value)}; expected true or false.")

    def text(self, *paths: str) -> str | None:
        """A string, cut at 200 characters; None for anything else."""
        value, _ = self.find(*paths)
        return clean(value) if isinstance(value, str) else None

    def contradict(self, path: str | None, note: str) -> None:
        """Mark a field as contradicting the tensors (or another field)."""
        if path is not None:
            self._contradicting[path] = note[:LONGEST]

    def ignore(self, path: str, note: str) -> None:
        """Mark a field as read, understood and deliberately not followed."""
        self._ignored[path] = note[:LONGEST]

    def listed(self) -> tuple[ConfigField, ...]:
        """Every field of the config, in the file's order."""
        return tuple(self._listed(path, value) for path, value in self.leaves.items())

    def _listed(self, path: str, value: Any) -> ConfigField:
        if path in self._contradicting:
            return ConfigField(path, self._show(value), "contradicting", self._contradicting[path])
        if path in self._ignored:
            return ConfigField(path, self._show(value), "ignored", self._ignored[path])
        return ConfigField(path, self._show(value), "used" if path in self._used else "ignored")

    @staticmethod
    def _show(value: Any) -> str:
        return json.dumps(value, default=str)[:LONGEST]
