"""What a page draws, put together from a run and the answers about it: stages, series, points, lines of a table.

Between the store's and the questions' documents and `charts`. Draws nothing and computes no statistic of its own.
"""

from __future__ import annotations

from typing import Any

from eagle3dash.analysis.served import served
from eagle3dash.charts.acceptance import Series, by_role
from eagle3dash.charts.theme import ROLES
from eagle3dash.jobs.questions import Question
from eagle3dash.jobs.selection import claims, default_slots, labels, steps_for
from eagle3dash.records import Import, Run
from eagle3dash.web import proven, state

DRAWN_POINTS = 1000
LOOKED_AT = 40  # newest runs among which a pair to compare is looked for
TOP = 12  # combinations drawn unless all are asked for


def replays(run: Run, steps: int, reading: str | None = None) -> dict[str, Question]:
    """The replays that the captures of a run allow, by role."""
    roles = [role for role in ("training", "serving") if run.drafter and run.capture(role)]
    return {role: Question("replay", run.name, {"capture": role, "steps": steps, "reading": reading}) for role in roles}


def steps_of(run: Run) -> int:
    """K of all pictures of a run."""
    return steps_for(run)


def served_of(run: Run) -> dict[str, Any] | None:
    """The served acceptance of the run's logs; None where no log tells it."""
    return served([log.record for log in run.logs])


def acceptance_series(run: Run, known: dict[str, dict[str, Any] | None]) -> list[Series]:
    """Served and replayed, in the order of the four numbers, those that are known."""
    found = {**known, "served": served_of(run)}
    return [by_role(role, found[role]) for role in ("training", "serving", "served") if found.get(role)]


def replayed(series: list[Series]) -> list[Series]:
    """The series that were not served."""
    return [one for one in series if one.look is not ROLES["served"]]


def top(rows: list[dict[str, Any]], trained: Any, served: Any, everything: bool) -> list[dict[str, Any]]:
    """The best combinations, and the trained and the served one wherever they stand, in the order given."""
    return [row for rank, row in enumerate(rows) if everything or rank < TOP or row["states"] in (trained, served)]


def log_points(log: Import) -> list[dict[str, Any]]:
    """Windows of one log over time, aggregated by the store; warm-up left out. NaN becomes None."""
    frame = state.store().frame("log_windows", log=log.sha256, max_points=DRAWN_POINTS)
    return [point for point in records(frame) if not point["warmup"]]


def point_of(log: Import) -> str:
    """What a point of `log_points` is: a file of replies has one for each request, a log one for each line."""
    return "request" if log.record.requests else "window"


def records(frame: Any) -> list[dict[str, Any]]:
    """Rows of a data frame as plain Python values; a number that is none (NaN, NA) is None."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [
        {key: item() if (item := getattr(value, "item", None)) else value for key, value in row.items()} for row in rows
    ]


def marked(run: Run) -> tuple[list[Any] | None, list[Any] | None]:
    """The states that the drafter was trained on and those it is served: as the diagnosis proved, where there is one.

    Before that, trained: the slots that the training capture's convention feeds; served: what the serving capture claims.
    """
    document = proven.diagnosis(run)
    wiring = document["wiring"] if document else {}
    trained, served = wiring.get("trained_states"), wiring.get("served_states")
    return trained or _fed(run, "training"), served or _fed(run, "serving")


def _fed(run: Run, role: str) -> list[Any] | None:
    capture = run.capture(role)
    if capture is None or run.drafter is None:
        return None
    record, drafter = capture.record, run.drafter.record
    if record.aux is None and len(record.states) != drafter.spec.num_aux:
        return None
    names = labels(record, drafter)
    return [names[slot] for slot in default_slots(record, drafter)]


def related(runs: list[Run]) -> list[Run]:
    """Of runs, newest first, the pair that has most files in common, the newest of such pairs; the newest two where none
    has any."""
    newest = runs[:LOOKED_AT]
    held = [{item.sha256 for item in run.imports} for run in newest]
    pairs = [(i, j) for j in range(len(newest)) for i in range(j)]
    best = max(pairs, key=lambda pair: (len(held[pair[0]] & held[pair[1]]), -pair[0] - pair[1]), default=None)
    return runs[:1] if best is None else [newest[i] for i in best]


def in_common(runs: list[Run]) -> str:
    """Which files some runs share, in a sentence; they are what makes numbers comparable."""
    if len(runs) < 2:
        return "Choose a second run to compare with."
    held = [{item.sha256: item for item in run.imports} for run in runs]
    shared = [item for sha, item in held[0].items() if all(sha in other for other in held[1:])]
    kinds = sorted({f"{item.record.role} capture" if item.kind == "capture" else item.kind for item in shared})
    who = "Both" if len(runs) == 2 else "All"
    if not kinds:
        return "These runs have no file in common: differences between them may be of the texts, not of the serving."
    return f"{who} have the same {', '.join(kinds)}."


def facts(run: Run) -> dict[str, Any]:
    """Everything that may differ between two runs, by name, for the settings diff."""
    found: dict[str, Any] = {f"run · {name}": value for name, value in run.settings.items()}
    found["K, drafted tokens a round"] = steps_for(run)
    if run.drafter:
        record = run.drafter.record
        found |= {
            "drafter · flavour": record.flavour,
            "drafter · content": run.drafter.sha256[:12],
            "drafter · reading": record.reading,
        }
        found |= {"drafter · states by its config": record.states, "drafter · layer ids in its config": record.layer_ids}
        found |= {f"drafter · {field.path}": field.value for field in record.fields}
    for role in ("training", "serving"):
        if capture := run.capture(role):
            found |= _capture_facts(run, role, capture)
    for log in run.logs:
        kept = {"engine": log.record.engine, "version": log.record.version, **log.record.settings}
        found |= {f"server · {name}": value for name, value in kept.items()}
    return found


def _capture_facts(run: Run, role: str, capture: Import) -> dict[str, Any]:
    record = capture.record
    claimed = claims(record, run.drafter.record) if run.drafter else {}
    names = [state if state is not None else claimed.get(slot) for slot, state in enumerate(record.states)]
    return {
        f"{role} · format": record.format,
        f"{role} · states": names,
        f"{role} · texts": len(record.sequences),
        f"{role} · tokens": sum(sequence.tokens for sequence in record.sequences),
        f"{role} · dtype": record.dtype,
    }


def differences(runs: list[Run], only: bool) -> list[dict[str, Any]]:
    """A line a fact, a column a run; with `only`, the lines in which the runs are not all the same."""
    tables = [facts(run) for run in runs]
    names = list(dict.fromkeys(name for table in tables for name in table))
    lines = [
        {"setting": name, **{run.name: table.get(name) for run, table in zip(runs, tables, strict=True)}} for name in names
    ]
    return [line for line in lines if not only or len({repr(line[run.name]) for run in runs}) > 1]
