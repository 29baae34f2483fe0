"""A diagnosis as a report to attach to a ticket: what stands in it, in order, as plain blocks; and the same as Markdown.

`charts.report` makes the HTML of the same blocks. Every text may come out of a file (names, evidence, settings): blocks
are plain text, and each writer escapes all of it. Knows no file, no clock, no chart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eagle3dash.analysis import telling
from eagle3dash.analysis.held import SLOTS, rows_of
from eagle3dash.analysis.wording import NUMBERS, by_engine, how_sure, name_of, number, signed, spread, value

LONGEST = 2400  # characters of one text
MOST_ROWS = 40
MOST_CHANGES = 12
OUTCOMES = ("failed", "noted", "could not check", "passed")
_MARKDOWN = re.compile(r"([\\`*_\[\]<>$|~&]|:(?=//)|(?<=www)\.|^[#+=-]|(?<=^\d)[.)])")
_NAMES = re.compile(r"([@#])(?=\w)")  # a mention of a person or of another ticket


@dataclass(frozen=True)
class Table:
    """Rows of texts under a head. `left_out`: rows beyond those shown."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0


@dataclass(frozen=True)
class Section:
    """A heading with its blocks: a text is a paragraph, a tuple of texts a list. `chart`: which pictures go here."""

    title: str
    blocks: tuple[str | tuple[str, ...] | Table, ...]
    chart: str = ""
    level: int = 2


def sections(document: dict[str, Any], about: dict[str, Any]) -> list[Section]:
    """The report of a `diagnose` document. about: run, made, settings, notes, files, versions (see `jobs.summary`)."""
    worst = next((f for f in document["findings"] if f["severity"] != "info"), None)
    change = ("What to change:", by_engine(worst["fix"])) if worst else ()
    return [
        Section(f"Where the accepted tokens of {about['run']} went", (document["verdict"], *change), level=1),
        Section("Four numbers on one scale", _numbers(document), "waterfall"),
        Section("What was found", () if document["findings"] else ("No fault was found.",)),
        *(_finding(finding, finding is worst) for finding in document["findings"]),
        *(_changes(role, rows) for role, rows in document["changes"].items() if rows),
        Section("More pictures", (), "more"),
        Section("What was checked", _checked(document)),
        Section("Settings of the run", (_pairs(about["settings"]), *((about["notes"],) if about["notes"] else ()))),
        Section("Files", (_files(about["files"]),)),
        Section("Made by", (_pairs({**about["versions"], "report made": about["made"]}),)),
    ]


def _numbers(document: dict[str, Any]) -> tuple[Any, ...]:
    rows = []
    for name, (label, meaning) in NUMBERS.items():
        told = document["lengths"].get(name, {})
        count = next((f"{told[unit]:,} {unit}" for unit in ("rounds", "rows", "windows") if told.get(unit)), "")
        rows.append(
            (label, number(document["numbers"].get(name)), spread(told.get("low"), told.get("high")), count, meaning)
        )
    head = ("number", f"accept length (1 to {document['steps'] + 1}, bonus token included)", "95 %", "of", "what it is")
    told = [
        (NUMBERS[d["from"]][0], NUMBERS[d["to"]][0], number(d["tokens"]), ", ".join(d["explained_by"]) or "-", d["why"])
        for d in document["drops"]
    ]
    losses = Table(("from", "to", "tokens lost", "explained by", "why"), tuple(told))
    return Table(head, tuple(rows)), f"{document['acceptance']['text']}.", losses, tuple(document["notes"])


