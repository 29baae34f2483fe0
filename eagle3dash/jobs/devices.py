"""The machine's devices: what can run a replay, and how much memory each has.

Knows nothing of jobs. CUDA is asked in a process of its own (`python -m eagle3dash.jobs.devices`), once: asking it makes a
context, which would take half a gigabyte of the device for as long as the dashboard runs.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[2]
NODES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # the drivers of NVIDIA, of WSL and of ROCm, which torch calls cuda too
PATIENCE = 120  # seconds


@dataclass(frozen=True)
class Device:
    """`name` is what torch calls it (cpu, cuda:0); bytes are None where the system does not tell. free_bytes of a CUDA
    device is what it was when this process first asked."""

    name: str
    kind: Literal["cpu", "cuda"]
    title: str
    free_bytes: int | None
    total_bytes: int | None


def devices() -> list[Device]:
    """Every usable device, CUDA first; the processor is always the last."""
    return [*_cuda(), _cpu()]


def best() -> Device:
    """The CUDA device with the most free memory, else the processor."""
    cuda = _cuda()
    return max(cuda, key=lambda device: device.free_bytes or 0) if cuda else _cpu()


def cores() -> int:
    """Processor cores that this process may use (a container or taskset may grant fewer than the machine has)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _cuda() -> tuple[Device, ...]:
    if not any(Path(node).exists() for node in NODES):
        return ()
    command = [sys.executable, "-m", "eagle3dash.jobs.devices"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE, check=True).stdout
    except subprocess.SubprocessError:
        return ()  # a driver that breaks or hangs is no device
    return tuple(Device(**values) for values in json.loads(found))


def _cpu() -> Device:
    memory = {}
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            name, _, rest = line.partition(":")
            memory[name] = int(rest.split()[0]) * 1024
    title = f"processor, {cores()} cores"
    return Device("cpu", "cpu", title, memory.get("MemAvailable"), memory.get("MemTotal"))


def main() -> None:
    """Prints the CUDA devices as JSON."""
    import torch  # only here: the dashboard needs no torch

    found = []
    for index in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(index)
        found.append(asdict(Device(f"cuda:{index}", "cuda", torch.cuda.get_device_name(index), free, total)))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
