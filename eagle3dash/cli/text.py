"""Documents as text for a terminal: the verdict first, then its numbers. Missing numbers are "no data"."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from eagle3dash.analysis import telling, wording

NO_DATA = "no data"
MOST_ROWS = 12
MOST_CHANGES = 5
NUMBERS = {
    "expected": "expected from training, per row",
    "replayed_training_rows": "replayed on training features, per row",
    "replayed_training": "replayed on training features",
    "replayed_serving": "replayed on serving features",
    "served": "served",
}


def number(value: Any, digits: int = 4) -> str:
    """A number as a person reads it."""
    if value is None:
        return NO_DATA
    return wording.number(value, digits).replace(",", "") if isinstance(value, float) else str(value)


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Columns aligned; numbers to the right."""
    cells = [[number(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [list(head), *cells]) for column in range(len(head))]

    def line(row: Sequence[str]) -> str:
        padded = (cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        return "  ".join(padded).rstrip()

    return "\n".join(line(row) for row in [list(head), *cells])


def states(names: Sequence[Any]) -> str:
    """[0, 2, 15] -> 0,2,15"""
    return ",".join(str(name) for name in names)


def replay(document: dict[str, Any]) -> str:
    """The `replay` document."""
    length = number(document["accept_length"])
    top = (
        f"accept length {length} per round (bonus token included), states {states(document['states'])}, "
        f"K = {document['steps']}: {document['rounds']} rounds\n"
        f"accept length {number(document['row_accept_length'])} per row: {document['rows']} rows; "
        f"draft vocabulary covers {number(document['coverage'])} of the tokens\n"
    )
    columns = ("survival", "alpha", "row_survival", "step_accuracy")
    rows = [[step + 1, *(document[name][step] for name in columns)] for step in range(document["steps"])]
    head = ("token", "survival", "alpha", "survival per row", "accuracy per row")
    return f"{top}\n{table(head, rows)}"


def sweep(document: dict[str, Any]) -> str:
    """The `sweep` document."""
    rows = document["rows"]
    if not rows:
        return "No combination could be tried."
    best = rows[0]
    top = f"best states: {states(best['states'])}, accept length {number(best['row_accept_length'])} per row"
    shown = [
        (states(row["states"]), row["row_accept_length"], row["low"], row["high"], row["accept_length"])
        for row in rows[:MOST_ROWS]
    ]
    more = f"\n... and {len(rows) - MOST_ROWS} worse ones (--json has all)" if len(rows) > MOST_ROWS else ""
    return f"{top}\n\n{table(('states', 'per row', 'low', 'high', 'per round'), shown)}{more}"


def features(document: dict[str, Any]) -> str:
    """The `features` document."""
    top = f"{document['aligned_tokens']} aligned tokens, lag {number(document['lag'])}"
    head = ("serving slot", "training state", "cosine", "relative error", "norm ratio")
    names = ("serving_slot", "training_state", "cosine", "relative_error", "norm_ratio")
    cells = sorted(document["cells"], key=lambda cell: (cell["serving_slot"], _order(cell["relative_error"])))
    return f"{top}\n\n{table(head, [[cell[name] for name in names] for cell in cells])}"


def diagnose(document: dict[str, Any]) -> str:
    """The `diagnose` document."""
    found = document["findings"]
    if document.get("verdict"):
        verdict = document["verdict"]
        top = verdict if isinstance(verdict, str) else verdict.get("text", "")
    else:
        top = found[0]["title"] if found else "No fault found."
    parts = [_wrap(top), _numbers(document), _bullets("", document["notes"]), _drops(document)]
    parts += [_finding(finding) for finding in found]
    parts += [_changes(role, rows) for role, rows in document.get("changes", {}).items() if rows]
    gaps = document["could_not_check"]
    if gaps:
        parts.append("could not check:\n" + _bullets("", [f"{gap['id']}: {gap['needs']}" for gap in gaps]))
    passed = [row["id"] for row in document["checked"] if row["status"] == "passed"]
    parts.append(_wrap(f"checked, nothing found: {', '.join(passed) or 'nothing'}"))
    return "\n\n".join(parts)


def _numbers(document: dict[str, Any]) -> str:
    """The four numbers with what they rest on, and what each is."""
    rows = []
    for name, label in NUMBERS.items():
        told = document["lengths"].get(name) or {}
        of = next((f"{told[unit]} {unit}" for unit in ("rounds", "rows", "windows") if told.get(unit)), "-")
        bounds = (number(told[end]) if told.get(end) is not None else "-" for end in ("low", "high"))
        rows.append((label, document["numbers"].get(name), *bounds, of))
    head = (f"accept length, K = {document['steps']}, bonus token included", "", "95 % low", "high", "of")
    meanings = [f"{label}: {wording.NUMBERS[name][1]}" for name, label in NUMBERS.items()]
    return f"{table(head, rows)}\n\n{_bullets('', meanings)}"


def _bullets(indent: str, lines: Iterable[str]) -> str:
    return "\n".join(_wrap(f"- {line}", indent) for line in lines)


def _changes(role: str, rows: Sequence[dict[str, Any]]) -> str:
    """The best of what was tried, the drafter unchanged, and what they come to."""
    able = [row for row in rows if not row["on"] or row["clear"]]
    shown = [row for at, row in enumerate(able) if at < MOST_CHANGES or row["family"] == telling.BASELINE or row["marks"]]
    names = ("row_accept_length", "low", "high", "likelier")
    lines = [(row["name"], *(row[name] for name in names), row["outcome"]) for row in shown]
    head = (f"what each change does, {role} features", "per row", "low", "high", "likelier", "outcome")
    more = f"\n... and {len(rows) - len(shown)} more (--json has all)" if len(rows) > len(shown) else ""
    told = [_wrap(" ".join(telling.told(rows, role))), f"{table(head, lines)}{more}", _wrap(f"({telling.COLUMNS})")]
    return "\n\n".join(told)


def _drops(document: dict[str, Any]) -> str:
    """What is lost between two numbers, and why."""
    lines = [
        f"{NUMBERS[drop['from']]} -> {NUMBERS[drop['to']]}: {wording.signed(-drop['tokens'], 2)}, {drop['why']}"
        for drop in document["drops"]
    ]
    return "\n".join(_wrap(line) for line in [*lines, f"({document['acceptance']['text']})"])


def added(document: dict[str, Any]) -> str:
    """What an import brought."""
    lines = [f"added to {document['run']}:"]
    for item in document["added"]:
        lines.append(f"  {item['kind']} {item['name']}{' (known already: stored once)' if item['known'] else ''}")
        lines += [f"    {one['field']}: {one['value']} ({one['why']})" for one in item["inferred"]]
        lines += [f"    note: {problem}" for problem in item["problems"]]
        if item["likely"]:
            lines.append("    the file does not say its states; import it again with the right ones:")
        lines += [f"      --states {','.join(map(str, one['states']))}  ({one['why']})" for one in item["likely"]]
    return "\n".join(lines)


def runs(found: list[dict[str, Any]]) -> str:
    """The list of runs."""
    if not found:
        return "No runs yet. `eagle3dash demo` loads two; `eagle3dash import PATH...` makes one of your files."
    kinds = ("drafter", "training", "serving", "target")
    rows = [[run["name"], *("yes" if run[kind] else "-" for kind in kinds), len(run["logs"])] for run in found]
    return table(("run", *kinds, "logs"), rows)


def _finding(finding: dict[str, Any]) -> str:
    evidence = "; ".join(f"{name}: {_short(value)}" for name, value in finding["evidence"].items())
    head = f"{finding['severity']}: {finding['id']}: {finding['title']}"
    sure = _wrap(wording.how_sure(finding), "  ")
    fix = _bullets("    ", wording.by_engine(finding["fix"]))
    return "\n".join([_wrap(head), _wrap(f"evidence: {evidence}", "  "), sure, "  fix:", fix])


def _short(value: Any) -> str:
    if isinstance(value, list) and (len(value) > 8 or any(isinstance(item, dict) for item in value)):
        return f"{len(value)} of them"
    if isinstance(value, list):
        return ", ".join(_short(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key} {_short(item)}" for key, item in value.items())
    return number(value)


def _wrap(text: str, indent: str = "") -> str:
    lines = [
        textwrap.wrap(line, 100, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)
        for line in text.splitlines()
    ]
    return "\n".join(line for part in lines for line in part)


def _order(value: float | None) -> float:
    return float("inf") if value is None else value
