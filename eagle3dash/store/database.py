"""One DuckDB file, opened by its one owner and locked down.

A cursor for every call: a DuckDB connection shared by threads hands one thread the rows of another. Writers queue on a
lock, because two transactions that touch one row do not wait for each other in DuckDB, they fail. Knows no table but
`schema_version`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from eagle3dash.errors import Eagle3Error, StoreBusy, StoreDamaged, StoreFull
from eagle3dash.store.schema import MIGRATIONS

CONFIG = {
    "storage_compatibility_version": "v1.5.0",  # the default of 2.0.1 writes a version that no other release reads
    "checkpoint_threshold": "1TB",  # only when told to: a checkpoint without room would make a done COMMIT look failed
    "memory_limit": "2GB",
    "max_temp_directory_size": "4GB",
    "threads": "2",
    "enable_external_access": "false",  # no files, ATTACH, COPY or extensions from SQL
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # an unknown table name is no Python variable
    "lock_configuration": "true",
}


def now() -> datetime:
    """UTC without a zone, as every TIMESTAMP column holds it."""
    return datetime.now(UTC).replace(tzinfo=None)


def stamp(moment: datetime | None) -> str | None:
    """A TIMESTAMP as people and JSON read it."""
    return moment.isoformat(timespec="seconds") + "Z" if moment else None


class Database:
    """Opens or creates `path` and brings its schema up to date. Raises StoreBusy, StoreDamaged or StoreFull."""

    def __init__(self, path: Path, migrations: tuple[str, ...] = MIGRATIONS):
        self.path = path
        self.lock = threading.RLock()  # one writer at a time; taken by whoever must move files with the rows
        self._closed = False
        self._root = _connect(path)
        try:
            self._migrate(migrations)
        except BaseException:
            self._root.close()
            raise

    @contextmanager
    def read(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor that sees one moment of the catalogue, whatever is written meanwhile."""
        cursor = self._begin("BEGIN TRANSACTION READ ONLY")
        try:
            yield cursor
        except duckdb.Error as error:
            raise _explain(error, self.path) from error
        finally:
            cursor.close()

    @contextmanager
    def write(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A transaction: all of it, or, when anything is raised inside, nothing."""
        with self.lock:
            cursor = self._begin("BEGIN TRANSACTION")
            try:
                yield cursor
                cursor.execute("COMMIT")
            except duckdb.Error as error:
                _roll_back(cursor)
                raise _explain(error, self.path) from error
            except BaseException:
                _roll_back(cursor)
                raise
            finally:
                cursor.close()

    def checkpoint(self) -> None:
        """Fold the write-ahead log into the file. Best effort: the rows are committed already, and stay so."""
        with self.lock, contextlib.suppress(duckdb.Error), self._root.cursor() as cursor:
            cursor.execute("CHECKPOINT")  # no room: the next checkpoint or opening does it

    def close(self) -> None:
        with self.lock:
            self._closed = True
            self._root.close()

    def _begin(self, statement: str) -> duckdb.DuckDBPyConnection:
        """A cursor in a transaction.

        After a fatal error (a checkpoint without room) DuckDB serves nobody until it is opened anew. That loses nothing:
        what was committed is in the file or its log.
        """
        try:
            return _started(self._root, statement)
        except (duckdb.FatalException, duckdb.ConnectionException):
            with self.lock:
                if self._closed:
                    raise Eagle3Error("The store is closed: this process is shutting down.") from None
                self._root.close()
                self._root = _connect(self.path)
                return _started(self._root, statement)

    def _migrate(self, migrations: tuple[str, ...]) -> None:
        """Numbered steps, each whole or not at all. A catalogue of a newer program is left as it is."""
        version = self._version()
        if version > len(migrations):
            raise StoreDamaged(
                f"{self.path} has schema version {version}; this program knows versions up to {len(migrations)}. "
                "Nothing was changed. Use the newer eagle3dash that wrote it, or another store folder."
            )
        for number, step in enumerate(migrations[version:], version + 1):
            with self.write() as cursor:
                cursor.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER, applied TIMESTAMP)")
                cursor.execute(step)
                cursor.execute("INSERT INTO schema_version VALUES (?, ?)", [number, now()])

    def _version(self) -> int:
        with self.read() as cursor:
            known = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'schema_version'"
            if not cursor.execute(known).fetchone()[0]:
                return 0
            return cursor.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()[0]


def _started(root: duckdb.DuckDBPyConnection, statement: str) -> duckdb.DuckDBPyConnection:
    cursor = root.cursor()
    try:
        return cursor.execute(statement)
    except BaseException:
        cursor.close()
        raise


def _roll_back(cursor: duckdb.DuckDBPyConnection) -> None:
    """DuckDB refuses every further statement until a ROLLBACK. After a failed COMMIT or a fatal error none is possible."""
    with contextlib.suppress(duckdb.Error):
        cursor.execute("ROLLBACK")


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    try:
        return duckdb.connect(str(path), config=CONFIG)
    except duckdb.Error as error:
        told = _explain(error, path)
        raise (told if isinstance(told, Eagle3Error) else _damaged(error, path)) from error


def _explain(error: duckdb.Error, path: Path) -> Exception:
    """DuckDB's error as one of ours where a user can do something about it, else the error itself."""
    text = str(error)
    if "Conflicting lock" in text:
        return StoreBusy(f"{path} is open in another program. Close that program and try again.")
    if "No space left" in text or "File too large" in text or isinstance(error, duckdb.OutOfMemoryException):
        return StoreFull(
            f"There was no room to write {path}: {_reason(text)} Nothing was stored, and what was there is intact. "
            "Free some space and try again."
        )
    if "Corrupt" in text or isinstance(error, duckdb.IOException | duckdb.SerializationException | duckdb.FatalException):
        return _damaged(error, path)
    return error


def _damaged(error: duckdb.Error, path: Path) -> StoreDamaged:
    return StoreDamaged(
        f"The catalogue {path} cannot be used: {_reason(str(error))} Leave the folder as it is (the .wal file too), "
        "and restore a backup or use another store folder."
    )


def _reason(text: str) -> str:
    """The end of the first line: what went wrong comes after the path."""
    return text.splitlines()[0].rstrip(".")[-90:] + "."
