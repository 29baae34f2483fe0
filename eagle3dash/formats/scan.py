"""Paths -> the regular files behind them, in natural order, each with a label.

Knows what a file is for the operating system, never what is inside. Links that leave their folder, pipes, devices and
sockets are refused (they would open something the user did not name). A Hugging Face cache keeps `snapshots/<rev>/*` as
links into `blobs/` of the same model folder: for such a folder the model folder is the border.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from eagle3dash.errors import BadInput

MAX_FILES = 200_000
MAX_LABEL = 160
CHUNK = 1 << 22
SKIPPED = re.compile(r"^\..*|.*\.lock$|^__pycache__$")


@dataclass(frozen=True)
class File:
    """One regular file. `name`: what to call it in messages; `folder`: its real folder, only to tell folders apart.

    `explicit`: the user named this very file, rather than a folder around it.
    """

    path: str
    name: str
    folder: str
    explicit: bool
    bytes: int


def expand(paths: Iterable[Path]) -> list[File]:
    """All regular files under `paths`, each once. Raises BadInput for what is absent, unreadable or not a regular file."""
    found: dict[str, File] = {}
    for path in paths:
        path = Path(path)
        for file in _folder(path) if path.is_dir() else [_file(path, path.name, explicit=True)]:
            known = found.get(file.path)
            if known is None or (file.explicit and not known.explicit):
                found[file.path] = file
            if len(found) > MAX_FILES:
                raise BadInput(f"{label(path.name)}: more than {MAX_FILES} files. Name a smaller folder.")
    return sorted(found.values(), key=lambda file: (file.folder, natural(Path(file.path).name)))


def natural(name: str) -> list[tuple[int, int | str]]:
    """Sort key under which data_2 comes before data_10."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", name) if part]


def label(name: str) -> str:
    """A name as it may be shown: one line, printable, at most 160 characters."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
    return shown if len(shown) <= MAX_LABEL else shown[: MAX_LABEL // 2] + "…" + shown[-MAX_LABEL // 2 :]


def _folder(folder: Path) -> Iterator[File]:
    root = folder.resolve()
    border = _border(root)
    for here, folders, names in os.walk(root, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if not SKIPPED.match(name))
        for name in sorted(names):
            if not SKIPPED.match(name):
                path = Path(here, name)
                yield _file(path, str(path.relative_to(root.parent)), explicit=False, border=border)


def _unreadable(error: OSError) -> None:
    raise BadInput(f"{label(Path(error.filename or '').name)}: the folder cannot be read ({error.strerror}).")


def _border(root: Path) -> Path:
    model = root.parent.parent
    return model if root.parent.name == "snapshots" and model.name.startswith("models--") else root


def _file(path: Path, name: str, *, explicit: bool, border: Path | None = None) -> File:
    shown = label(name)
    try:
        real = path.resolve(strict=True)
        status = real.stat()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links in a circle; ValueError: NUL in the name
        reason = getattr(error, "strerror", None) or "not a usable name"
        raise BadInput(f"{shown}: cannot be opened ({reason}). Check the path and its permissions.") from error
    if border is not None and not real.is_relative_to(border):
        raise BadInput(f"{shown}: a link to a file outside its folder. Name that file itself if it is meant.")
    if not stat.S_ISREG(status.st_mode):
        raise BadInput(f"{shown}: not a regular file (a pipe, device or socket). Copy its content into a file.")
    folder = str(real.parent if border is None or border == real.parent else path.parent)
    return File(str(real), shown, folder, explicit, status.st_size)


def signature(file: File) -> tuple[int, ...]:
    """What changes whenever somebody writes to the file or replaces it."""
    try:
        status = os.stat(file.path, follow_symlinks=False)
    except OSError as error:
        raise BadInput(f"{file.name}: cannot be read ({error.strerror}).") from error
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def fingerprint(file: File, progress: Callable[[int], None]) -> str:
    """SHA-256 of the content, read without following links. progress(bytes read since the last call)."""
    digest = hashlib.sha256()
    try:
        fd = os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb", buffering=0) as stream:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise BadInput(f"{file.name}: is no longer a regular file.")
            buffer = bytearray(CHUNK)
            while count := stream.readinto(buffer):
                digest.update(memoryview(buffer)[:count])
                progress(count)
    except OSError as error:
        raise BadInput(f"{file.name}: cannot be read ({error.strerror}).") from error
    return digest.hexdigest()
