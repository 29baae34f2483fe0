"""Writes tensors as a canonical safetensors file named by the SHA-256 of its content.

Knows the container (8 bytes header length, JSON header, raw little-endian data; huggingface/safetensors README) and nothing
about what the tensors mean. Same tensors, same bytes: no metadata, entries ordered by item size (so that each is aligned)
and name. Streams: a tensor may come in chunks of rows, so that memory does not grow with the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
    torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2",
}  # fmt: skip
DTYPES = {name: dtype for dtype, name in NAMES.items()}
SYNC_EVERY = 1 << 28


@dataclass(frozen=True)
class Entry:
    """A tensor to write: `chunks` yields consecutive pieces along the first dimension; together they fill `shape`."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    chunks: Iterable[torch.Tensor]

    @property
    def nbytes(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count * self.dtype.itemsize


def entry(name: str, tensor: torch.Tensor) -> Entry:
    """A whole tensor as an Entry."""
    return Entry(name, tensor.dtype, tuple(tensor.shape), (tensor,))


def write(folder: Path | None, entries: Iterable[Entry]) -> str:
    """Write folder/<sha256>.safetensors (mode 0444, fsynced, renamed into place) and return the hash.

    With folder None only reads and hashes, so that an inspection meets every error that an import would.
    """
    ordered = sorted(entries, key=lambda item: (-item.dtype.itemsize, item.name))
    if folder is None:
        digest = hashlib.sha256()
        for block in _blocks(ordered):
            digest.update(block)
        return digest.hexdigest()
    part = folder / f".part-{os.getpid()}"
    try:
        sha256 = _write(part, ordered)
        os.replace(part, folder / f"{sha256}.safetensors")
    finally:
        part.unlink(missing_ok=True)
    return sha256


def _write(path: Path, ordered: list[Entry]) -> str:
    digest, unsynced = hashlib.sha256(), 0
    with open(path, "xb", buffering=0) as file:
        for block in _blocks(ordered):
            digest.update(block)
            view = memoryview(block)
            while view:
                view = view[file.write(view) :]
            unsynced += len(block)
            if unsynced >= SYNC_EVERY:  # spread the flushing, so that the last fsync is short
                os.fdatasync(file.fileno())
                unsynced = 0
        os.fsync(file.fileno())
        os.fchmod(file.fileno(), 0o444)
    return digest.hexdigest()


def _blocks(ordered: list[Entry]) -> Iterator[bytes | memoryview]:
    yield _header(ordered)
    for item in ordered:
        written = 0
        for chunk in item.chunks:
            block = raw(chunk.to(item.dtype))
            written += len(block)
            yield block
        if written != item.nbytes:
            raise ValueError(f"{item.name}: {written} bytes given, shape {item.shape} needs {item.nbytes}")


def _header(ordered: list[Entry]) -> bytes:
    table, at = {}, 0
    for item in ordered:
        table[item.name] = {"dtype": NAMES[item.dtype], "shape": list(item.shape), "data_offsets": [at, at + item.nbytes]}
        at += item.nbytes
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # keeps the data 8-byte aligned
    return len(text).to_bytes(8, "little") + text


def raw(tensor: torch.Tensor) -> memoryview:
    """The tensor's bytes, row-major, without a copy where it is contiguous."""
    flat = tensor.detach().contiguous().reshape(-1)
    return memoryview(flat.view(torch.uint8).numpy()) if flat.numel() else memoryview(b"")
