"""A Target from a GGUF file: token_embd, output, output_norm and the tokenizer's pieces.

Runs only in the parsing child. The container is read by the `gguf` package (llama.cpp `gguf-py`), which also names the
tensors (`gguf/constants.py`). Its converter has already added the one of Gemma's norm weights, so `norm_plus_one` stays
false.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from eagle3dash.errors import BadInput
from eagle3dash.formats import vocabulary
from eagle3dash.formats.job import Built
from eagle3dash.formats.tensors import Entry, entry, write
from eagle3dash.records import Inferred, Target

NAMES = {"token_embd.weight": "embed_tokens.weight", "output.weight": "lm_head.weight", "output_norm.weight": "norm.weight"}
CHUNK = 8 << 20
Parts = dict[str, gguf.ReaderTensor]


class Reader(gguf.GGUFReader):
    """The package's reader, which takes bytes beyond the end of a file for an empty array and would go on for ever."""

    def _get(self, offset: int, dtype: Any, count: Any = 1, override_order: Any = None) -> np.ndarray:
        found = super()._get(offset, dtype, count, override_order)
        if len(found) < count:
            raise ValueError(f"ends at byte {len(self.data)}, but {int(count)} values follow byte {offset}")
        return found

    def value(self, key: str) -> Any:
        """A number or the bytes of a text, a list of them for an array, None where there is no such key."""
        field = self.fields.get(key)
        if field is None:
            return None
        text = field.types[-1] is gguf.GGUFValueType.STRING
        values = [bytes(field.parts[i]) if text else field.parts[i].tolist()[0] for i in field.data]
        return values if field.types[0] is gguf.GGUFValueType.ARRAY else values[0]


def read(path: str, folder: Path | None) -> Built:
    """Raises BadInput when the file is cut, has the other byte order or has no token embeddings."""
    try:
        reader = Reader(path)
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        raise BadInput(f"not a complete GGUF file ({str(error)[:90]}). Copy it again.") from error
    if reader.byte_order != "I":
        raise BadInput("a GGUF file of the other byte order. Take a little-endian one.")
    parts = {NAMES[tensor.name]: tensor for tensor in reader.tensors if tensor.name in NAMES}
    if "embed_tokens.weight" not in parts:
        raise BadInput("this GGUF file has no token_embd.weight, so it is no target. Take the model's own GGUF file.")
    vocab, hidden = _dims(parts)
    texts = _texts(reader)
    entries = [_dequantised(key, part) for key, part in parts.items()]
    entries += [entry(key, value) for key, value in (vocabulary.tensors(texts, vocab) if texts else {}).items()]
    sha256 = write(folder, entries)
    return Built(_record(reader, vocab, hidden, sha256, parts, bool(texts)), _inferred(parts), (), (sha256,))


def _shape(part: gguf.ReaderTensor) -> tuple[int, ...]:
    """Row-major: the file lists the innermost dimension first."""
    return tuple(reversed(part.shape.tolist()))


def _dims(parts: Parts) -> tuple[int, int]:
    shape = _shape(parts["embed_tokens.weight"])
    if len(shape) != 2 or 0 in shape:
        raise BadInput(f"token_embd.weight has shape {list(shape)}; expected [vocabulary, hidden].")
    for key, part in parts.items():
        want = shape[1:] if key == "norm.weight" else shape
        if _shape(part) != want:
            raise BadInput(f"{part.name} has shape {list(_shape(part))}, but the embedding asks for {list(want)}.")
    return shape[0], shape[1]


def _record(reader: Reader, vocab: int, hidden: int, sha256: str, parts: Parts, text: bool) -> Target:
    architecture = _text(reader.value("general.architecture"))
    layers = reader.value(f"{architecture}.block_count")
    eps = reader.value(f"{architecture}.attention.layer_norm_rms_epsilon")
    return Target(
        vocab=vocab,
        hidden=hidden,
        tensors=sha256,
        name=_text(reader.value("general.name")),
        layers=layers if type(layers) is int and layers > 0 else None,
        tied="lm_head.weight" not in parts,  # GGUF leaves `output` out exactly when it is the embedding
        has_head="lm_head.weight" in parts,
        has_norm="norm.weight" in parts,
        has_text=text,
        rms_eps=eps if type(eps) is float and 0 < eps < 1 else None,
    )


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace")[:200] if isinstance(value, bytes) and value else None


def _inferred(parts: Parts) -> tuple[Inferred, ...]:
    kinds = ", ".join(f"{part.name} {part.tensor_type.name}" for part in parts.values())
    notes = [Inferred("dtype", "float32", f"dequantised from {kinds}")]
    if "lm_head.weight" not in parts:
        notes.append(Inferred("tied", "true", "the file has no output.weight; GGUF leaves it out when it is the embedding"))
    return tuple(notes)


def _texts(reader: Reader) -> dict[int, bytes]:
    pieces, kinds = reader.value("tokenizer.ggml.tokens"), reader.value("tokenizer.ggml.token_type")
    if not isinstance(pieces, list) or not all(isinstance(piece, bytes) for piece in pieces):
        return {}
    model = _text(reader.value("tokenizer.ggml.model")) or ""
    return vocabulary.from_gguf(pieces, model, kinds if isinstance(kinds, list) else [])


def _dequantised(key: str, part: gguf.ReaderTensor) -> Entry:
    shape, data = _shape(part), np.atleast_2d(part.data)  # [rows, bytes or numbers of a row]
    step = max(1, CHUNK // (4 * shape[-1]))

    def chunks() -> Iterator[torch.Tensor]:
        for a in range(0, len(data), step):
            values = gguf.quants.dequantize(np.array(data[a : a + step]), part.tensor_type)
            rows = torch.from_numpy(np.array(values, dtype=np.float32))  # [n, Ht]
            if not bool(torch.isfinite(rows).all()):
                raise BadInput(f"{part.name}: NaN or infinite values from row {a} on. The file is damaged.")
            yield rows

    return Entry(key, torch.float32, shape, chunks())
