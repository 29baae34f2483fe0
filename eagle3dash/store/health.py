"""Whether the tensor files that the catalogue names are there and unaltered. Reports; never guesses around a damage."""

from __future__ import annotations

from pathlib import Path

from duckdb import DuckDBPyConnection as Cursor

from eagle3dash.errors import NotFound, StoreDamaged
from eagle3dash.records import Progress
from eagle3dash.store.documents import load
from eagle3dash.store.tensors import TensorFolder

CURE = "Import it again, or put the file back from a backup."


def path(cursor: Cursor, tensors: TensorFolder, sha256: str) -> Path:
    """The file of a tensor. Raises NotFound when the catalogue does not know it, StoreDamaged when missing or resized."""
    row = cursor.execute("SELECT bytes FROM tensor WHERE sha256 = ?", [sha256]).fetchone()
    if not row:
        raise NotFound(f"The store has no tensor file {sha256[:12]}…: it was purged, or never imported here.")
    if problem := _resized(cursor, tensors, sha256, row[0]):
        raise StoreDamaged(problem)
    return tensors.path(sha256)


def verify(cursor: Cursor, tensors: TensorFolder, progress: Progress) -> list[str]:
    """Read every tensor file and compare its hash with its name; a sentence for each that is damaged."""
    rows = cursor.execute("SELECT sha256, bytes FROM tensor ORDER BY sha256").fetchall()
    total, done, problems = sum(size for _, size in rows), 0, []
    for sha256, size in rows:
        problem = _resized(cursor, tensors, sha256, size)
        if problem is None and tensors.sha256(sha256) != sha256:
            problem = f"{tensors.path(sha256)} ({_users(cursor, sha256)}) was altered: its hash is not its name. {CURE}"
        problems += [problem] if problem else []
        done += size
        progress(done, total, f"checked {sha256[:12]}")
    return problems


def _resized(cursor: Cursor, tensors: TensorFolder, sha256: str, expected: int) -> str | None:
    found = tensors.size(sha256)
    if found == expected:
        return None
    what = "is missing" if found is None else f"has {found:,} bytes where {expected:,} were stored"
    return f"{tensors.path(sha256)} ({_users(cursor, sha256)}) {what}. {CURE}"


def _users(cursor: Cursor, sha256: str) -> str:
    """Names of what the file belongs to."""
    rows = cursor.execute(
        "SELECT document FROM content WHERE sha256 IN (SELECT content FROM content_tensor WHERE tensor = ?)", [sha256]
    ).fetchall()
    return ", ".join(sorted({ascii(load(document)["name"])[:60] for (document,) in rows})) or "unused"
