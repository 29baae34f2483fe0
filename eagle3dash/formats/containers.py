"""Tensor containers opened lazily: safetensors by offsets, torch files through a screened, memory-mapped load.

Runs only in the parsing child. Knows how bytes are arranged in a container, not what the tensors mean. Every leaf is a
`Leaf`: it has a shape and a dtype, and gives rows on request. Limits follow what hostile files did to the libraries
(safetensors 0.8: duplicate keys, megabyte names and headers accepted; torch 2.13: mapped loads trust sizes): see `pickles`.
"""

from __future__ import annotations

import ctypes
import json
import math
import mmap
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from eagle3dash.errors import BadInput
from eagle3dash.formats import pickles
from eagle3dash.formats.tensors import DTYPES

MAX_HEADER = 8 << 20
MAX_TENSORS = 20_000
MAX_NAME = 200
MAX_NODES = 100_000
MAX_DEPTH = 8
CHUNK = 8 << 20


@dataclass(frozen=True)
class Leaf:
    """A tensor that still lies in its file: `shape`, `dtype`, `rows(a, b)` and `read()`; `mapped` leaves lie in a
    mapping."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    path: str = ""
    offset: int = 0
    held: torch.Tensor | None = None
    mapped: bool = False

    def rows(self, a: int, b: int) -> torch.Tensor:
        """Rows a..b of the first dimension, as an own copy."""
        if self.held is None:
            return self._pread(a, b)
        part = self.held[a:b]
        copy = part.clone(memory_format=torch.contiguous_format)
        if self.mapped and part.numel():
            span = 1 + sum((size - 1) * stride for size, stride in zip(part.shape, part.stride(), strict=True))
            _forget(part.data_ptr(), span * part.element_size())
        return copy

    def read(self) -> torch.Tensor:
        """The whole tensor, as an own copy."""
        if self.shape:
            return self.rows(0, self.shape[0])
        return self.held.clone() if self.held is not None else replace(self, shape=(1,)).rows(0, 1)[0]

    def step(self) -> int:
        """Rows that make up about 8 MiB."""
        return max(1, CHUNK // max(1, math.prod(self.shape[1:]) * self.dtype.itemsize))

    def first(self) -> Leaf:
        """[1, S, ...] -> [S, ...]"""
        return replace(self, shape=self.shape[1:], held=None if self.held is None else self.held[0])

    def _pread(self, a: int, b: int) -> torch.Tensor:
        row = math.prod(self.shape[1:]) * self.dtype.itemsize
        buffer = bytearray((b - a) * row)
        view, at = memoryview(buffer), self.offset + a * row
        with open(self.path, "rb", buffering=0) as file:
            while view:
                count = os.preadv(file.fileno(), [view[: 1 << 30]], at)
                if count == 0:
                    raise BadInput(
                        "the file ended while it was read; somebody shortened it. Try again when it is complete."
                    )
                view, at = view[count:], at + count
        shape = (b - a, *self.shape[1:])
        return torch.frombuffer(buffer, dtype=self.dtype).reshape(shape) if buffer else torch.empty(shape, dtype=self.dtype)


def _forget(address: int, length: int) -> None:
    """Give the pages of a private file mapping back, so that memory does not grow with the file.

    Nothing is ever written to the mapping, so pages that are needed again come from the file as they were.
    """
    page = mmap.PAGESIZE
    start = -(-address // page) * page
    size = (address + length) // page * page - start
    if size > 0:
        ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), mmap.MADV_DONTNEED)


# ---- safetensors ---------------------------------------------------------------------------------------------------


def open_safetensors(path: str) -> dict[str, Leaf]:
    """Name -> Leaf. Raises BadInput with the reason when header and file do not fit together."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(8)
        length = int.from_bytes(head, "little")
        text = file.read(min(length, MAX_HEADER))
    if len(head) < 8 or length > size - 8:
        raise BadInput(f"truncated: {size} bytes, header says it alone has {length}. Copy the file again.")
    if length > MAX_HEADER:
        raise BadInput(f"the safetensors header has {length} bytes; at most {MAX_HEADER} are accepted.")
    table = _table(text)
    leaves = {name: _leaf(path, name, spec, 8 + length) for name, spec in table.items() if name != "__metadata__"}
    _check_cover(leaves, 8 + length, size)
    return leaves


