"""JSON text of a record, a result or a job's arguments. A number that is none (NaN, infinity) becomes null: no data."""

from __future__ import annotations

import json
import math
from typing import Any


def dump(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:  # rare, and looking first would take as long as writing
        return json.dumps(_finite(value), allow_nan=False, separators=(",", ":"))


def load(text: str) -> Any:
    return json.loads(text)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
