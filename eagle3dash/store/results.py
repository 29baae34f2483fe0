"""Rows of answers, cached by a key that stands for the question, its inputs and the code that answered.

A document (JSON) and, for what is drawn point by point, frames in typed tables. Knows nothing of what an answer means.
"""

from __future__ import annotations

from typing import Any

import pandas
from duckdb import DuckDBPyConnection as Cursor

from eagle3dash.store.database import now
from eagle3dash.store.documents import dump, load

FRAMES = {  # table -> the columns that its frame has, in any order
    "feature_position": {
        *("training_slot", "serving_slot", "sequence", "position", "cosine", "relative_error", "norm_ratio"),
    },
    "replay_row": {"sequence", "row", "num_accepted", "visited"},
}


def find(cursor: Cursor, key: str) -> dict[str, Any] | None:
    row = cursor.execute("SELECT document FROM result WHERE key = ?", [key]).fetchone()
    return load(row[0]) if row else None


def add(
    cursor: Cursor, key: str, kind: str, run: int | None, document: dict[str, Any], frames: dict[str, pandas.DataFrame]
) -> None:
    """Keep an answer; one that is there already stays, as the same key has the same answer.

    It hangs on everything that the run holds now, and goes when any of it is purged. Raises ValueError on a frame that no
    table takes.
    """
    if cursor.execute("SELECT 1 FROM result WHERE key = ?", [key]).fetchone():
        return
    cursor.execute("INSERT INTO result VALUES (?, ?, ?, ?)", [key, kind, dump(document), now()])
    cursor.execute("INSERT INTO result_content SELECT ?, sha256 FROM attachment WHERE run = ?", [key, run])
    for table, frame in frames.items():
        if set(frame.columns) != FRAMES.get(table):
            raise ValueError(f"frame {table} has columns {sorted(frame.columns)}")
        if len(frame):
            cursor.append(table, frame.assign(result_key=key), by_name=True)


def drop_orphans(cursor: Cursor) -> None:
    """Remove answers about content that is no longer in the store."""
    cursor.execute(
        "DELETE FROM result WHERE key IN (SELECT key FROM result_content WHERE content NOT IN (SELECT sha256 FROM content))"
    )
    cursor.execute("DELETE FROM result_content WHERE key NOT IN (SELECT key FROM result)")
    cursor.execute("DELETE FROM feature_position WHERE result_key NOT IN (SELECT key FROM result)")
    cursor.execute("DELETE FROM replay_row WHERE result_key NOT IN (SELECT key FROM result)")