def _table(text: bytes) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise BadInput("the safetensors header names a tensor twice. Write the file again.")
        return dict(pairs)

    try:
        table = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the safetensors header is not readable JSON ({str(error)[:80]}). The file is damaged.") from error
    if not isinstance(table, dict) or len(table) > MAX_TENSORS or any(len(name) > MAX_NAME for name in table):
        raise BadInput(f"the safetensors header has over {MAX_TENSORS} tensors or names over {MAX_NAME} characters.")
    return table


def _leaf(path: str, name: str, spec: Any, base: int) -> Leaf:
    try:
        dtype, shape, (start, end) = DTYPES[spec["dtype"]], tuple(spec["shape"]), spec["data_offsets"]
        numbers = [*shape, start, end]
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"tensor {name[:80]!r}: unusable header entry {str(spec)[:80]}.") from error
    if not all(type(n) is int and 0 <= n < 1 << 62 for n in numbers) or math.prod(shape) * dtype.itemsize != end - start:
        raise BadInput(
            f"tensor {name[:80]!r}: shape {list(shape)} of {spec['dtype']} does not fill bytes {start} to {end}."
        )
    return Leaf(shape, dtype, path, base + start)


def _check_cover(leaves: dict[str, Leaf], at: int, size: int) -> None:
    for name, leaf in sorted(leaves.items(), key=lambda item: (item[1].offset, math.prod(item[1].shape))):
        if leaf.offset != at:
            raise BadInput(f"tensor {name[:80]!r}: overlaps its neighbour or leaves a hole. The file is damaged.")
        at += math.prod(leaf.shape) * leaf.dtype.itemsize
    if at != size:
        word = "truncated" if at > size else "has bytes after its last tensor"
        raise BadInput(f"{word}: {size} bytes, but its header describes {at}. Copy the file again.")


# ---- torch files ---------------------------------------------------------------------------------------------------


def open_torch(path: str, name: str) -> Any:
    """What torch.save wrote: dicts, lists, numbers and text with a Leaf for each tensor. Nothing in it is executed."""
    mapped = pickles.screen(Path(path))
    loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    budget = [MAX_NODES]
    return _tree(loaded, path, mapped, budget, 0)


def _tree(node: Any, path: str, mapped: bool, budget: list[int], depth: int) -> Any:
    budget[0] -= 1
    if budget[0] < 0 or depth > MAX_DEPTH:
        raise BadInput(
            f"holds more than {MAX_NODES} values or nests deeper than {MAX_DEPTH}. Save a plain dict of tensors."
        )
    if isinstance(node, torch.Tensor):
        return _checked(node, path, mapped)
    if isinstance(node, dict):
        return {key: _tree(value, path, mapped, budget, depth + 1) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return [_tree(value, path, mapped, budget, depth + 1) for value in node]
    return node


def _checked(tensor: torch.Tensor, path: str, mapped: bool) -> Leaf:
    if tensor.layout is not torch.strided or tensor.device.type != "cpu" or tensor.is_quantized or tensor.is_nested:
        raise BadInput(f"holds a {tensor.layout} tensor on {tensor.device}; only plain dense tensors are accepted.")
    if tensor.dtype not in DTYPES.values():
        raise BadInput(f"holds a tensor of {tensor.dtype}, which is not supported. Save it as bfloat16 or float32.")
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise BadInput(
            f"a tensor of shape {list(tensor.shape)} is larger than its stored data. Save it with .contiguous()."
        )
    return Leaf(tuple(tensor.shape), tensor.dtype, path=path, held=tensor.detach(), mapped=mapped)
