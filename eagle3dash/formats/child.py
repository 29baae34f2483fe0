"""`python -m eagle3dash.formats.child`: the process in which users' files are opened.

Imports the readers once, then forks a worker with resource limits for each request, so that a hostile or broken file takes
down only that worker. Speaks JSON lines with `sandbox`: a request on stdin; progress, result or error, and the worker's
exit on stdout. Ends when stdin closes or after two idle minutes. Limits and reasons: RLIMIT_AS scales with the size of the
files, because a 350-byte torch file can ask for 10 GB.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

import torch

from eagle3dash.errors import BadInput, Refused
from eagle3dash.formats import work
from eagle3dash.formats.job import Job
from eagle3dash.formats.scan import File
from eagle3dash.records import to_json

IDLE_SECONDS = 120
SPARE_MEMORY = 1536 << 20
SPARE_DISK = 256 << 20
OPEN_FILES = 256
NO_MEMORY = "reading needs more memory than a file of this size may take. It is damaged or hostile."
PR_SET_PDEATHSIG = 1
CLONE_NEWNET = 0x40000000


def main() -> None:
    """Serve requests until stdin closes."""
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever a library prints must not mix with the replies
    torch.set_num_threads(1)
    while select.select([0], [], [], IDLE_SECONDS)[0]:
        line = sys.stdin.buffer.readline()
        if not line:
            return
        send(replies, {"started": True})
        pid = os.fork()
        if pid == 0:
            work_and_leave(json.loads(line), replies)
        if not reap(pid, replies):
            return


def reap(pid: int, replies: BinaryIO) -> bool:
    """Wait for the worker; kill it when the parent goes away (False)."""
    fd = os.pidfd_open(pid)
    ready = select.select([fd, 0], [], [])[0]
    if fd not in ready:
        os.kill(pid, signal.SIGKILL)
    os.close(fd)
    _, status = os.waitpid(pid, 0)
    send(replies, {"exit": os.waitstatus_to_exitcode(status)})
    return fd in ready


def send(replies: BinaryIO, message: dict[str, Any]) -> None:
    """One line, whole."""
    view = memoryview(json.dumps(message).encode() + b"\n")
    while view:
        view = view[replies.write(view) :]


def work_and_leave(request: dict[str, Any], replies: BinaryIO) -> None:
    """The worker: limits, work, one answer, gone. Never returns."""
    code = 1
    try:
        job = _job(request, replies)
        _limit(request["seconds"], job.files)
        send(replies, _answer(request["op"], job))
        code = 0
    finally:
        if code:
            sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(code)


def _answer(op: str, job: Job) -> dict[str, Any]:
    try:
        return {"result": work.describe(job) if op == "inspect" else work.run(job)}
    except Refused as error:
        return {"error": str(error), "refusal": to_json(error.refusal)}
    except BadInput as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": f"{job.files[0].name}: {NO_MEMORY}" if len(job.files) == 1 else f"One of the files: {NO_MEMORY}"}


def _job(request: dict[str, Any], replies: BinaryIO) -> Job:
    last, pending, said = [0.0], [0], [""]

    def progress(count: int, message: str) -> None:
        pending[0] += count
        if time.monotonic() - last[0] > 0.1 or message != said[0]:
            send(replies, {"progress": pending[0], "message": message})
            last[0], pending[0], said[0] = time.monotonic(), 0, message

    scratch = Path(request["scratch"])
    return Job(
        [File(**file) for file in request["files"]], scratch, scratch if request["op"] == "read" else None, request["role"],
        tuple(request["states"]) if request["states"] else None, request["width"], None, progress,
    )  # fmt: skip


def _limit(seconds: int, files: list[File]) -> None:
    """No more memory, time, files and disk than these files can need; no network; die with the parent; no core dump."""
    total, largest = sum(file.bytes for file in files), max(file.bytes for file in files)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    memory = mapped + SPARE_MEMORY + total + 2 * largest
    disk = SPARE_DISK + 16 * total
    for name, value in (("AS", memory), ("CPU", seconds), ("FSIZE", disk), ("NOFILE", OPEN_FILES), ("CORE", 0)):
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        last = value + 5 if name == "CPU" and hard == resource.RLIM_INFINITY else value  # SIGXCPU first, which says why
        resource.setrlimit(kind, (value, last))
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.unshare(CLONE_NEWNET)  # no network; only root may do this, for others it does nothing


if __name__ == "__main__":
    main()
