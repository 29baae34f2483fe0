"""Rows of jobs: what was asked, how far it is, how it ended. Knows nothing of how a job is run."""

from __future__ import annotations

from typing import Any

from duckdb import DuckDBPyConnection as Cursor

from eagle3dash.errors import NotFound
from eagle3dash.store.database import now, stamp
from eagle3dash.store.documents import dump, load

STATES = ("queued", "running", "done", "failed", "cancelled", "interrupted")
COLUMNS = ("id", "kind", "run", "args", "key", "state", "done", "total", "message", "device", "created", "started", "ended")
UPDATES = {
    "state": "UPDATE job SET state = ? WHERE id = ?",
    "done": "UPDATE job SET done = ? WHERE id = ?",
    "total": "UPDATE job SET total = ? WHERE id = ?",
    "message": "UPDATE job SET message = ? WHERE id = ?",
    "device": "UPDATE job SET device = ? WHERE id = ?",
}


def add(cursor: Cursor, kind: str, run: str | None, args: dict[str, Any], key: str) -> int:
    job = cursor.execute("SELECT coalesce(max(id), 0) + 1 FROM job").fetchone()[0]
    cursor.execute(
        "INSERT INTO job VALUES (?, ?, ?, ?, ?, 'queued', 0, 0, '', NULL, ?, NULL, NULL)",
        [job, kind, run, dump(args), key, now()],
    )
    return job


def update(cursor: Cursor, job: int, fields: dict[str, Any]) -> None:
    """Set any of state, done, total, message, device. Leaving the queue and ending are timed by the change of state."""
    for name, value in fields.items():
        if name == "state" and value not in STATES:
            raise ValueError(f"no job state {value!r}")
        cursor.execute(UPDATES[name], [value, job])
    if fields.get("state") == "running":
        cursor.execute("UPDATE job SET started = ? WHERE id = ?", [now(), job])
    elif fields.get("state", "queued") != "queued":
        cursor.execute("UPDATE job SET ended = ? WHERE id = ?", [now(), job])


def find(cursor: Cursor, job: int) -> dict[str, Any]:
    """The job as a dict of COLUMNS. Raises NotFound."""
    row = cursor.execute("SELECT * FROM job WHERE id = ?", [job]).fetchone()
    if not row:
        raise NotFound(f"There is no job {job}. The jobs page lists the jobs there are.")
    return _job(row)


def newest(cursor: Cursor, limit: int) -> list[dict[str, Any]]:
    return [_job(row) for row in cursor.execute("SELECT * FROM job ORDER BY id DESC LIMIT ?", [limit]).fetchall()]


def interrupt(cursor: Cursor) -> None:
    """What an owner that is gone had queued or running did not finish."""
    cursor.execute(
        "UPDATE job SET state = 'interrupted', ended = ?, message = 'The dashboard stopped before this job ended.' "
        "WHERE state IN ('queued', 'running')",
        [now()],
    )


def _job(row: tuple) -> dict[str, Any]:
    job = dict(zip(COLUMNS, row, strict=True))
    times = {name: stamp(job[name]) for name in ("created", "started", "ended")}
    return {**job, **times, "args": load(job["args"])}
