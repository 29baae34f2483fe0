"""Rows of runs: the names people gave, settings, tags, notes, and the trash. Knows nothing of what is attached."""

from __future__ import annotations

from typing import Any

from duckdb import DuckDBPyConnection as Cursor

from eagle3dash.errors import BadInput, NotFound
from eagle3dash.records import Run
from eagle3dash.store import names
from eagle3dash.store.database import now, stamp
from eagle3dash.store.documents import dump, load


def live(cursor: Cursor) -> dict[int, Run]:
    """All runs that are not in the trash by id, oldest first, without their imports."""
    rows = cursor.execute(
        "SELECT id, name, created, settings, tags, notes FROM run WHERE deleted IS NULL ORDER BY id"
    ).fetchall()
    return {
        number: Run(name, stamp(created), settings=load(settings), tags=tuple(tags), notes=notes)
        for number, name, created, settings, tags, notes in rows
    }


def seek(cursor: Cursor, name: str) -> int | None:
    """Id of the run of that name, if there is one."""
    if not name.isprintable():  # no run is called so, and DuckDB takes no half characters
        return None
    row = cursor.execute("SELECT id FROM run WHERE name = ? AND deleted IS NULL", [names.tidy(name)]).fetchone()
    return row[0] if row else None


def find(cursor: Cursor, name: str) -> int:
    """Id of the run of that name. Raises NotFound, with the names that there are."""
    number = seek(cursor, name)
    if number is not None:
        return number
    rows = cursor.execute("SELECT name FROM run WHERE deleted IS NULL ORDER BY id DESC LIMIT 5").fetchall()
    there = ", ".join(f'"{found}"' for (found,) in rows) or "none yet"
    raise NotFound(f'No run is called "{names.shown(name)}". The newest runs: {there}.')


def find_or_create(cursor: Cursor, name: str) -> int:
    number = seek(cursor, name)
    return number if number is not None else _create(cursor, names.clean_name(name))


def create_like(cursor: Cursor, wish: str) -> int:
    """A new run, named after a file."""
    taken = {name for (name,) in cursor.execute("SELECT name FROM run WHERE deleted IS NULL").fetchall()}
    return _create(cursor, names.free_name(wish, taken))


def update(cursor: Cursor, run: int, changes: dict[str, Any]) -> None:
    """Any of settings (merged; None removes one), tags, notes, name. Raises BadInput when the name is taken."""
    if (settings := changes.get("settings")) is not None:
        old = load(cursor.execute("SELECT settings FROM run WHERE id = ?", [run]).fetchone()[0])
        merged = {key: value for key, value in {**old, **settings}.items() if value is not None}
        cursor.execute("UPDATE run SET settings = ? WHERE id = ?", [dump(merged), run])
    if (tags := changes.get("tags")) is not None:
        cursor.execute("UPDATE run SET tags = ? WHERE id = ?", [names.clean_tags(tags), run])
    if (notes := changes.get("notes")) is not None:
        cursor.execute("UPDATE run SET notes = ? WHERE id = ?", [names.clean_notes(notes), run])
    if (name := changes.get("name")) is not None:
        name = names.clean_name(name)
        _require_free(cursor, name, run)
        cursor.execute("UPDATE run SET name = ? WHERE id = ?", [name, run])


def delete(cursor: Cursor, run: int) -> None:
    cursor.execute("UPDATE run SET deleted = ? WHERE id = ?", [now(), run])


def restore(cursor: Cursor, name: str) -> None:
    """Bring back the run of that name that was deleted last. Raises NotFound, or BadInput when the name is taken again."""
    query = "SELECT id FROM run WHERE name = ? AND deleted IS NOT NULL ORDER BY deleted DESC LIMIT 1"
    row = cursor.execute(query, [names.tidy(name)]).fetchone() if name.isprintable() else None
    if not row:
        raise NotFound(f'No deleted run is called "{names.shown(name)}". It may have been purged, or restored already.')
    _require_free(cursor, names.tidy(name), row[0])
    cursor.execute("UPDATE run SET deleted = NULL WHERE id = ?", [row[0]])


def trash(cursor: Cursor) -> list[tuple[str, str]]:
    """(name, time of deletion) of the runs that can be restored, last deleted first."""
    rows = cursor.execute("SELECT name, deleted FROM run WHERE deleted IS NOT NULL ORDER BY deleted DESC").fetchall()
    return [(name, stamp(deleted)) for name, deleted in rows]


def _create(cursor: Cursor, name: str) -> int:
    run = cursor.execute("SELECT coalesce(max(id), 0) + 1 FROM run").fetchone()[0]
    cursor.execute("INSERT INTO run VALUES (?, ?, ?, '{}', [], '', NULL)", [run, name, now()])
    return run


def _require_free(cursor: Cursor, name: str, run: int) -> None:
    other = cursor.execute("SELECT id FROM run WHERE name = ? AND deleted IS NULL AND id <> ?", [name, run]).fetchone()
    if other:
        raise BadInput(f'Another run is called "{name}" already. Choose another name, or rename that run first.')
