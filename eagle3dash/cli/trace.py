"""`trace`: what the drafter computes on one text, as a safetensors file to compare with an engine's own numbers."""

from __future__ import annotations

import json
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

from eagle3dash import formats
from eagle3dash.errors import BadInput
from eagle3dash.jobs.selection import DEFAULT_STEPS, MOST_STEPS, default_slots
from eagle3dash.records import Import


def run(asked: Namespace) -> int:
    """Reads the files, computes, writes --out and prints its shapes."""
    from eagle3dash.jobs.tasks.trace import write  # here: it loads torch, which no other command needs at once

    if not asked.out.absolute().parent.is_dir():
        raise BadInput(f"The folder of {asked.out} does not exist. Make it, or give another --out.")
    with tempfile.TemporaryDirectory(prefix="eagle3dash-") as folder:
        staging = Path(folder)
        drafter = _one(asked.drafter, staging, "drafter")
        target = _one(asked.target, staging, "target") if asked.target else None
        capture = _one(asked.capture, staging, "serving", drafter.record.spec.target_hidden)
        if len(capture.record.sequences) != 1:
            count = len(capture.record.sequences)
            raise BadInput(f"--capture holds {count} texts; a trace is of one. Give the file of one text.")
        steps = asked.steps if asked.steps is not None else drafter.record.steps or DEFAULT_STEPS
        if not 1 <= steps <= MOST_STEPS:
            raise BadInput(f"--steps {steps}: a chain has 1 to {MOST_STEPS} steps.")
        slots = default_slots(capture.record, drafter.record)
        records = drafter.record, capture.record, target and target.record
        shapes = write(asked.out, *records, staging, slots, steps, asked.reading)
    document = {"out": str(asked.out), "steps": steps, "slots": list(slots), "shapes": shapes}
    words = "\n".join(f"{name} {shape}" for name, shape in shapes.items())
    print(json.dumps(document) if asked.json else f"{asked.out}: K = {steps}, slots {list(slots)}\n{words}")
    return 0


def _one(paths: list[Path], staging: Path, role: str, width: int | None = None) -> Import:
    found: list[Any] = formats.read(paths, staging, role=role, width=width)
    kind = "capture" if role == "serving" else role
    fits = [item for item in found if item.kind == kind]
    if len(fits) != 1:
        raise BadInput(f"{', '.join(map(str, paths))} holds {len(fits)} things of kind {kind}; one was expected.")
    return fits[0]
