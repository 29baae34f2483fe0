"""What a person says of a run that no file of it does: the settings, checked before they are kept."""

from __future__ import annotations

from typing import Any

from eagle3dash.analysis.served import expected
from eagle3dash.errors import BadInput
from eagle3dash.jobs.selection import MOST_STEPS
from eagle3dash.store import Store

SETTINGS = ("expected", "expected_kind", "steps", "temperature", "engine")
HOTTEST = 100.0


def checked(given: dict[str, Any]) -> dict[str, Any]:
    """The settings as they are kept; None takes one away. BadInput for a name or a value that makes no sense."""
    unknown = sorted(set(given) - set(SETTINGS))
    if unknown:
        raise BadInput(f"There is no setting {', '.join(unknown)}; there are {', '.join(SETTINGS)}.")
    expected(given, 1)  # says what is wrong with it
    steps, heat = given.get("steps"), given.get("temperature")
    if steps is not None and not (_number(steps) and int(steps) == steps and 1 <= steps <= MOST_STEPS):
        raise BadInput(f"steps is {steps!r}; K is a whole number from 1 to {MOST_STEPS}.")
    if heat is not None and not (_number(heat) and 0 <= heat <= HOTTEST):
        raise BadInput(f"temperature is {heat!r}; give the server's sampling temperature, 0 (greedy) or more.")
    if not isinstance(given.get("engine"), str | None):
        raise BadInput(f"engine is {given['engine']!r}; give a name: sglang, vllm, tensorrt-llm.")
    return {**given, "temperature": float(heat)} if heat is not None else dict(given)


def change(store: Store, run: str, given: dict[str, Any]) -> dict[str, Any]:
    """Changes some settings of a run and gives all that it has now. NotFound, or BadInput as in `checked`."""
    made = checked(given)
    expected({**store.run(run).settings, **made}, 1)  # numbers and their kind go together
    store.update_run(run, settings=made)
    return store.run(run).settings


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
