"""What is wrong with the drafter's own file, and what the run's engine would read differently in it.

Rests on the problems, fields, tensors and readings that the import noted (see `formats.drafters`), and on the coverage of
the draft vocabulary in a replay. A problem of a file is a warning until a replay or a log shows what it costs.
"""

from __future__ import annotations

from eagle3dash.analysis.findings import fixes
from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.lengths import LOSS
from eagle3dash.analysis.findings.told import accept_lengths
from eagle3dash.formats.engines import portability
from eagle3dash.records import Finding, Gap, Severity

COVERAGE = 0.90  # of the labels: below that the draft vocabulary caps every position at 90 %


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
    """The run's engine computes something else from this file than its maker did (of vLLM: whichever runner it uses)."""
    layers = e.target.record.layers if e.target else None
    served = portability.serving(e.spec_of, e.engine, e.version, layers)
    differs = {row: cell for row, cell in (served[0].cells.items() if served else ()) if cell.outcome == "differs"}
    differs = {row: cell for row, cell in differs.items() if all(other.cells.get(row) == cell for other in served)}
    if e.wiring.slots and e.wiring.served == e.wiring.trained:  # features show what was fed, whatever the engine's habit
        differs.pop("States fed to fc", None)
    if not differs:
        return []
    name = served[0].engine
    rows = ", ".join(row[:1].lower() + row[1:] if row != "RoPE" else row for row in differs)
    severity: Severity = "error" if e.engine_loss is not None and e.engine_loss.shown else "warning"
    evidence = {
        "engine": name,
        "versions": "; ".join(column.versions for column in served),
        "differences": [{"concern": row, "engine": cell.told} for row, cell in differs.items()],
        **accept_lengths(e),
    }
    title = f"{name} reads this drafter differently from its maker: {rows}"
    changes = "; ".join(dict.fromkeys(cell.change for cell in differs.values() if cell.change))
    fix = f'For {name}: {changes}. A replay of the reading "as served by {name}" shows the price.'
    return [Finding("not-portable", severity, title, evidence, fix)]


def _coverage(e: Evidence) -> float | None:
    return (e.wiring.trained_replay or {}).get("coverage")


def _warned(e: Evidence, name: str) -> list[str]:
    return [w["fact"] for log in e.log_records for w in log.settings.get("warnings", ()) if w["id"] == name]


def _cost(e: Evidence) -> Severity:
    """Error when even the replay on training features, with the best states, accepts nearly nothing."""
    rows = e.training_rows
    return "error" if rows is not None and rows.value - 1.0 < LOSS else "warning"
