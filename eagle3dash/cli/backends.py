"""Who does the work: this process with the store opened (`Here`), or the dashboard that owns it (`There`, over HTTP).

Both have the same methods and give the same documents. Knows no output but a progress line on a terminal's stderr.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from eagle3dash.errors import BadInput, Cancelled, Eagle3Error, StoreBusy
from eagle3dash.jobs import demo
from eagle3dash.jobs.devices import best
from eagle3dash.jobs.imports import bring_in
from eagle3dash.jobs.questions import Question, answer
from eagle3dash.jobs.settings import change
from eagle3dash.jobs.summary import about, summary
from eagle3dash.store import Store

POLL = 0.3  # seconds between two looks at a job
PATIENCE = 60  # seconds to wait for another command to end
TOKEN = "X-Eagle3dash-Token"


class Here:
    """The store in this process."""

    def __init__(self, store: Store):
        self.store = store

    def bring_in(self, paths: list[Path], run: str | None, role: str | None, states: list[int] | None) -> dict[str, Any]:
        with progress_line() as progress:
            return bring_in(self.store, paths, run, role, states, progress)

    def runs(self) -> list[dict[str, Any]]:
        return [summary(run) for run in self.store.runs()]

    def about(self, run: str) -> dict[str, Any]:
        return about(self.store.run(run), datetime.now().astimezone())

    def ask(self, kind: str, run: str, args: dict[str, Any]) -> dict[str, Any]:
        with progress_line() as progress:
            return answer(self.store, Question(kind, run, args), progress, best().name)

    def settings(self, run: str, given: dict[str, Any]) -> dict[str, Any]:
        return change(self.store, run, given)

    def demo(self) -> dict[str, Any]:
        with progress_line() as progress:
            return {"runs": demo.load(self.store, progress)}

    def backup(self, dest: Path) -> None:
        self.store.backup(dest)


class There:
    """The dashboard at `url`."""

    def __init__(self, url: str, token: str):
        self._http = httpx.Client(base_url=url, headers={TOKEN: token}, timeout=60.0, trust_env=False)

    def bring_in(self, paths: list[Path], run: str | None, role: str | None, states: list[int] | None) -> dict[str, Any]:
        asked = {"paths": [str(path.absolute()) for path in paths], "run": run, "as": role, "states": states}
        return self._wait(self._call("POST", "/api/import", asked))

    def runs(self) -> list[dict[str, Any]]:
        return self._call("GET", "/api/runs")["runs"]

    def about(self, run: str) -> dict[str, Any]:
        return self._call("POST", "/api/about", {"run": run})

    def ask(self, kind: str, run: str, args: dict[str, Any]) -> dict[str, Any]:
        return self._wait(self._call("POST", "/api/ask", {"kind": kind, "run": run, "args": args}))

    def settings(self, run: str, given: dict[str, Any]) -> dict[str, Any]:
        return self._call("POST", "/api/settings", {"run": run, "settings": given})["settings"]

    def demo(self) -> dict[str, Any]:
        return self._wait(self._call("POST", "/api/demo", {}))

    def backup(self, dest: Path) -> None:
        self._call("POST", "/api/backup", {"dest": str(dest.absolute())})

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        try:
            reply = self._http.request(method, path, json=body)
            document = reply.json()
        except (httpx.HTTPError, ValueError) as error:
            where = self._http.base_url
            raise Eagle3Error(f"The dashboard at {where} did not answer ({error}). Stop it, or try again.") from None
        if reply.is_error:
            raise BadInput(document.get("error", f"The dashboard refused the request ({reply.status_code})."))
        return document

    def _wait(self, asked: dict[str, Any]) -> dict[str, Any]:
        if "result" in asked:
            return asked["result"]
        path = f"/api/jobs/{asked['job']}"
        with progress_line() as progress:
            try:
                while (job := self._call("GET", path))["state"] in ("queued", "running"):
                    waiting = f"waiting, {job['ahead']} before it" if job["state"] == "queued" else job["message"]
                    progress(job["done"], job["total"], waiting)
                    time.sleep(POLL)
            except KeyboardInterrupt:
                self._call("POST", f"{path}/cancel", {})
                raise
        if job["state"] != "done":
            raise Cancelled(job["message"] or f"The job was {job['state']}.")
        return job["result"]


@contextmanager
def opened(folder: Path) -> Iterator[Here | There]:
    """The store of that folder, opened here, or through its dashboard when one runs. StoreBusy when neither works."""
    found = _opened(folder.absolute())
    if isinstance(found, There):
        yield found
        return
    with found as store:
        yield Here(store)


def _opened(folder: Path) -> Store | There:
    """Waits while another command has the store, or a dashboard is about to say its address."""
    until = time.monotonic() + PATIENCE
    with progress_line() as progress:
        while True:
            try:
                return Store.open(folder)
            except StoreBusy as busy:
                if busy.url and busy.token:
                    return There(busy.url, busy.token)
                if time.monotonic() > until:
                    raise
                progress(0, 0, "waiting for another command that uses the store")
            time.sleep(POLL)


@contextmanager
def progress_line() -> Iterator[Any]:
    """A progress callback that keeps one line on a terminal, and is silent where stderr is none."""
    shown = False

    def progress(done: float, total: float, message: str) -> None:
        nonlocal shown
        if sys.stderr.isatty():
            shown = True
            percent = f"{100 * done / total:3.0f} % " if total else ""
            print(f"\r\x1b[K{percent}{message}", end="", file=sys.stderr, flush=True)

    try:
        yield progress
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