def _changes(role: str, rows: Sequence[dict[str, Any]]) -> Section:
    """The best of what was tried, the drafter unchanged, and what is declared or served."""
    able = [row for row in rows if not row["on"] or row["clear"]]
    shown = [
        row
        for at, row in enumerate(able)
        if at < MOST_CHANGES or row["family"] == telling.BASELINE or row["marks"] or row["best"]
    ]
    head = ("change", "accept length per row", "95 %", "difference", "likelier (nats a row)", "outcome", "what it is")
    lines = tuple(
        (
            row["name"],
            number(row["row_accept_length"], 3),
            spread(row["low"], row["high"], 3),
            signed(row["difference"]),
            signed(row["likelier"]),
            row["outcome"],
            telling.means(row),
        )
        for row in shown
    )
    table = Table(head, lines, len(rows) - len(shown))
    title = f"What each change does, replayed on {role} features"
    return Section(title, (telling.told(rows, role), table, f"{telling.COLUMNS}."), f"changes of {role}")


def _finding(finding: dict[str, Any], told_above: bool) -> Section:
    blocks: list[Any] = [f"{finding['id']} ({finding['severity']})"]
    found = finding["evidence"]
    tables = {k: v for k, v in found.items() if isinstance(v, list) and v and isinstance(v[0], dict)}
    blocks.append(_pairs({k: v for k, v in found.items() if k not in tables}))
    for name, lines in tables.items():
        lines = rows_of(lines) if name in SLOTS else [{name_of(key): item for key, item in line.items()} for line in lines]
        head = tuple(dict.fromkeys(key for line in lines for key in line))
        shown = tuple(tuple(value(line.get(key)) for key in head) for line in lines[:MOST_ROWS])
        blocks += [f"{name_of(name)}:", Table(head, shown, max(len(lines) - MOST_ROWS, 0))]
    change = ("What to change stands at the top.",) if told_above else ("What to change:", by_engine(finding["fix"]))
    return Section(finding["title"], (*blocks, how_sure(finding), *change), level=3)


def _checked(document: dict[str, Any]) -> tuple[Any, ...]:
    rows = sorted(document["checked"], key=lambda row: OUTCOMES.index(row["status"]))
    counts = [f"{sum(row['status'] == outcome for row in rows)} {outcome}" for outcome in OUTCOMES]
    lines = tuple((row["status"], row["id"], row["looks_at"], row["needs"] or "") for row in rows)
    return ", ".join(counts) + ".", Table(("outcome", "check", "looks at", "to be checked"), lines)


def _pairs(found: dict[str, Any]) -> Table:
    return Table(("", ""), tuple((name_of(str(name)), value(item)) for name, item in found.items()))


def _files(files: Sequence[dict[str, Any]]) -> Table:
    rows = [
        (one["kind"], source["name"], f"{source['bytes']:,}", source["sha256"])
        for one in files
        for source in one["sources"]
    ]
    return Table(("kind", "file", "bytes", "SHA-256"), tuple(rows[:MOST_ROWS]), max(len(rows) - MOST_ROWS, 0))


# ---- Markdown ------------------------------------------------------------------------------------------------------


def markdown(document: dict[str, Any], about: dict[str, Any]) -> str:
    """The report as Markdown (CommonMark with tables), without pictures. Texts out of files show as they are."""
    parts = []
    for section in sections(document, about):
        if section.chart != "more":
            parts += [f"{'#' * section.level} {plain(section.title)}", *map(_block, section.blocks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _block(block: str | tuple[str, ...] | Table) -> str:
    if isinstance(block, str):
        return plain(block)
    if isinstance(block, tuple):
        return "\n".join(f"- {plain(item)}" for item in block)
    if not block.rows:
        return "none"
    lines = [block.head, ("---",) * len(block.head)]
    cells = [[plain(cell) for cell in row] for row in block.rows]
    more = f"\n\nand {block.left_out} more" if block.left_out else ""
    return "\n".join("| " + " | ".join(row) + " |" for row in [*lines, *cells]) + more


def plain(text: str) -> str:
    """A text so that Markdown shows it as it is: no markup, no link, no formula, no mention of anybody."""
    line = " ".join(short(text).split())
    return _NAMES.sub("\\1\u2060", _MARKDOWN.sub(r"\\\1", line))


def short(text: str) -> str:
    """A text, cut where it is far too long to read (a fix is never that long)."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
