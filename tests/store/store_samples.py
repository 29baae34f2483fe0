"""Imports for the store's tests: records as the formats make them, tensor files with content that differs by number."""

import hashlib
import random

from eagle3dash.records import Capture, Drafter, DrafterSpec, Import, Inferred, Log, Request, Sequence, Source, Window

SPEC = DrafterSpec(64, 32, 3, 128, 4, 2, 16, 1000, 500)


def content(number, size=5000):
    return random.Random(number).randbytes(size)


def sha(data):
    return hashlib.sha256(data).hexdigest()


def write(staging, number, size=5000):
    """A tensor file as formats leaves it in staging; returns its name."""
    data = content(number, size)
    name = sha(data)
    (staging / f"{name}.safetensors").write_bytes(data)
    return name


def capture(staging, number, role="training", size=5000, **fields):
    tensors = write(staging, number, size)
    record = Capture(
        "speculators", 32, "bfloat16", (0, 3, 31, None), (Sequence("data_0.pt", 12, tensors, "t" * 64, 7),), role, **fields
    )
    source = Source(f"data_{number}.pt", size, sha(b"source %d" % number))
    why = Inferred("states", "0, 3, 31, unknown", "data_config.json beside it")
    return Import("capture", f"capture {number}", sha(b"capture %d" % number), (source,), record, (why,), (), (tensors,))


def drafter(staging, number):
    tensors = write(staging, number)
    record = Drafter("specforge", SPEC, tensors, readings={"vllm": DrafterSpec(64, 32, 3, 128, 4, 2, 16, 1000, 500, 2)})
    return Import("drafter", f"drafter {number}", sha(b"drafter %d" % number), (), record, tensors=(tensors,))


def log(number, windows=(), requests=(), steps=3):
    record = Log("vllm", "vllm", "0.9", steps, tuple(windows), tuple(requests), {"model": "m"})
    return Import("log", f"server {number}.log", sha(b"log %d" % number), (), record)


def windows(count, **fields):
    return [Window(i + 1, f"12:{i // 60:02}:{i % 60:02}", accept_length=2.0 + i % 5 / 10, **fields) for i in range(count)]


def request(*accepted):
    return Request("r", accepted, (3,) * len(accepted), 10, 20)


def add(store, run, *make):
    """Add what each function of `make` builds in the staging folder."""
    with store.staging() as staging:
        return store.add(run, [one(staging) for one in make], staging)
