"""`doctor`: whether this machine, the installation and the store are fit. 0 when nothing is broken, else 1."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eagle3dash.cli.backends import progress_line
from eagle3dash.errors import Eagle3Error, StoreBusy
from eagle3dash.jobs.devices import devices
from eagle3dash.store import Store

REQUIREMENTS = Path(__file__).parents[2] / "requirements.txt"
LEAST_DISK = 1 << 30  # bytes
PYTHON = (3, 11)


def run(asked: Namespace) -> int:
    """Prints the findings: ok, note (worth knowing) or bad (to be repaired)."""
    found = [*_python(), *_packages(), *_devices(), *_store(asked.store.absolute())]
    healthy = all(one["state"] != "bad" for one in found)
    words = "\n".join(f"{one['state']:4}  {one['what']}: {one['says']}" for one in found)
    print(json.dumps({"healthy": healthy, "findings": found}) if asked.json else words)
    return 0 if healthy else 1


def _python() -> Iterator[dict[str, Any]]:
    fits = sys.version_info >= PYTHON
    version = platform.python_version()
    yield _line("python", "ok", version) if fits else _line("python", "bad", f"{version}; at least 3.11 is needed")


def _packages() -> Iterator[dict[str, Any]]:
    for line in REQUIREMENTS.read_text().split():
        name, _, wanted = line.partition("==")
        try:
            there = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield _line(name, "bad", f"not installed; {wanted} is wanted (make install)")
            continue
        same = there.split("+")[0] == wanted
        yield _line(name, "ok" if same else "note", there if same else f"{there}; tested with {wanted}")


def _devices() -> Iterator[dict[str, Any]]:
    found = devices()
    for device in found:
        free = f", {device.free_bytes / 1e9:.1f} GB free" if device.free_bytes else ""
        yield _line(device.name, "ok", f"{device.title}{free}")
    if len(found) == 1:
        yield _line("cuda", "note", "no CUDA device; replays run on the processor")


def _store(folder: Path) -> Iterator[dict[str, Any]]:
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        yield _line("store", "bad", f"{existing} cannot be written; give another folder with --store")
        return
    free = shutil.disk_usage(existing).free
    yield _line("disk", "ok" if free >= LEAST_DISK else "bad", f"{free / 1e9:.1f} GB free at {existing}")
    if not folder.exists():
        yield _line("store", "note", f"{folder} does not exist yet; `demo` or `import` makes it")
        return
    try:
        with Store.open(folder) as store, progress_line() as progress:
            wrong, runs = store.verify(progress), store.runs()
    except StoreBusy as busy:
        yield _line("store", "note", str(busy))
    except Eagle3Error as error:
        yield _line("store", "bad", str(error))
    else:
        yield from (_line("store", "bad", text) for text in wrong)
        yield _line("store", "ok", f"{folder}, {len(runs)} runs")


def _line(what: str, state: str, says: str) -> dict[str, Any]:
    return {"what": what, "state": state, "says": says}
