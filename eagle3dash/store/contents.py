"""Rows of what was brought in: each content once, attached to the runs that use it, with what a run corrected of it.

The record is kept as JSON; what a log holds is kept as rows besides (`log_rows`).
Methods take a cursor inside a transaction of `database`. Knows no files.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from duckdb import DuckDBPyConnection as Cursor

from eagle3dash.errors import NotFound
from eagle3dash.records import Import, Log, from_json, to_json
from eagle3dash.store import corrections, log_rows
from eagle3dash.store.database import now
from eagle3dash.store.documents import dump, load

KEPT = 512  # parsed records; a log of 100,000 windows takes a second to parse and every page asks for its run


class Contents:
    def __init__(self) -> None:
        self._parsed: dict[tuple[str, datetime], Import] = {}

    def of_runs(self, cursor: Cursor, run: int | None = None) -> dict[int, list[Import]]:
        """Imports by run id, in the order they were attached, as corrected for that run."""
        rows = cursor.execute(
            "SELECT run, sha256, read, changes FROM attachment JOIN content USING (sha256) "
            "WHERE run = coalesce(?, run) ORDER BY run, position",
            [run],
        ).fetchall()
        found: dict[int, list[Import]] = {}
        for owner, sha256, read, changes in rows:
            item = corrections.apply(self._import(cursor, sha256, read), load(changes))
            found.setdefault(owner, []).append(item)
        return found

    def original(self, cursor: Cursor, sha256: str) -> Import | None:
        """The import as it was read, or None when it was never brought in."""
        row = cursor.execute("SELECT read FROM content WHERE sha256 = ?", [sha256]).fetchone()
        return self._import(cursor, sha256, row[0]) if row else None

    def add(self, cursor: Cursor, item: Import) -> bool:
        """Store the content unless it is known. A newer reading of known content replaces the older one, except for what
        people correct: that belongs to the run. Returns whether it was known."""
        kept = self.original(cursor, item.sha256)
        if kept is None:
            values = [item.sha256, item.kind, dump(to_json(item)), now()]
            cursor.execute("INSERT INTO content VALUES (?, ?, ?, ?)", values)
            self._add_parts(cursor, item)
            return False
        same = {name: getattr(kept.record, name) for name in corrections.FIELDS[kept.kind] if name != "reading"}
        record = dataclasses.replace(item.record, **same)
        newer = dataclasses.replace(kept, record=record, problems=item.problems, tensors=item.tensors)
        if newer != kept:
            values = [dump(to_json(newer)), now(), item.sha256]
            cursor.execute("UPDATE content SET document = ?, read = ? WHERE sha256 = ?", values)
            self.drop_parts(cursor, item.sha256)
            self._add_parts(cursor, newer)
        return True

    def attach(self, cursor: Cursor, run: int, item: Import) -> None:
        """Make it the newest of its kind in the run. What was read differently this time becomes the run's correction."""
        changes = corrections.differing(self.original(cursor, item.sha256), item)
        row = cursor.execute("SELECT changes FROM attachment WHERE run = ? AND sha256 = ?", [run, item.sha256]).fetchone()
        last = cursor.execute("SELECT coalesce(max(position), 0) FROM attachment WHERE run = ?", [run]).fetchone()[0]
        if row:
            values = [last + 1, dump({**load(row[0]), **changes}), run, item.sha256]
            cursor.execute("UPDATE attachment SET position = ?, changes = ? WHERE run = ? AND sha256 = ?", values)
        else:
            cursor.execute("INSERT INTO attachment VALUES (?, ?, ?, ?)", [run, item.sha256, last + 1, dump(changes)])

    def correct(self, cursor: Cursor, run: int, sha256: str, changes: dict[str, Any]) -> None:
        """Merge a person's changes into what the run corrects of the content. Raises NotFound, BadInput."""
        row = cursor.execute("SELECT changes FROM attachment WHERE run = ? AND sha256 = ?", [run, sha256]).fetchone()
        if not row:
            raise NotFound(f"This run has no import {sha256[:12]}…. It may have been taken out of the run.")
        changes = corrections.check(self.original(cursor, sha256), changes)
        values = [dump({**load(row[0]), **changes}), run, sha256]
        cursor.execute("UPDATE attachment SET changes = ? WHERE run = ? AND sha256 = ?", values)

    def detach(self, cursor: Cursor, run: int, sha256: str) -> None:
        cursor.execute("DELETE FROM attachment WHERE run = ? AND sha256 = ?", [run, sha256])

    def drop_parts(self, cursor: Cursor, sha256: str) -> None:
        """Remove the rows that hang on a content."""
        cursor.execute("DELETE FROM content_tensor WHERE content = ?", [sha256])
        log_rows.drop(cursor, sha256)

    def _add_parts(self, cursor: Cursor, item: Import) -> None:
        for tensor in dict.fromkeys(item.tensors):
            cursor.execute("INSERT INTO content_tensor VALUES (?, ?)", [item.sha256, tensor])
        if isinstance(item.record, Log):
            log_rows.add(cursor, item.sha256, item.record)

    def _import(self, cursor: Cursor, sha256: str, read: datetime) -> Import:
        item = self._parsed.get((sha256, read))
        if item is None:
            document = cursor.execute("SELECT document FROM content WHERE sha256 = ?", [sha256]).fetchone()[0]
            item = self._parsed[sha256, read] = from_json(Import, load(document))
            for oldest in list(self._parsed)[:-KEPT]:
                self._parsed.pop(oldest, None)
        return item
