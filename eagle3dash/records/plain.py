"""Records to plain JSON values and back."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from typing import Any, Union

from eagle3dash.records.captures import Capture, Target
from eagle3dash.records.drafters import Drafter
from eagle3dash.records.logs import Log
from eagle3dash.records.runs import Import


def to_json(record: Any) -> Any:
    """Record -> plain JSON values (tuples become lists)."""
    return dataclasses.asdict(record)


def from_json(cls: Any, value: Any) -> Any:
    """The inverse of `to_json` for any record of this module. Raises TypeError on a key that `cls` lacks."""
    if value is None or cls is Any:
        return value
    origin, args = typing.get_origin(cls), typing.get_args(cls)
    if origin in (Union, types.UnionType):
        return from_json(_choose(args, value), value)
    if origin is tuple:
        return tuple(from_json(args[0], item) for item in value)
    if origin is dict:
        return {key: from_json(args[1], item) for key, item in value.items()}
    if dataclasses.is_dataclass(cls):
        hints = _hints(cls)
        if cls is Import:  # the kind says which of the four records it holds
            holds = {"drafter": Drafter, "capture": Capture, "log": Log, "target": Target}
            hints = {**hints, "record": holds[value["kind"]]}
        return cls(**{key: from_json(hints[key], item) if key in hints else item for key, item in value.items()})
    return value


@functools.cache  # a log has 100,000 windows of the same class
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _choose(args: tuple[Any, ...], value: Any) -> Any:
    options = [a for a in args if a is not type(None)]
    fits = [a for a in options if isinstance(a, type) and isinstance(value, a)]
    return fits[0] if fits else options[0]
