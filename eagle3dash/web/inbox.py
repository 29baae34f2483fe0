"""The folder of the server from which the browser may import: EAGLE3DASH_INBOX, else data/inbox. Nothing outside it.

For files too large to send through a browser: copy them there (scp, rsync, a network mount) and choose them on the page.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from eagle3dash.errors import BadInput

DEEPEST = 3
MOST = 500  # entries offered


@dataclass(frozen=True)
class Entry:
    """A file or folder of the inbox. `name`: its path from the inbox on; `bytes`: None for a folder."""

    name: str
    bytes: int | None


def folder() -> Path:
    """The inbox itself; it need not exist."""
    return Path(os.environ.get("EAGLE3DASH_INBOX", "data/inbox")).resolve()


def entries() -> list[Entry]:
    """What can be chosen, folders and files down to DEEPEST levels, in order of name. Links are not followed."""
    return list(islice(_walk(folder(), folder()), MOST))


def _walk(root: Path, here: Path):
    if not here.is_dir():
        return
    for path in sorted(here.iterdir()):
        if path.is_symlink() or path.name.startswith("."):
            continue
        name = path.relative_to(root).as_posix()
        if path.is_dir():
            yield Entry(name + "/", None)
            if name.count("/") + 1 < DEEPEST:
                yield from _walk(root, path)
        elif path.is_file():
            yield Entry(name, path.stat().st_size)


def resolve(name: str) -> Path:
    """The path of an entry. BadInput for anything that lies outside the inbox, by whatever way."""
    path = (folder() / name).resolve()
    if not path.is_relative_to(folder()) or not path.exists():
        raise BadInput(f"{name[:80]} is not in the inbox {folder().name}. Reload the page and choose again.")
    return path
