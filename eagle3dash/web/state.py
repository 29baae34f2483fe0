"""The one store and the one queue of this process, shared by all pages, routes and visitors.

Opened by the app's lifespan, or by the first page that asks (tests run pages without a server). Module-level on purpose:
Streamlit's caches can be emptied by anybody, and nobody would close what was in them.
"""

from __future__ import annotations

import functools
import os
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path

from eagle3dash.jobs.devices import best
from eagle3dash.jobs.queue import Queue
from eagle3dash.store import Store

_lock = threading.RLock()


@dataclass(frozen=True)
class Dashboard:
    """What this process owns. `token` lets the command line in."""

    store: Store
    queue: Queue
    token: str


_open: Dashboard | None = None


def folder() -> Path:
    """Where the store lies: EAGLE3DASH_STORE, else data/store."""
    return Path(os.environ.get("EAGLE3DASH_STORE", "data/store")).resolve()


def dashboard() -> Dashboard:
    """The open dashboard; opens it on the first call. Raises StoreBusy or StoreDamaged."""
    global _open
    with _lock:
        if _open is None:
            store = Store.open(folder())
            _open = Dashboard(store, Queue(store), secrets.token_urlsafe(24))
        return _open


def store() -> Store:
    """The store of this process."""
    return dashboard().store


def queue() -> Queue:
    """The job queue of this process."""
    return dashboard().queue


def token() -> str:
    """The secret that the command line reads from the store's lock file."""
    return dashboard().token


def start(url: str) -> None:
    """Opens the store and tells the command line where the dashboard is. A store that was never used gets the demo."""
    here = dashboard()
    here.store.announce(url, here.token)
    if not (here.store.runs() or here.store.trash() or here.store.jobs(1)):
        here.queue.load_demo()


def close() -> None:
    """Ends the running jobs and their processes, then gives the store back."""
    global _open
    with _lock:
        if _open is not None:
            _open.queue.close()
            _open.store.close()
            _open = None


@functools.cache
def device_title() -> str:
    """The device that answers the next question, in words."""
    found = best()
    return found.title if found.name in found.title else f"{found.name} ({found.title})"
