"""The folder of tensor files: immutable, named by the SHA-256 of their content, in place before the rows that name them.

A file arrives by fsync, rename and fsync of the folder, so that after a crash it is whole or absent. Knows no database
and nothing about what is inside a file.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from eagle3dash.errors import StoreDamaged, StoreFull

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SPARE = 32 << 20  # bytes that stay free for the catalogue's own writing


class TensorFolder:
    """`root/tensors` and `root/staging`, made if absent."""

    def __init__(self, root: Path):
        self.root = root
        self.folder = root / "tensors"
        self.waiting = root / "staging"
        for folder in (self.folder, self.waiting):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def path(self, sha256: str) -> Path:
        return self.folder / f"{sha256}.safetensors"

    def size(self, sha256: str) -> int | None:
        """Bytes on disk; None when there is no such file."""
        try:
            return self.path(sha256).stat().st_size
        except FileNotFoundError:
            return None

    def present(self) -> set[str]:
        """Names of all files in the folder."""
        return {entry.name for entry in os.scandir(self.folder) if not entry.is_dir(follow_symlinks=False)}

    @contextmanager
    def staging(self, need: int) -> Iterator[Path]:
        """An empty folder on the same disk, gone afterwards. Raises StoreFull unless `need` bytes fit."""
        require_space(self.waiting, need)
        folder = Path(tempfile.mkdtemp(dir=self.waiting))
        try:
            with full_is_clear(folder):
                yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def take(self, staging: Path, names: Iterable[str]) -> list[str]:
        """Move files in from `staging`; returns those that were not here before.

        A file here already is replaced by its equal, which heals a damaged one and leaves its readers undisturbed.
        Raises StoreDamaged when one is in neither place.
        """
        new = []
        try:
            for sha256 in names:
                staged, here = staging / f"{sha256}.safetensors", self.path(sha256)
                known = here.exists()
                if not staged.exists():
                    if known:
                        continue
                    raise StoreDamaged(f"Tensor file {sha256[:12]}… of the import was not written. Import it again.")
                settle(staged)
                if not known:
                    new.append(sha256)
                os.replace(staged, here)
            sync_folder(self.folder)
        except BaseException:
            self.drop(new)
            raise
        return new

    def drop(self, names: Iterable[str]) -> int:
        """Unlink files; returns the bytes freed. A process that has one mapped keeps it."""
        freed = 0
        for sha256 in names:
            freed += self.size(sha256) or 0
            self.path(sha256).unlink(missing_ok=True)
        return freed

    def sweep(self, catalogued: Collection[str]) -> None:
        """Remove what a killed import or purge left: only the owner imports, so at opening nothing else is in here."""
        keep = {self.path(sha256).name for sha256 in catalogued}
        for name in self.present() - keep:
            (self.folder / name).unlink()
        for entry in self.waiting.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)  # a dying import may still be in there; next time, then
            else:
                entry.unlink()

    def sha256(self, name: str) -> str:
        """Hash of a file's content as it is now."""
        with self.path(name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def full_is_clear(folder: Path) -> Iterator[None]:
    """Turns the system's "no space left" into a StoreFull."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise StoreFull(f"The disk of {folder} filled up: {error.strerror}. Free some space and try again.") from error


def require_space(folder: Path, need: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < need + SPARE:
        raise StoreFull(
            f"{folder} has {free / 1e6:,.0f} MB free, and {(need + SPARE) / 1e6:,.0f} MB are needed. "
            "Nothing was stored. Free some space, or use another store folder."
        )


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def settle(path: Path) -> None:
    """Read-only and on the disk, not just in the page cache."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fchmod(handle, 0o444)
        os.fsync(handle)
    finally:
        os.close(handle)
