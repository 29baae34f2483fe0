"""The queue: questions wait in order, one at a time a device; imports have a lane of their own.

Jobs live in the store, so a page reload or another browser sees the same ones; what was running when the owner ended is
`interrupted` and can be retried. The same question asked twice is one job. Progress is kept in memory only.
Knows the store and the worker processes; computes nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eagle3dash.errors import BadInput, Cancelled, Eagle3Error
from eagle3dash.jobs import demo, imports
from eagle3dash.jobs.child import Child
from eagle3dash.jobs.devices import Device, devices
from eagle3dash.jobs.questions import Question, cached, keep, payload, refreshed
from eagle3dash.store import Store

OPEN = ("queued", "running")
log = logging.getLogger(__name__)


@dataclass(eq=False)
class Work:
    """One job in hand. `stop` ends it when it runs; `cancelled` is seen before it starts and at every progress."""

    job: int
    kind: str
    run: str | None
    args: dict[str, Any]
    key: str
    payload: dict[str, Any] | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)
    stop: Callable[[], None] | None = None
    started: float | None = None
    done: float = 0.0
    total: float = 0.0
    message: str = ""

    @property
    def lane(self) -> str:
        """Files and computing do not wait for each other."""
        return "files" if self.kind in ("import", "demo") else "devices"


class Queue:
    """Owns the dispatcher threads. `close` ends them and their processes."""

    def __init__(self, store: Store, lanes: list[Device] | None = None):
        self._store = store
        self._change = threading.Condition()  # a re-entrant lock inside
        self._waiting: deque[Work] = deque()
        self._work: dict[int, Work] = {}
        self._brought: dict[int, dict[str, Any]] = {}  # what imports of this session answered
        self._closed = False
        found = devices() if lanes is None else lanes
        usable = [device for device in found if device.kind == "cuda"] or found
        self._children = [Child(device.name, _log(store, device)) for device in usable]
        loops = [(self._answer, child) for child in self._children] + [(self._import, None)]
        self._threads = [threading.Thread(target=self._serve, args=loop, daemon=True) for loop in loops]
        for thread in self._threads:
            thread.start()

    # ---- asking ----------------------------------------------------------------------------------------------------

    def cached(self, question: Question) -> dict[str, Any] | None:
        """The document, if the question was answered before."""
        return cached(self._store, question)

    def submit(self, question: Question) -> int:
        """A job id; the id of the job that is at it already, when there is one. Raises what the question lacks."""
        made = payload(self._store, question)
        return self._enqueue(question.kind, question.run, question.args, made["key"], made)

    def bring_in(self, paths: list[str], run: str | None, role: str | None = None, states: list[int] | None = None) -> int:
        """A job id for an import of files or folders of this machine."""
        args = {"paths": [str(path) for path in paths], "as": role, "states": states}
        return self._enqueue("import", run, args, imports.key(run, args))

    def load_demo(self) -> int:
        """A job id for bringing in the demo; the diagnosis of its runs follows by itself."""
        return self._enqueue("demo", None, {}, "demo")

    def retry(self, job: int) -> int:
        """The same question again, as a new job. BadInput while the old one is still open."""
        row = self._store.job(job)
        if row["state"] in OPEN:
            raise BadInput(f"Job {job} is {row['state']}; only one that ended can be retried.")
        if row["kind"] == "demo":
            return self.load_demo()
        if row["kind"] == "import":
            args = row["args"]
            return self.bring_in(args["paths"], row["run"], args.get("as"), args.get("states"))
        return self.submit(Question(row["kind"], row["run"], row["args"]))

    def cancel(self, job: int) -> None:
        """Takes a waiting job out, ends a running one (at most six seconds). Nothing happens to one that has ended."""
        with self._change:
            work = self._work.get(job)
            if work is None:
                self._store.job(job)  # NotFound for a job that never was
                return
            work.cancelled.set()
            if work in self._waiting:
                self._waiting.remove(work)
                self._finish(work, "cancelled")
                return
            stop = work.stop
        if stop is not None:
            stop()

    # ---- looking ---------------------------------------------------------------------------------------------------

    def status(self, job: int) -> dict[str, Any]:
        """The stored row with "ahead" (jobs before it), "rate" (units a second), "eta" (seconds; None until it is known)
        and "result" (the document; None until done, and for imports of an earlier session)."""
        row = self._seen(self._store.job(job))
        done = row["state"] == "done"
        return {**row, "result": self._brought.get(job) or self._store.result(row["key"]) if done else None}

    def jobs(self, limit: int = 100) -> list[dict[str, Any]]:
        """The newest jobs first, each as `status` shows it but without its result."""
        return [self._seen(row) for row in self._store.jobs(limit)]

    def _seen(self, row: dict[str, Any]) -> dict[str, Any]:
        with self._change:
            work = self._work.get(row["id"])
            if work is None:
                return {**row, "ahead": 0, "rate": None, "eta": None}
            before = list(self._waiting)[: self._waiting.index(work)] if work in self._waiting else []
            ahead = sum(other.lane == work.lane for other in before)
            if work in self._waiting:
                ahead += any(other.lane == work.lane for other in self._work.values() if other not in self._waiting)
        seconds = time.monotonic() - work.started if work.started else 0.0
        rate = work.done / seconds if work.done and seconds else None
        eta = (work.total - work.done) / rate if rate else None
        live = {"done": work.done, "total": work.total, "message": work.message or row["message"]}
        return {**row, **live, "ahead": ahead, "rate": rate, "eta": eta}

    def close(self) -> None:
        """Ends running jobs (they become `interrupted`), the processes and the threads."""
        with self._change:
            self._closed = True
            running = [work for work in self._work.values() if work.stop]
            for work in running:
                work.cancelled.set()
            self._change.notify_all()
        for child in self._children:
            child.stop()
        for thread in self._threads:
            thread.join(timeout=10)

    # ---- the lanes -------------------------------------------------------------------------------------------------

    def _serve(self, do: Callable[[Work, Child | None], None], child: Child | None) -> None:
        with ThreadPoolExecutor(1) as executor:  # a fault of ours ends one job, not the lane
            while (work := self._take(child)) is not None:
                error = executor.submit(do, work, child).exception()
                if error is None:
                    self._finish(work, "done")
                elif isinstance(error, Cancelled):
                    self._finish(work, "interrupted" if self._closed else "cancelled")
                elif isinstance(error, Eagle3Error):
                    self._finish(work, "failed", str(error))
                else:
                    log.error("job %s failed", work.job, exc_info=error)
                    text = f"A fault of eagle3dash ({type(error).__name__}); job {work.job} in the server's log says more."
                    self._finish(work, "failed", text)

    def _take(self, child: Child | None) -> Work | None:
        """Waits for the oldest job of this lane; None when the queue closes."""
        with self._change:
            while not self._closed:
                fits = [work for work in self._waiting if (work.lane == "files") == (child is None)]
                if fits:
                    work = fits[0]
                    self._waiting.remove(work)
                    work.started, work.stop = time.monotonic(), child.stop if child else work.cancelled.set
                    self._store.update_job(work.job, state="running", device=child.device if child else None)
                    return work
                self._change.wait()
        return None

    def _answer(self, work: Work, child: Child) -> None:
        asked = refreshed(self._store, work.payload)
        keep(self._store, work.run, child.ask(asked, self._progress(work), work.cancelled))

    def _import(self, work: Work, _: None) -> None:
        progress, args = self._progress(work), work.args
        if work.kind == "demo":
            self._brought[work.job] = {"runs": demo.load(self._store, progress)}
            for name in self._brought[work.job]["runs"]:  # so that the demo shows what it is there to show
                self.submit(Question("diagnose", name))
        else:
            where = args["paths"], work.run, args["as"], args["states"]
            told = self._brought[work.job] = imports.bring_in(self._store, *where, progress)
            work.message = f"added to {told['run']}: {', '.join(one['name'] for one in told['added'])}"[:300]

    def _progress(self, work: Work) -> Callable[[float, float, str], None]:
        def progress(done: float, total: float, message: str) -> None:
            work.done, work.total, work.message = done, total, message
            if work.cancelled.is_set():
                raise Cancelled("Cancelled.")

        return progress

    # ---- book-keeping ----------------------------------------------------------------------------------------------

    def _enqueue(
        self, kind: str, run: str | None, args: dict[str, Any], key: str, made: dict[str, Any] | None = None
    ) -> int:
        with self._change:
            same = [work.job for work in self._work.values() if work.key == key and not work.cancelled.is_set()]
            if same:
                return same[0]
            job = self._store.add_job(kind, run, args, key)
            self._work[job] = Work(job, kind, run, args, key, made)
            self._waiting.append(self._work[job])
            self._change.notify_all()
        return job

    def _finish(self, work: Work, state: str, message: str = "") -> None:
        closing = suppress(Eagle3Error) if self._closed else nullcontext()  # the store may be closed: interrupted, then
        with self._change, closing:
            del self._work[work.job]
            self._store.update_job(work.job, state=state, done=work.done, total=work.total, message=message or work.message)


def _log(store: Store, device: Device) -> Path:
    return store.folder / "logs" / f"worker-{device.name.replace(':', '-')}.log"
