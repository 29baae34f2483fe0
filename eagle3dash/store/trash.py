"""Throwing away for good: rows and files that no run, not even a deleted one, refers to."""

from __future__ import annotations

from duckdb import DuckDBPyConnection as Cursor

from eagle3dash.store import results
from eagle3dash.store.contents import Contents


def purge(cursor: Cursor, contents: Contents) -> list[str]:
    """Remove deleted runs, what only they used, and the answers about it. Returns tensor files to unlink after the commit:
    a crash in between leaves files without rows, which the next opening sweeps."""
    cursor.execute("DELETE FROM attachment WHERE run IN (SELECT id FROM run WHERE deleted IS NOT NULL)")
    cursor.execute("DELETE FROM run WHERE deleted IS NOT NULL")
    gone = cursor.execute("SELECT sha256 FROM content WHERE sha256 NOT IN (SELECT sha256 FROM attachment)").fetchall()
    for (sha256,) in gone:
        contents.drop_parts(cursor, sha256)
        cursor.execute("DELETE FROM content WHERE sha256 = ?", [sha256])
    results.drop_orphans(cursor)
    files = cursor.execute("SELECT sha256 FROM tensor WHERE sha256 NOT IN (SELECT tensor FROM content_tensor)").fetchall()
    cursor.execute("DELETE FROM tensor WHERE sha256 NOT IN (SELECT tensor FROM content_tensor)")
    return [sha256 for (sha256,) in files]
