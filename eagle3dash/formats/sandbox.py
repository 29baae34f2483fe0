"""The caller's side of the parsing child: hand over a request, follow its progress, survive whatever the files do to it.

Knows processes and nothing about files' content. A child is kept warm for the next request; one that was cancelled, timed
out or broke is killed with all it started. Reasons: mapped readers die with SIGBUS when a file shrinks, small files can ask
for any amount of memory; neither may reach the dashboard.
"""

from __future__ import annotations

import json
import logging
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eagle3dash.errors import BadInput, Refused
from eagle3dash.records import Refusal, from_json

TICK = 0.2
START_SECONDS = 120
BASE_SECONDS = 120
BYTES_A_SECOND = 4_000_000
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")
QUIET = {
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1",
}  # fmt: skip
LOG = logging.getLogger(__name__)

Report = Callable[[int, str], None]  # bytes since the last call, message; may raise Cancelled


class Child:
    """A running `eagle3dash.formats.child`."""

    def __init__(self) -> None:
        root = Path(__file__).parents[2]
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "eagle3dash.formats.child"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, bufsize=0, cwd="/", start_new_session=True,
            env={**{key: os.environ[key] for key in KEPT if key in os.environ}, **QUIET, "PYTHONPATH": str(root)},
        )  # fmt: skip
        self.lines: list[bytes] = []  # whole messages, not yet looked at
        self.parts: list[bytes] = []  # of the message that is still coming in
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def send(self, request: dict[str, Any]) -> bool:
        """False when the child has gone (it leaves by itself when it was idle)."""
        view = memoryview(json.dumps(request).encode() + b"\n")
        try:
            while view:
                view = view[self.process.stdin.write(view) :]
        except OSError:
            return False
        return True

    def message(self, seconds: float) -> dict[str, Any] | None:
        """The next message, None after `seconds` without one, {"exit": None} when the child is gone."""
        if not self.lines:
            if not self.selector.select(seconds):
                return None
            block = os.read(self.process.stdout.fileno(), 1 << 20)
            if not block:
                return {"exit": None}
            *whole, rest = block.split(b"\n")
            if whole:
                self.lines = [b"".join([*self.parts, whole[0]]), *whole[1:]]
                self.parts = []
            self.parts.append(rest)
            if not whole:
                return None
        try:
            return json.loads(self.lines.pop(0))
        except (ValueError, RecursionError):  # whatever took the child over does not speak our language
            return {"exit": None}

    def stop(self) -> None:
        """Kill the child and everything that it started, and let go of its pipes."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.selector.close()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            stream.close()

    def complaint(self) -> str:
        """The end of what the child wrote to stderr, for the log."""
        size = os.fstat(self.errors.fileno()).st_size
        return os.pread(self.errors.fileno(), 4000, max(0, size - 4000)).decode(errors="replace")


_idle: list[Child] = []
_lock = threading.Lock()


def ask(request: dict[str, Any], total: int, report: Report) -> Any:
    """The child's result. Raises BadInput with its message, or saying how it ended; Cancelled comes from `report`."""
    seconds = BASE_SECONDS + total // BYTES_A_SECOND
    child = _started({**request, "seconds": seconds})
    code = None
    try:
        code, answer, doing = _follow(child, time.monotonic() + seconds, seconds, report)
        return _outcome(child, code, answer, doing)
    finally:
        if code is None:  # gone, or still busy with something that nobody waits for
            child.stop()
        else:
            with _lock:
                _idle.append(child)


def warm() -> None:
    """Start a child ahead of the first request: loading the readers takes it some seconds."""
    child = Child()
    with _lock:
        _idle.append(child)


def _started(request: dict[str, Any]) -> Child:
    """A child that has taken the request: a warm one, else a new one."""
    while True:
        with _lock:
            child = _idle.pop() if _idle else None
        fresh = child is None
        child = child or Child()
        if child.send(request) and (first := _first(child)) and first.get("started"):
            return child
        complaint = child.complaint()
        child.stop()
        if fresh:
            LOG.error("the parsing child does not start: %s", complaint)
            raise BadInput("The process that reads files does not start. Run `python -m eagle3dash doctor`.")


def _first(child: Child) -> dict[str, Any] | None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if (message := child.message(TICK)) is not None:
            return message
    return None


def _follow(child: Child, until: float, seconds: int, report: Report) -> tuple[int | None, dict[str, Any], str]:
    """(exit code of the worker, its answer, the last thing that it said it does)."""
    answer: dict[str, Any] = {}
    doing = "the files"
    while True:
        message = child.message(TICK)
        if message is None:
            report(0, doing)
            if time.monotonic() > until:
                raise BadInput(
                    f"{doing}: took longer than {seconds} s and was stopped. It is damaged, or the disk is slow."
                )
        elif "progress" in message:
            doing = str(message["message"])
            report(int(message["progress"]), doing)
        elif "exit" in message:
            return message["exit"], answer, doing
        else:
            answer = message


def _outcome(child: Child, code: int | None, answer: dict[str, Any], doing: str) -> Any:
    if "error" in answer:
        refusal = _refusal(answer.get("refusal"))
        raise Refused(str(answer["error"]), refusal) if refusal else BadInput(str(answer["error"]))
    if code == 0 and "result" in answer:
        return answer["result"]
    LOG.info("parsing child ended with %s: %s", code, child.complaint())
    reasons = {
        -signal.SIGBUS: "a file was shortened while it was read. Try again when it is complete.",
        -signal.SIGXCPU: "reading took too long. A file is damaged or hostile.",
        -signal.SIGXFSZ: "a file unpacks to more than it may. It is damaged or hostile.",
    }
    reason = reasons.get(
        code or 0, f"a file cannot be read: the reader stopped (code {code}). It is damaged or of another kind."
    )
    raise BadInput(f"{doing}: {reason}")


def _refusal(told: Any) -> Refusal | None:
    """What the child says of a file that it refused; None where it says nothing that makes sense: it is not trusted."""
    try:
        found: Refusal = from_json(Refusal, told)
        numbers = [n for each in found.rows for n in (each.slot, each.first, each.count, each.rows)] if found else []
        texts = [found.file, *found.lacks, *(each.holds for each in found.rows)] if found else []
    except (TypeError, AttributeError):
        return None
    return found if all(type(n) is int for n in numbers) and all(isinstance(text, str) for text in texts) else None
