"""The container GGUF: metadata, tensor table, and rows of a tensor dequantised to float32.

Runs only in the parsing child. Facts: ggml `docs/gguf.md` (versions 2 and 3, little-endian); block sizes and dequantisation
come from the `gguf` package (llama.cpp `gguf-py`). Its own reader maps the file and builds three arrays for every token's
text, which takes tens of seconds for a large vocabulary; this one reads the metadata once, front to back.
"""

from __future__ import annotations

import math
import os
import struct
from dataclasses import dataclass
from typing import Any, BinaryIO

import gguf
import numpy as np

from eagle3dash.errors import BadInput

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
MAX_STRING = 16 << 20
MAX_ITEMS = 20_000_000
MAX_ENTRIES = 100_000


@dataclass(frozen=True)
class Stored:
    """A tensor of the file. `shape` is row-major: the file lists the innermost dimension first."""

    path: str
    name: str
    shape: tuple[int, ...]
    kind: gguf.GGMLQuantizationType
    offset: int

    @property
    def row_bytes(self) -> int:
        block, size = gguf.GGML_QUANT_SIZES[self.kind]
        return self.shape[-1] // block * size

    def rows(self, a: int, b: int) -> np.ndarray:
        """Rows a..b as float32 [b-a, width]; a vector has one row."""
        want = (b - a) * self.row_bytes
        with open(self.path, "rb") as file:
            data = os.pread(file.fileno(), want, self.offset + a * self.row_bytes)
        if len(data) < want:
            raise BadInput(f"truncated: {self.name} ends after {len(data)} of {want} bytes. Copy the file again.")
        blocks = np.frombuffer(data, dtype=np.uint8).reshape(b - a, self.row_bytes)
        return np.array(gguf.quants.dequantize(_typed(blocks, self.kind), self.kind), dtype=np.float32)


def _typed(blocks: np.ndarray, kind: gguf.GGMLQuantizationType) -> np.ndarray:
    plain = {gguf.GGMLQuantizationType.F32: np.float32, gguf.GGMLQuantizationType.F16: np.float16}
    return blocks.view(plain[kind]) if kind in plain else blocks


def read(path: str) -> tuple[dict[str, Any], dict[str, Stored]]:
    """(metadata, tensors by name). Strings stay bytes. Raises BadInput when the file is cut or of another version."""
    with open(path, "rb") as file:
        try:
            return _read(file, path)
        except (struct.error, ValueError, KeyError, OverflowError) as error:
            raise BadInput(f"not a complete GGUF file ({str(error)[:60]}). Copy it again.") from error


def _read(file: BinaryIO, path: str) -> tuple[dict[str, Any], dict[str, Stored]]:
    if file.read(4) != b"GGUF":
        raise ValueError("no GGUF mark at the start")
    version, tensors, entries = struct.unpack("<IQQ", file.read(20))
    if version not in (2, 3) or tensors > MAX_ENTRIES or entries > MAX_ENTRIES:
        raise BadInput(f"GGUF version {version} with {tensors} tensors; versions 2 and 3, little-endian, are supported.")
    metadata: dict[str, Any] = {}
    for _ in range(entries):
        key = _string(file).decode("utf-8", "replace")
        metadata[key] = _value(file, *struct.unpack("<I", file.read(4)))
    table = [_entry(file) for _ in range(tensors)]
    align = metadata.get("general.alignment", 32)
    if type(align) is not int or not 1 <= align <= 1 << 20:
        raise ValueError(f"alignment {align}")
    start = -(-file.tell() // align) * align
    size = os.fstat(file.fileno()).st_size
    return metadata, {name: _stored(path, name, shape, kind, start + at, size) for name, shape, kind, at in table}


def _string(file: BinaryIO) -> bytes:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > MAX_STRING:
        raise ValueError(f"a text of {length} bytes")
    text = file.read(length)
    if len(text) < length:
        raise ValueError("ends inside a text")
    return text


def _value(file: BinaryIO, kind: int, nested: bool = False) -> Any:
    if kind == STRING:
        return _string(file)
    if kind != ARRAY:
        code = "<" + NUMBERS[kind]
        return struct.unpack(code, file.read(struct.calcsize(code)))[0]
    item, count = struct.unpack("<IQ", file.read(12))
    if count > MAX_ITEMS or nested:
        raise ValueError(f"a list of {count} values")
    if item in NUMBERS:
        code = f"<{count}{NUMBERS[item]}"
        return list(struct.unpack(code, file.read(struct.calcsize(code))))
    return [_value(file, item, nested=True) for _ in range(count)]


def _entry(file: BinaryIO) -> tuple[str, tuple[int, ...], int, int]:
    name = _string(file).decode("utf-8", "replace")[:200]
    (dims,) = struct.unpack("<I", file.read(4))
    if not 1 <= dims <= 8:
        raise ValueError(f"tensor {name!r} has {dims} dimensions")
    shape = struct.unpack(f"<{dims}Q", file.read(8 * dims))
    kind, offset = struct.unpack("<IQ", file.read(12))
    return name, tuple(reversed(shape)), kind, offset


def _stored(path: str, name: str, shape: tuple[int, ...], kind: int, offset: int, size: int) -> Stored:
    tensor = Stored(path, name, shape, gguf.GGMLQuantizationType(kind), offset)
    block, _ = gguf.GGML_QUANT_SIZES[tensor.kind]
    end = offset + math.prod(shape[:-1]) * tensor.row_bytes
    if shape[-1] % block or end > size:
        raise BadInput(f"truncated: tensor {name!r} {list(shape)} ends at byte {end} of {size}. Copy the file again.")
    return tensor
