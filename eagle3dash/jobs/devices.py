"""The machine's devices: what can run a replay, and how much memory each has left.

Knows nothing of jobs. CUDA devices come from torch, the processor's memory from /proc/meminfo (absent: None).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from eagle3dash.errors import Eagle3Error


@dataclass(frozen=True)
class Device:
    """`name` is what torch calls it (cpu, cuda:0); bytes are None where the system does not tell."""

    name: str
    kind: Literal["cpu", "cuda"]
    title: str
    free_bytes: int | None
    total_bytes: int | None


def devices() -> list[Device]:
    """Every usable device, the fastest kind first; the processor is always the last."""
    found = [_cuda(index) for index in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return [*found, _cpu()]


def best() -> Device:
    """The CUDA device with the most free memory, else the processor."""
    found = devices()
    cuda = [device for device in found if device.kind == "cuda"]
    return max(cuda, key=lambda device: device.free_bytes or 0) if cuda else found[-1]


def cores() -> int:
    """Processor cores that this process may use (a container or taskset may grant fewer than the machine has)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def shortage_told(device: str) -> Iterator[None]:
    """Turns running out of memory inside into an Eagle3Error; torch has a type of its own for it on CUDA only."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, (MemoryError, torch.OutOfMemoryError)) and "can't allocate memory" not in str(error):
            raise
        raise Eagle3Error(
            f"Not enough memory on {device} for this question. Free some there, or use a capture of shorter texts."
        ) from error


def _cuda(index: int) -> Device:
    free, total = torch.cuda.mem_get_info(index)
    return Device(f"cuda:{index}", "cuda", torch.cuda.get_device_name(index), free, total)


def _cpu() -> Device:
    memory = {}
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            name, _, rest = line.partition(":")
            memory[name] = int(rest.split()[0]) * 1024
    title = f"processor, {cores()} cores"
    return Device("cpu", "cpu", title, memory.get("MemAvailable"), memory.get("MemTotal"))
