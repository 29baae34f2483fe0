"""The worker process: answers one question after another on one device, so that a crash or a cancel costs nobody else.

`python -m eagle3dash.jobs.worker DEVICE`. JSON lines in: {"payload", "out"}; out: {"progress": [done, total, message]} as
often as it likes, then {"result"} or {"error"}. Frames are written as Parquet into the folder `out`. It knows no store
and no queue. A fault that is not the user's ends the process: the queue reads the exit and the last line of stderr.
The process stays warm between questions and leaves when stdin closes or nothing came for IDLE seconds.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

import torch

from eagle3dash.drafter import memory
from eagle3dash.errors import Eagle3Error
from eagle3dash.jobs.answers import Answer, write_answer
from eagle3dash.jobs.devices import cores, devices
from eagle3dash.jobs.tasks import run
from eagle3dash.jobs.tasks.shortage import shortage_told
from eagle3dash.records import Progress

IDLE = 600.0  # seconds after which a warm worker gives its memory back
ATTEMPTS = 3  # of a question that does not fit on its CUDA device
BEAT = 0.25  # seconds between two progress lines


def main(arguments: list[str]) -> int:
    """Serve questions from stdin until it closes. Returns the exit code."""
    device = arguments[0] if arguments else "cpu"
    protocol = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # a stray print of a library must not break the protocol
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(cores())
    _die_first()
    if device == "cpu":
        _limit_memory()
    waiting: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(waiting,), daemon=True).start()
    while True:
        try:
            line = waiting.get(timeout=IDLE)
        except queue.Empty:
            return 0
        _serve(json.loads(line), device, protocol)


def _listen(waiting: queue.Queue[str]) -> None:
    for line in sys.stdin:
        waiting.put(line)
    os._exit(0)  # the owner is gone: nobody wants the answer any more, however far it is


def _serve(question: dict[str, Any], device: str, protocol: TextIO) -> None:
    last = 0.0

    def send(**message: Any) -> None:
        protocol.write(json.dumps(message) + "\n")

    def progress(done: float, total: float, message: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= BEAT or done >= total:
            last = now
            send(progress=[done, total, message])

    try:
        with shortage_told(device):
            answer = _answer(question["payload"], progress, device)
        folder = Path(question["out"])
        send(result=[write_answer(part, folder, str(number)) for number, part in enumerate(answer.flat())])
    except Eagle3Error as error:
        send(error=str(error))


def _answer(payload: dict[str, Any], progress: Progress, device: str) -> Answer:
    """Another program may take the memory that chunk sizes were made for: then once more with smaller chunks."""
    for _ in range(ATTEMPTS - 1):
        try:
            return run(payload, progress, device)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            memory.CAP["cuda"] = min(memory.CAP["cuda"], memory.free_bytes(torch.device(device)) // 8) // 2
    return run(payload, progress, device)


def _die_first() -> None:
    """When the machine runs out of memory the system should end this process and not the dashboard."""
    score = Path("/proc/self/oom_score_adj")
    if score.exists():
        score.write_text("500")


def _limit_memory() -> None:
    """An allocation beyond what the machine has free fails here as an error instead of dragging the machine down."""
    free = devices()[-1].free_bytes
    if free:
        resource.setrlimit(resource.RLIMIT_DATA, (free, resource.getrlimit(resource.RLIMIT_DATA)[1]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
