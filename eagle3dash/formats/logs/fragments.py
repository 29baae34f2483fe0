"""JSON pasted into a log or cut out of a reply: consecutive lines of `"name": value` become one object.

Only names that objects.py knows are kept. Facts: the forms that people paste, tests/formats/loglines.txt.
"""

from __future__ import annotations

import json
import re

from eagle3dash.formats.logs.collect import Found
from eagle3dash.formats.logs.lines import Line
from eagle3dash.formats.logs.objects import DRAFTED, PER_REQUEST, SUMMARY, TENSORRT, TIMINGS, take

NUMBERS = (
    "numRequestsWithDraftTokens",
    "acceptanceLength",
    "draft_n",
    "predicted_n",
    "predicted_per_second",
    "num_spec_tokens",
)
KNOWN = {*PER_REQUEST, *DRAFTED, *TIMINGS, *TENSORRT, *NUMBERS, "per_step_drafted", "prompt_tokens", "completion_tokens"}
KNOWN |= set(SUMMARY) - {"acceptance_length"}
MARKS = tuple(f'"{name}"' for name in sorted(KNOWN - {"prompt_tokens", "completion_tokens"}))
PAIR = re.compile(r'"([A-Za-z_]{3,40})"\s{0,4}:\s{0,4}(\[[\d, ]{0,60000}\]|-?\d[\d.eE+-]{0,30}|null|true|false)')
GAP = 12  # lines between two names of one object


def read(line: Line, found: Found) -> None:
    pairs = [(name, value) for name, value in PAIR.findall(line.text) if name in KNOWN]
    waiting = found.state.setdefault("fragment", {})
    if waiting and (line.number - waiting["line"] > GAP or any(name in waiting for name, _ in pairs)):
        finish(found)
        waiting = found.state.setdefault("fragment", {})
    for name, text in pairs:
        if name in waiting:
            finish(found)
            waiting = found.state.setdefault("fragment", {})
        waiting.setdefault("first", line.number)
        waiting["line"] = line.number
        try:
            waiting[name] = json.loads(text)
        except ValueError:
            found.problem(f"line {line.number}: {name} is {text[:30]!r}, not a number; left out.")


def finish(found: Found) -> None:
    obj = found.state.pop("fragment", {})
    first = obj.pop("first", 0)
    if obj.keys() - {"line"}:
        take(obj, {}, first, f"line {first}", found)
