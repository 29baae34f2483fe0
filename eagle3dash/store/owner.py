"""Who owns the store: one process at a time, held by a lock that dies with it.

The lock is `flock` on `owner.lock`, so the system releases it however the owner ends (kill -9 included) and a file left
behind means nothing by itself. Its content tells a second process where the running dashboard can be reached; the token
in it is the password to that door, hence mode 0600. The file is never deleted: deleting it would let two owners lock two
different files of the same name. Knows no database.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

from eagle3dash.errors import StoreBusy


class Owner:
    """Holds the lock from construction to `release`. Raises StoreBusy with the other owner's address."""

    def __init__(self, folder: Path, url: str | None = None):
        self.path = folder / "owner.lock"
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            try:
                raise _busy(folder, _read(self._file)) from None
            finally:
                os.close(self._file)
        os.fchmod(self._file, 0o600)
        self.announce(url, None)

    def announce(self, url: str | None, token: str | None) -> None:
        """Say how other processes reach this one."""
        text = json.dumps({"pid": os.getpid(), "url": url, "token": token}).encode()
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, text, 0)

    def release(self) -> None:
        os.ftruncate(self._file, 0)
        os.close(self._file)


def _read(file: int) -> dict:
    """The other owner's announcement; empty while it has not written one."""
    try:
        told = json.loads(os.pread(file, 4096, 0))
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _busy(folder: Path, told: dict) -> StoreBusy:
    who = f"process {told['pid']}" if told.get("pid") else "another process"
    url = told.get("url")
    what = f"It runs the dashboard at {url}." if url else "Wait until it ends, or stop it."
    return StoreBusy(f"The store {folder} is in use by {who}. {what}", url, told.get("token"))
