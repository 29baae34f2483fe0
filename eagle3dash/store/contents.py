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
from eagle3dash.records import Import, Log, from_json
from eagle3dash.store import corrections, log_rows
from eagle3dash.store.database import now
from eagle3dash.store.documents import dump, load

KEPT = 128 << 20  # characters of JSON whose records stay parsed: a log of 40,000 windows takes 0.8 s, on every page


class Contents:
    def __init__(self) -> None:
        self._parsed: dict[tuple[str, datetime], tuple[int, Import]] = {}

    def of_runs(self, cursor: Cursor, run: int | None = None) -> dict[int, list[Import]]:
        """Imports by run id, in the order they were attached, as corrected for that run."""
        rows = cursor.execute(
            "SELECT run, sha256, read, changes FROM attachment JOIN content USING (sha256) "
            "WHERE run = coalesce(?, run) ORDER BY run, position",
            [run],
        ).fetchall()
        items = self._imports(cursor, [row[1:3] for row in rows])
        found: dict[int, list[Import]] = {}
        for (owner, _, _, changes), item in zip(rows, items, strict=True):
            found.setdefault(owner, []).append(corrections.apply(item, load(changes)))
        return found

    def original(self, cursor: Cursor, sha256: str) -> Import | None:
        """The import as it was read, or None when it was never brought in."""
        row = cursor.execute("SELECT sha256, read FROM content WHERE sha256 = ?", [sha256]).fetchone()
        return self._imports(cursor, [row])[0] if row else None

    def add(self, cursor: Cursor, item: Import) -> bool:
        """Store the content unless it is known. A newer reading of known content replaces the older one, except for what
        people correct: that belongs to the run. Returns whether it was known."""
        kept = self.original(cursor, item.sha256)
        if kept is None:
            values = [item.sha256, item.kind, dump(item), now()]
            cursor.execute("INSERT INTO content VALUES (?, ?, ?, ?)", values)
            self._add_parts(cursor, item)
            return False
        same = {name: getattr(kept.record, name) for name in corrections.FIELDS[kept.kind] if name != "reading"}
        record = dataclasses.replace(item.record, **same)
        newer = dataclasses.replace(kept, record=record, problems=item.problems, tensors=item.tensors)
        if newer != kept:
            values = [dump(newer), now(), item.sha256]
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

    def _imports(self, cursor: Cursor, keys: list[tuple[str, datetime]]) -> list[Import]:
        """The records of (sha256, time it was read), parsed unless they are in memory."""
        found = {key: kept[1] for key in keys if (kept := self._parsed.get(key))}
        absent = [sha256 for sha256, read in keys if (sha256, read) not in found]
        query = "SELECT sha256, read, document FROM content WHERE sha256 IN (SELECT unnest(?::VARCHAR[]))"
        for sha256, read, document in cursor.execute(query, [absent]).fetchall() if absent else ():
            item = from_json(Import, load(document))
            found[sha256, read] = item
            self._parsed[sha256, read] = (len(document), item)
        self._forget()
        return [found[key] for key in keys]

    def _forget(self) -> None:
        """Drop the oldest records beyond KEPT. Another thread may be doing the same."""
        kept = list(self._parsed.items())
        excess = sum(size for _, (size, _) in kept) - KEPT
        for key, (size, _) in kept:
            if excess <= 0:
                return
            self._parsed.pop(key, None)
            excess -= size
