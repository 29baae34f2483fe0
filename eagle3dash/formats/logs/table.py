"""acceptance.csv of speculators' evaluation: one row a data set, acceptance by position unconditional.

Facts: speculators eval: num_drafts, num_draft_tokens, num_accepted_tokens, acceptance_length, acceptance_at_pos_i.
"""

from __future__ import annotations

import csv
from pathlib import Path

from eagle3dash.errors import BadInput
from eagle3dash.formats.logs.collect import Found
from eagle3dash.formats.logs.lines import CAP, Tally, number, whole
from eagle3dash.records import Progress, Window

MOST_ROWS = 10_000


def read(path: Path, found: Found, tally: Tally, progress: Progress) -> None:
    """Every row with an acceptance length becomes a window. Raises BadInput for what is no table."""
    found.kind, found.engine = "bench", found.engine or "vllm"
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        head = file.readline(CAP)
        rows = csv.DictReader(
            (line.replace("\0", "") for line in iter(lambda: file.readline(CAP), "")), head.strip().split(",")
        )
        try:
            for row in rows:
                tally.lines += 1
                if tally.lines > MOST_ROWS:
                    break
                _row(row, tally.lines + 1, found)
        except csv.Error as error:
            raise BadInput(f"{path.name}: not a readable table ({error}). Export it as CSV again.") from error
    progress(1, 1, f"reading {path.name}")
    found.definitions |= {"accept_length": "1 + accepted / drafts, bonus counted", "survival": "unconditional"}


def _row(row: dict[str, str], line: int, found: Found) -> None:
    length = number(row.get("acceptance_length"))
    rounds, drafted, accepted = (whole(row.get(n)) for n in ("num_drafts", "num_draft_tokens", "num_accepted_tokens"))
    if length is None or length < 1.0:
        found.problem(
            f"line {line}: acceptance_length is {str(row.get('acceptance_length'))[:20]!r}; expected 1 or more. Left out."
        )
        return
    if rounds and accepted is not None and abs(1 + accepted / rounds - length) > 0.011:
        found.problem(
            f"line {line}: inconsistent: 1 + accepted / drafts is {1 + accepted / rounds:.3f}, printed {length:g}."
        )
    places = [number(text) for name, text in row.items() if name and name.startswith("acceptance_at_pos_")]
    survival = tuple(p for p in places if p is not None and 0 <= p <= 1)
    survival = survival if survival and len(survival) == len(places) else None
    found.steps = found.steps or (len(survival) if survival else None)
    rate = accepted / drafted if accepted is not None and drafted else None
    found.server.add(Window(line, None, None, length, rate, accepted, drafted, rounds, survival))
