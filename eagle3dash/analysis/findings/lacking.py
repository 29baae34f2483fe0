"""What a run lacks for a check, in one style: every file that is missing, by name, or why those that are there do not do.

Knows no check: only what each need of a check rests on.
"""

from __future__ import annotations

from eagle3dash.analysis.features import ENOUGH
from eagle3dash.analysis.findings.evidence import Check, Evidence

FILES = {
    "drafter": "the drafter",
    "training": "a training capture",
    "serving": "a serving capture",
    "any": "a training or serving capture",
    "target": "the target's embeddings and head",
    "log": "a server log or metrics",
}
RESTS_ON = {  # a need -> the files behind it
    "features": ("training", "serving"),
    "aligned": ("training", "serving"),
    "trained": ("drafter", "training"),
    "replay_training": ("drafter", "training"),
    "replay_serving": ("drafter", "serving"),
    "replay_any": ("drafter", "any"),
    "changes": ("drafter", "any"),
}
REPLAYS = {"trained", "replay_training", "replay_serving", "replay_any", "changes"}
PARTS = {  # a need -> the answers whose failure explains that it is not there
    "replay_training": ("training",),
    "replay_any": ("training", "serving"),
    "trained": ("training", "sweep"),
    "changes": ("changes of training", "changes of serving", "training", "serving"),
    "replay_serving": ("serving",),
    "features": ("features",),
    "aligned": ("features",),
}


def lacking(check: Check, e: Evidence) -> str | None:
    """What a person would have to add for this check, or None when it can be made."""
    unmet = [need for need in check.needs if not _have(need, e)]
    if not unmet:
        return None
    wanted = {file for need in unmet for file in RESTS_ON.get(need, (need,))}
    if _borrows(unmet, e):
        wanted.add("target")
    files = [file for file in FILES if file in wanted and not _there(file, e)]
    if not files:
        return _why(unmet[0], e)
    both = {"training", "serving"} <= {file for need in check.needs for file in RESTS_ON.get(need, (need,))}
    names = [
        FILES[file] + (" of the same texts" if both and file == "serving" else "") + _refused(file, e) for file in files
    ]
    return f"add {_listed(names)}"


def _refused(file: str, e: Evidence) -> str:
    """A file was given, and nobody can use it."""
    return f" ({e.refused[file].file} can't be used)" if file in e.refused else ""


def _borrows(unmet: list[str], e: Evidence) -> bool:
    """Whether the replays of these needs take embeddings or head from the target."""
    drafter = e.spec_of
    whole = drafter is None or (drafter.has_embedding and drafter.has_head)
    return not whole and bool(REPLAYS & set(unmet))


def _there(file: str, e: Evidence) -> bool:
    if file == "any":
        return e.training is not None or e.serving is not None
    return bool(e.logs) if file == "log" else getattr(e, file) is not None


def _have(need: str, e: Evidence) -> bool:
    if need in ("drafter", "training", "serving", "target"):
        return getattr(e, need) is not None
    known = {
        "log": e.served is not None,
        "features": e.features is not None,
        "aligned": bool(e.wiring.slots),
        "trained": e.wiring.trained is not None,
        "replay_training": "training" in e.replays,
        "replay_serving": "serving" in e.replays,
        "replay_any": bool(e.replays),
        "changes": bool(e.changes),
    }
    return known[need]


def _why(need: str, e: Evidence) -> str:
    """The files are there, and do not do: why."""
    gap = next((e.gaps[part] for part in PARTS.get(need, ()) if part in e.gaps), None)
    if gap is not None:
        return gap["message"].rstrip(".")
    if need == "log":
        return "add a log that tells acceptance: no line of those here does"
    if need == "aligned":
        shared = e.features["aligned_tokens"] if e.features else 0
        return f"add captures of the same texts: these share {shared:,} tokens, and {ENOUGH} or more are needed"
    if need == "trained":
        return "add a training capture on which the drafter works: here no choice of states makes it accept anything"
    return "the replays that it rests on were not made"


def _listed(names: list[str]) -> str:
    """the drafter, a training capture and a serving capture"""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
