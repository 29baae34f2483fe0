"""The owner's end of a worker process: start it, ask it, read its progress, end it. One child, one question at a time.

The child has a process group of its own; to end it is SIGTERM to the group, five seconds, SIGKILL. A child that dies
is an answer too: `Died`, with the last line it wrote to its log.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from eagle3dash.errors import Cancelled, Eagle3Error
from eagle3dash.jobs.answers import Answer, read_answer
from eagle3dash.records import Progress

GRACE = 5.0  # seconds between SIGTERM and SIGKILL
# Threads that spin while they wait cost four times the processor time, and four times the wall time on a busy machine.
WAITING = {"OMP_WAIT_POLICY": "PASSIVE"}


class Died(Eagle3Error):
    """The worker process ended in the middle of a question."""


class Child:
    """A warm worker on one device. Not for use from two threads, but for `stop`."""

    def __init__(self, device: str, log: Path):
        self.device, self.log = device, log
        self._process: subprocess.Popen[str] | None = None

    def ask(self, payload: dict[str, Any], progress: Progress, cancelled: threading.Event) -> list[Answer]:
        """The answers, the asked one last. Raises what the worker reports, `Died`, or `Cancelled` once `cancelled` is set
        and `stop` was called."""
        with tempfile.TemporaryDirectory(prefix="eagle3dash-") as folder:
            question = json.dumps({"payload": payload, "out": folder}) + "\n"
            for _ in range(2):
                process = self._started()
                if cancelled.is_set():
                    self.stop()
                message = self._converse(process, question, progress)
                if message is not None:
                    return [read_answer(part, Path(folder)) for part in message["result"]]
                if process.wait() != 0:  # 0: it was just leaving, as it had been idle; a new one takes the question
                    break
        raise Cancelled("Cancelled.") if cancelled.is_set() else self._obituary(process)

    def _converse(self, process: subprocess.Popen[str], question: str, progress: Progress) -> dict[str, Any] | None:
        """The result, or None when the process ended before it."""
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(question)
            process.stdin.flush()
        for line in process.stdout:
            message = json.loads(line)
            if "error" in message:
                raise Eagle3Error(message["error"])
            if "result" in message:
                return message
            progress(*message["progress"])
        return None

    def stop(self) -> None:
        """Ends the process, and with it the question it is at. Safe from any thread."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
                return

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        alive = self._process is not None and self._process.poll() is None
        return self._process.pid if alive else None

    def _started(self) -> subprocess.Popen[str]:
        if self.pid is None:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with self.log.open("w") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "eagle3dash.jobs.worker", self.device],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    start_new_session=True,
                    env={**WAITING, **os.environ},
                    cwd=Path(__file__).parents[2],
                )
        return self._process

    def _obituary(self, process: subprocess.Popen[str]) -> Died:
        code = process.wait()
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        hint = " The machine may have run out of memory." if code == -signal.SIGKILL else ""
        last = f" Its last words: {lines[-1][:200]}." if lines else ""
        return Died(f"The worker on {self.device} {how}.{hint}{last} See logs/{self.log.name} of the store; retry it.")
