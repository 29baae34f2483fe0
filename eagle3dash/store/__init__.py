"""The store: a DuckDB catalogue and immutable tensor files, owned by one process at a time.

    folder/catalog.duckdb          runs, what was brought in, log windows and rounds, answers, jobs
    folder/tensors/<sha256>.safetensors   read-only, named by content
    folder/staging/                imports under way, swept at opening
    folder/owner.lock              who owns it and how to reach them

Files first, then rows: whatever kills an import halfway leaves no part of it. Knows no formats and no torch.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import pandas
from duckdb import DuckDBPyConnection as Cursor

from eagle3dash.errors import BadInput, StoreDamaged
from eagle3dash.records import Import, Kind, Progress, Run, no_progress
from eagle3dash.store import backup, health, jobs, queries, results, runs, trash
from eagle3dash.store.contents import Contents
from eagle3dash.store.database import Database
from eagle3dash.store.owner import Owner
from eagle3dash.store.tensors import TensorFolder


@dataclass(frozen=True)
class Added:
    """One import of an `add`: `known` when its content was in the store before."""

    kind: Kind
    name: str
    sha256: str
    known: bool
    run: str


class Store:
    """Safe to use from many threads. Every method is one transaction."""

    def __init__(self, folder: Path, owner: Owner, tensors: TensorFolder, database: Database):
        self.folder = folder
        self._owner, self._tensors, self._db = owner, tensors, database
        self._contents = Contents()
        self._keeping = (
            threading.Lock()
        )  # held by who relies on files staying, or removes them; taken before the database's

    @classmethod
    def open(cls, folder: Path, url: str | None = None) -> Store:
        """Own the store in `folder`, made if absent; leftovers of a killed owner are cleared away first.

        Raises StoreBusy when another process owns it, StoreDamaged when the catalogue cannot be read or is newer than this
        program. A damaged tensor file is no reason not to open: `verify` lists those.
        """
        folder = Path(folder).absolute()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            owner = Owner(folder, url)
        except OSError as error:
            raise BadInput(f"{folder} cannot be used as a store: {error.strerror}. Choose another with --store.") from error
        try:
            return cls._open(folder, owner)
        except BaseException:
            owner.release()
            raise

    @classmethod
    def _open(cls, folder: Path, owner: Owner) -> Store:
        tensors, catalogue = TensorFolder(folder), folder / "catalog.duckdb"
        if not catalogue.exists() and (present := tensors.present()):
            raise StoreDamaged(
                f"{catalogue} is missing, but {tensors.folder} holds {len(present)} files. "
                "Restore the catalogue from a backup, or move the tensor files away to start anew."
            )
        (folder / "logs").mkdir(mode=0o700, exist_ok=True)
        store = cls(folder, owner, tensors, Database(catalogue))
        with store._db.write() as cursor:
            jobs.interrupt(cursor)
        tensors.sweep(store._catalogued())
        return store

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()
        self._owner.release()

    def announce(self, url: str, token: str) -> None:
        """Tell other processes, through the lock file, how to reach this one."""
        self._owner.announce(url, token)

    # ---- what was brought in -----------------------------------------------------------------------------------------

    @contextmanager
    def staging(self, need: int = 0) -> Iterator[Path]:
        """An empty folder for an import to write tensor files to, gone afterwards. StoreFull unless `need` bytes fit."""
        with self._tensors.staging(need) as folder:
            yield folder

    def add(self, run: str | None, imports: Sequence[Import], staging: Path) -> list[Added]:
        """Store imports and attach them to a run, made if absent. None: a new one, named after the drafter or first import.

        All or nothing. `staging` holds the tensor files that the imports name; those already stored may be left out.
        """
        if not imports:
            raise BadInput("There is nothing to store: no drafter, capture, log or target was found in what was given.")
        names = dict.fromkeys(sha256 for item in imports for sha256 in item.tensors)
        with self._db.lock:  # until the rows are there, so that nobody purges or relies on the files in between
            new = self._tensors.take(staging, names)
            try:
                with self._db.write() as cursor:
                    self._catalogue(cursor, names)
                    first = next((item for item in imports if item.kind == "drafter"), imports[0])
                    number = runs.find_or_create(cursor, run) if run else runs.create_like(cursor, first.name)
                    name = runs.live(cursor)[number].name
                    added = [self._add(cursor, number, name, item) for item in imports]
            except BaseException:
                self._tensors.drop(set(new) - self._catalogued())
                raise
        self._db.checkpoint()
        return added

    def _add(self, cursor: Cursor, number: int, run: str, item: Import) -> Added:
        known = self._contents.add(cursor, item)
        self._contents.attach(cursor, number, item)
        return Added(item.kind, item.name, item.sha256, known, run)

    def _catalogue(self, cursor: Cursor, names: Iterable[str]) -> None:
        for sha256 in names:
            values = [sha256, self._tensors.size(sha256)]
            cursor.execute("INSERT INTO tensor VALUES (?, ?) ON CONFLICT DO NOTHING", values)

    def correct(self, run: str, sha256: str, changes: dict[str, Any]) -> None:
        """Set what was inferred of a run's import: capture states, role, aux, last; drafter reading, states; log steps,
        engine. Merged with earlier corrections; the value that the file gave takes one back. The original is kept."""
        with self._db.write() as cursor:
            self._contents.correct(cursor, runs.find(cursor, run), sha256, changes)

    def detach(self, run: str, sha256: str) -> None:
        """Take an import out of a run. What no run uses any more is removed by `purge`."""
        with self._db.write() as cursor:
            self._contents.detach(cursor, runs.find(cursor, run), sha256)

    def tensor_path(self, sha256: str) -> Path:
        """The file of that content. Raises StoreDamaged, with the way out, when it is missing or its size has changed."""
        with self._db.read() as cursor:
            return health.path(cursor, self._tensors, sha256)

    def verify(self, progress: Progress = no_progress) -> list[str]:
        """Hash every tensor file; one sentence for each damaged one, none when all are as stored."""
        with self._db.read() as cursor:
            return health.verify(cursor, self._tensors, progress)

    def backup(self, target: Path, progress: Progress = no_progress) -> list[str]:
        """Copy the store to a new or empty folder, where `Store.open` can open it. Others go on working, but nothing is
        purged meanwhile. Returns a sentence for each damaged tensor file, which is left out. Raises BadInput, StoreFull."""
        target = Path(target).absolute()
        with self._keeping:
            return backup.copy(self._db, self._tensors, target, progress)

    # ---- runs --------------------------------------------------------------------------------------------------------

    def run(self, name: str) -> Run:
        """The run with its imports as corrected. Raises NotFound, naming the runs there are."""
        with self._db.read() as cursor:
            number = runs.find(cursor, name)
            return self._whole(cursor, runs.live(cursor)[number], number)

    def runs(self) -> list[Run]:
        """All runs but the deleted, newest first."""
        with self._db.read() as cursor:
            imports = self._contents.of_runs(cursor)
            found = runs.live(cursor)
        return [replace(run, imports=tuple(imports.get(number, ()))) for number, run in reversed(found.items())]

    def make_run(self, name: str) -> None:
        """An empty run of that name, if there is none yet."""
        with self._db.write() as cursor:
            runs.find_or_create(cursor, name)

    def update_run(
        self,
        name: str,
        *,
        settings: dict[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        notes: str | None = None,
        rename: str | None = None,
    ) -> None:
        """Change what is given. Settings are merged, a None among them removes that one."""
        with self._db.write() as cursor:
            changes = {"settings": settings, "tags": tags, "notes": notes, "name": rename}
            runs.update(cursor, runs.find(cursor, name), changes)

    def delete_run(self, name: str) -> None:
        """Put a run into the trash; `restore_run` brings it back until `purge`."""
        with self._db.write() as cursor:
            runs.delete(cursor, runs.find(cursor, name))

    def restore_run(self, name: str) -> None:
        """Bring back the run of that name that was deleted last."""
        with self._db.write() as cursor:
            runs.restore(cursor, name)

    def trash(self) -> list[tuple[str, str]]:
        """(name, time of deletion) of what can be restored, last deleted first."""
        with self._db.read() as cursor:
            return runs.trash(cursor)

    def purge(self) -> int:
        """Remove deleted runs, and whatever no run uses, for good. Returns the bytes of tensor files freed."""
        with self._keeping, self._db.lock:
            with self._db.write() as cursor:
                files = trash.purge(cursor, self._contents)
            freed = self._tensors.drop(files)
        self._db.checkpoint()
        return freed

    # ---- answers and jobs --------------------------------------------------------------------------------------------

    def result(self, key: str) -> dict[str, Any] | None:
        """The cached answer of that key."""
        with self._db.read() as cursor:
            return results.find(cursor, key)

    def add_result(
        self,
        key: str,
        kind: str,
        run: str | None,
        document: dict[str, Any],
        frames: dict[str, pandas.DataFrame] | None = None,
    ) -> None:
        """Cache an answer: its document and its frames (columns: `results.FRAMES`), all or nothing. Same key: kept."""
        with self._db.write() as cursor:
            number = runs.seek(cursor, run) if run else None  # it may have been renamed or deleted meanwhile
            results.add(cursor, key, kind, number, document, frames or {})
        if frames:
            self._db.checkpoint()

    def frame(self, name: str, **params: Any) -> pandas.DataFrame:
        """The answer of a named query of `queries`, at most 2,000 rows."""
        with self._db.read() as cursor:
            return queries.frame(cursor, name, params)

    def add_job(self, kind: str, run: str | None, args: dict[str, Any], key: str) -> int:
        """A queued job; returns its id."""
        with self._db.write() as cursor:
            return jobs.add(cursor, kind, run, args, key)

    def update_job(self, job: int, **fields: Any) -> None:
        """Set any of state, done, total, message, device."""
        with self._db.write() as cursor:
            jobs.update(cursor, job, fields)

    def job(self, job: int) -> dict[str, Any]:
        """The job as a dict of `jobs.COLUMNS`, times in ISO form. Raises NotFound."""
        with self._db.read() as cursor:
            return jobs.find(cursor, job)

    def jobs(self, limit: int = 100) -> list[dict[str, Any]]:
        """The newest jobs, newest first."""
        with self._db.read() as cursor:
            return jobs.newest(cursor, limit)

    def _catalogued(self) -> set[str]:
        with self._db.read() as cursor:
            return {sha256 for (sha256,) in cursor.execute("SELECT sha256 FROM tensor").fetchall()}

    def _whole(self, cursor: Cursor, run: Run, number: int) -> Run:
        return replace(run, imports=tuple(self._contents.of_runs(cursor, number).get(number, ())))
