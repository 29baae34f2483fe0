"""TensorRT-LLM's iteration log. It carries no acceptance: that is in /metrics (objects.py) and the bench report.

num_generation_tokens includes graph padding, so tokens / requests is no accept length. Facts: NVIDIA/TensorRT-LLM#3914.
"""

from __future__ import annotations

import re

from eagle3dash.formats.logs.collect import Found
from eagle3dash.formats.logs.lines import Line, number
from eagle3dash.records import Window

MARKS = ("[TRT-LLM]",)
STAMP = re.compile(r"\[(\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d)\]")
ITER = re.compile(r"\biter = (\d{1,12})")
RANK = re.compile(r"(?<![_\w])rank = (\d{1,6})")
NUMBERS = (
    ("num_scheduled_requests", re.compile(r"num_scheduled_requests\s?[:=] ?(\d{1,9})")),
    ("num_generation_tokens", re.compile(r"num_generation_tokens'?\s?[:=] ?(\d{1,9})")),
)
ELAPSED = re.compile(r"elapsed_time = ([\d.eE+-]{1,30})s")


def read(line: Line, found: Found) -> None:
    found.engine = found.engine or "trtllm"
    iteration = ITER.search(line.text)
    if not iteration:
        return
    stamp, rank, elapsed = (pattern.search(line.text) for pattern in (STAMP, RANK, ELAPSED))
    extra = {"iter": int(iteration.group(1)), "rank": int(rank.group(1)) if rank else None}
    extra |= {name: int(match.group(1)) for name, pattern in NUMBERS if (match := pattern.search(line.text))}
    extra["elapsed_s"] = number(elapsed.group(1)) if elapsed else None
    found.plain.add(
        Window(
            line.number,
            stamp.group(1) if stamp else None,
            f"TP{rank.group(1)}" if rank else None,
            running=extra.get("num_scheduled_requests"),
            extra=extra,
        )
    )
