"""What is wrong with the drafter's own file, and what the run's engine would read differently in it.

Rests on the problems, fields, tensors and readings that the import noted (see `formats.drafters`), and on the coverage of
the draft vocabulary in a replay. A problem of a file is a warning until a replay or a log shows what it costs.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from eagle3dash.analysis.findings import fixes
from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.lengths import LOSS
from eagle3dash.analysis.findings.told import accept_lengths
from eagle3dash.formats.engines.states import SHOWN, engine_name
from eagle3dash.records import DrafterSpec, Finding, Gap, Severity

COVERAGE = 0.90  # of the labels: below that the draft vocabulary caps every position at 90 %
SWITCHES = {  # switch of the forward pass -> config key and what an engine that drops it computes
    "residual_norm": "norm_before_residual",
    "input_norm": "norm_before_fc",
    "fc_norm": "fc_norm",
    "feedback_norm": "norm_output",
    "head_norm": "the norm before lm_head",
    "double_norm": "the second norm of the hidden half",
    "attention_bias": "attention_bias",
    "rope": "the RoPE settings",
}


def wrong_vocab_map(e: Evidence) -> list[Finding | Gap]:
    """d2t that is empty, absolute, out of range, repeated, at odds with t2d, or absent."""
    problems = [p for p in e.drafter.problems if "d2t" in p or "t2d" in p]
    if not problems:
        return []
    evidence = {"problems": problems, "coverage": _coverage(e), **accept_lengths(e)}
    return [Finding("wrong-vocab-map", _cost(e), problems[0], evidence, fixes.MAP)]


def low_vocab_coverage(e: Evidence) -> list[Finding | Gap]:
    """The draft vocabulary lacks tokens that the target says often."""
    replay = e.wiring.trained_replay or e.replays.get("serving")
    covered = replay.get("coverage") if replay else None
    if covered is None or covered >= COVERAGE:
        return []
    spec = e.spec_of.spec
    title = f"The draft vocabulary holds {covered:.0%} of the tokens: the others can never be drafted"
    evidence = {"coverage": covered, "draft_vocab": spec.draft_vocab, "vocab": spec.vocab, "rows": replay.get("rows")}
    return [Finding("low-vocab-coverage", "warning", title, evidence, fixes.COVERAGE)]


def missing_weights(e: Evidence) -> list[Finding | Gap]:
    """A head that nobody can supply, or weights that the server did not find."""
    told = [p for p in e.drafter.problems if "no lm_head" in p] + _warned(e, "missing-weights")
    if not told:
        return []
    return [Finding("missing-weights", _cost(e), told[0], {"problems": told, **accept_lengths(e)}, fixes.MISSING)]


def unused_weights(e: Evidence) -> list[Finding | Gap]:
    """Weights of the file that the forward pass, or the server, has no place for."""
    names = [t.name for t in e.spec_of.tensor_list if t.use == "unused"]
    told = _warned(e, "unused-weights")
    if not names and not told:
        return []
    which = ", ".join(names[:4]) + (", .." if len(names) > 4 else "")
    title = f"{len(names)} weights of the drafter's file are not used: {which}" if names else told[0]
    return [Finding("unused-weights", "warning" if told else "info", title, {"names": names, "server": told}, fixes.UNUSED)]


def config_contradicts_weights(e: Evidence) -> list[Finding | Gap]:
    """Fields of config.json that the tensors belie."""
    fields = [f for f in e.spec_of.fields if f.use == "contradicting"]
    if not fields:
        return []
    title = f"config.json says {fields[0].path} = {fields[0].value}, and the file itself says otherwise"
    evidence = {"fields": [{"path": f.path, "value": f.value, "note": f.note} for f in fields]}
    return [Finding("config-contradicts-weights", "warning", title, evidence, fixes.CONFIG)]


def not_portable(e: Evidence) -> list[Finding | Gap]:
    """The run's engine computes something else from this file than its maker did."""
    name = SHOWN.get(engine_name(e.engine) or "")
    drafter = e.spec_of
    read = drafter.readings.get(f"as served by {name}")
    differs = _differences(drafter.spec, read) if read is not None else {}
    if not differs:
        return []
    keys = ", ".join(SWITCHES.get(switch, switch) for switch in differs)
    severity: Severity = "error" if e.engine_loss is not None and e.engine_loss.shown else "warning"
    title = f"{name} reads this drafter differently from its maker: {keys}"
    fix = (
        f"Serve it with an engine that honours {keys} (a replay of the reading \"as served by {name}\" shows the price), "
        "or train and export it without."
    )
    return [Finding("not-portable", severity, title, {"engine": name, "switches": differs, **accept_lengths(e)}, fix)]


def _differences(stored: DrafterSpec, read: DrafterSpec) -> dict[str, Any]:
    pairs = {f.name: (getattr(stored, f.name), getattr(read, f.name)) for f in dataclasses.fields(DrafterSpec)}
    return {name: {"file": _plain(a), "engine": _plain(b)} for name, (a, b) in pairs.items() if a != b}


def _plain(value: Any) -> Any:
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value


def _coverage(e: Evidence) -> float | None:
    return (e.wiring.trained_replay or {}).get("coverage")


def _warned(e: Evidence, name: str) -> list[str]:
    return [w["fact"] for log in e.log_records for w in log.settings.get("warnings", ()) if w["id"] == name]


def _cost(e: Evidence) -> Severity:
    """Error when even the replay on training features, with the best states, accepts nearly nothing."""
    rows = e.training_rows
    return "error" if rows is not None and rows.value - 1.0 < LOSS else "warning"
