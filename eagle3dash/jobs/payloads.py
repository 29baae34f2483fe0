"""A question with everything it needs, as plain JSON: which files of the run, which slots, how many steps, and its key.

Pure functions of a `Run`: no store, no file but our own sources. A payload is {"kind", "key", "args", "imports"}; a
diagnosis has "settings", "parts" (payloads of the questions it rests on) and "gaps" (why a part cannot be asked) as well.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eagle3dash.analysis.findings.lengths import on_steps
from eagle3dash.analysis.served import served
from eagle3dash.analysis.sweep import is_sampled
from eagle3dash.errors import BadInput, Eagle3Error, Missing
from eagle3dash.jobs.selection import Label, labels, slots_for, steps_for, worth_exact
from eagle3dash.records import Import, Role, Run, to_json

ROLES = ("training", "serving")
PLAYED = ("drafter", "target", "training")  # for a replay; the training capture lends its loss masks to the serving one
BULK = ("windows", "requests", "sequences", "tensor_list", "fields")  # follow from the content, which is hashed already
COMPUTES = ("drafter", "analysis", "jobs/tasks")  # the code that an answer depends on
LACKS = {
    "drafter": "no drafter. Add its folder, with config.json and weights",
    "training": "no training capture. Add one",
    "serving": "no serving capture. Add one",
}


def replay(run: Run, args: dict[str, Any]) -> dict[str, Any]:
    """Replay of one combination on one capture."""
    drafter, role = _need(run, "drafter"), _role(run, args)
    capture = _need(run, role)
    slots = slots_for(args.get("states"), capture.record, drafter.record)
    names = labels(capture.record, drafter.record)
    return replay_of(_imports(run, *PLAYED, role), role, slots, names, steps_for(run, args.get("steps")))


def replay_of(imports: dict[str, Any], role: str, slots: Sequence[int], names: list[Label], steps: int) -> dict[str, Any]:
    """The same from slots already chosen and imports already in JSON."""
    args = {"capture": role, "slots": list(slots), "states": [names[slot] for slot in slots], "steps": steps}
    return _made("replay", args, {name: imports[name] for name in (*PLAYED, role) if name in imports})


def sweep(run: Run, args: dict[str, Any]) -> dict[str, Any]:
    """Every ordered choice of A states of one capture."""
    drafter, role = _need(run, "drafter"), _role(run, args)
    capture = _need(run, role)
    names = labels(capture.record, drafter.record)
    sampled = is_sampled([sequence.tokens for sequence in capture.record.sequences])
    always = [list(slots) for slots in worth_exact(capture.record, drafter.record)] if sampled else []
    made = {"capture": role, "labels": names, "always": always, "steps": steps_for(run, args.get("steps"))}
    return _made("sweep", made, _imports(run, *PLAYED, role))


def changes(run: Run, args: dict[str, Any]) -> dict[str, Any]:
    """One thing changed at a time, on one capture; rests on the sweep or, for the serving capture, on the features."""
    drafter, role = _need(run, "drafter"), _role(run, args)
    capture, steps = _need(run, role), steps_for(run, args.get("steps"))
    names = labels(capture.record, drafter.record)
    slots = slots_for(None, capture.record, drafter.record)
    parts = {}
    if role == "training":
        parts["sweep"] = sweep(run, {"capture": role, "steps": steps})
    elif run.capture("training") is not None:
        parts["features"] = features(run, {})
    reported = on_steps(served([log.record for log in run.logs]), steps) if role == "serving" else None
    made = {"capture": role, "slots": list(slots), "labels": names, "steps": steps}
    made["served"] = reported.value if reported else None
    made["guided"] = role == "serving" and run.capture("training") is not None
    return {**_made("changes", made, _imports(run, *PLAYED, role)), "parts": parts}


def features(run: Run, args: dict[str, Any]) -> dict[str, Any]:
    """All training states against all serving slots. Needs no drafter; with one, its claims name the serving slots. A
    target with a vocabulary lends the text of the tokens."""
    drafter = run.drafter.record if run.drafter else None
    made = {f"{role}_labels": labels(_need(run, role).record, drafter) for role in ROLES}
    readable = ["target"] if run.target is not None and run.target.record.has_text else []
    return _made("features", made, _imports(run, *ROLES, *readable))


def diagnose(run: Run, args: dict[str, Any]) -> dict[str, Any]:
    """The whole chain. A part that the run has no files for is a gap and no error; a run with nothing at all is one."""
    if not run.imports and not run.settings.get("refused"):
        raise Missing(f"The run {run.name} is empty. Add a drafter, captures and logs to it.", "drafter")
    steps = {"steps": steps_for(run, args.get("steps"))}
    wanted = {
        "training": (replay, {"capture": "training", **steps}),
        "serving": (replay, {"capture": "serving", **steps}),
        "sweep": (sweep, {"capture": "training", **steps}),
        "features": (features, {}),
        **{f"changes of {role}": (changes, {"capture": role, **steps}) for role in ROLES},
    }
    parts, gaps = {}, {}
    for name, (ask, asked) in wanted.items():
        try:
            parts[name] = ask(run, asked)
        except Eagle3Error as error:
            gaps[name] = {"message": str(error), "needs": getattr(error, "needs", None)}
    imports = _imports(run, "drafter", "target", *ROLES)
    imports["logs"] = [to_json(log) for log in run.logs]
    made = _made("diagnose", steps, imports, run.settings)
    return {**made, "run": run.name, "settings": run.settings, "parts": parts, "gaps": gaps}


def role_of(run: Run) -> Role:
    """The capture that is meant when nobody says: the training capture, else the serving one."""
    return "serving" if run.capture("training") is None and run.capture("serving") is not None else "training"


@functools.cache
def code_version() -> str:
    """A hash of the sources of the packages that compute."""
    root, digest = Path(__file__).parent.parent, hashlib.sha256()
    for package in COMPUTES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _made(
    kind: str, args: dict[str, Any], imports: dict[str, Any], settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    identify = _identity if kind == "diagnose" else _computed_from
    identity = {name: identify(item) for name, item in imports.items()}
    text = json.dumps([kind, args, identity, settings, code_version()], sort_keys=True)
    return {"kind": kind, "key": hashlib.sha256(text.encode()).hexdigest(), "args": args, "imports": imports}


def _identity(item: Any) -> Any:
    """What a file is, whatever it is called: its content, and what a person may have corrected."""
    if isinstance(item, list):
        return [_identity(each) for each in item]
    return [item["sha256"], {name: value for name, value in item["record"].items() if name not in BULK}]


def _computed_from(item: dict[str, Any]) -> Any:
    """What a replay depends on: labels and slots are in its arguments, and what a config only claims changes no number."""
    record = item["record"]
    if item["kind"] != "drafter":
        return item["sha256"]
    return [record["tensors"], record["spec"], record["reading"], record["readings"]]


def _imports(run: Run, *names: str) -> dict[str, Any]:
    found = {name: _find(run, name) for name in names}
    return {name: to_json(item) for name, item in found.items() if item is not None}


def _find(run: Run, name: str) -> Import | None:
    if name in ROLES:
        return run.capture(name)  # type: ignore[arg-type]
    return run.drafter if name == "drafter" else run.target


def _need(run: Run, name: str) -> Import:
    found = _find(run, name)
    if found is None:
        raise Missing(f"This run has {LACKS[name]}.", name)
    return found


def _role(run: Run, args: dict[str, Any]) -> Role:
    role = args.get("capture") or role_of(run)
    if role not in ROLES:
        raise BadInput(f"There is no capture {role!r}; it is training or serving.")
    return role
