"""A copy of the whole store that can be opened as a store.

The catalogue is written anew, table by table, from one moment's view: to copy its file the database would have to be
closed, because closing any other handle on that file drops the lock that DuckDB has on it. The copy gets its name only
when every tensor file is there, so one that was cut short cannot be taken for a whole one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow
from duckdb import DuckDBPyConnection as Cursor

from eagle3dash.errors import BadInput, StoreDamaged
from eagle3dash.records import Progress
from eagle3dash.store import health
from eagle3dash.store.database import Database
from eagle3dash.store.tensors import TensorFolder, full_is_clear, require_space, settle, sync_folder

ROWS = 100_000  # at a time


def copy(database: Database, tensors: TensorFolder, target: Path, progress: Progress) -> list[str]:
    """Fill the new or empty folder `target`; returns a sentence for each damaged tensor file, which is left out."""
    _prepare(tensors.root, target)
    with full_is_clear(target), database.read() as cursor:
        rows = cursor.execute("SELECT sha256, bytes FROM tensor ORDER BY sha256").fetchall()
        total, done, problems = sum(size for _, size in rows), 0, []
        require_space(target, total + os.path.getsize(database.path))
        _copy_rows(cursor, target / "catalog.partial")
        copied = TensorFolder(target)
        for sha256, size in rows:
            try:
                shutil.copyfile(health.path(cursor, tensors, sha256), copied.path(sha256))
                settle(copied.path(sha256))
            except StoreDamaged as damage:
                problems.append(str(damage))
            done += size
            progress(done, total, "copying tensor files")
        sync_folder(copied.folder)
        os.rename(target / "catalog.partial", target / "catalog.duckdb")
        sync_folder(target)
    return problems


def _copy_rows(cursor: Cursor, path: Path) -> None:
    """Every table of the view that `cursor` has, into a new catalogue."""
    names = cursor.execute("SELECT table_name FROM duckdb_tables() WHERE table_name <> 'schema_version'").fetchall()
    new = Database(path)
    try:
        with new.write() as writer:
            for (name,) in names:
                for batch in cursor.table(name).to_arrow_reader(ROWS):
                    writer.from_arrow(pyarrow.Table.from_batches([batch])).insert_into(name)
        new.checkpoint()
    finally:
        new.close()


def _prepare(source: Path, target: Path) -> None:
    """Make the folder. Raises BadInput when it is not empty, or lies inside the store."""
    if target.resolve().is_relative_to(source.resolve()):
        raise BadInput(f"{target} lies inside the store. Choose a folder elsewhere, best on another disk.")
    try:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        empty = not any(target.iterdir())
    except OSError as error:
        raise BadInput(f"{target} cannot take a backup: {error.strerror}. Choose another folder.") from error
    if not empty:
        raise BadInput(f"{target} is not empty. Choose a new or empty folder for the backup.")
