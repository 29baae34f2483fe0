"""A Target from a GGUF file: token_embd, output, output_norm and the tokenizer's pieces.

Runs only in the parsing child. Facts: ggml `docs/gguf.md`; reading and dequantising through the `gguf` package (llama.cpp
`gguf-py`). Quantised blocks become float32, row chunk by row chunk.
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


def read(path: str, folder: Path | None) -> Built:
    """Raises BadInput when the file has no token embeddings."""
    try:
        reader = gguf.GGUFReader(path)
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, UnicodeDecodeError) as error:
        raise BadInput(f"not a complete GGUF file ({str(error)[:80]}). Copy it again.") from error
    parts = {NAMES[tensor.name]: tensor for tensor in reader.tensors if tensor.name in NAMES}
    if "embed_tokens.weight" not in parts:
        raise BadInput(
            "this GGUF file has no token_embd.weight, so it cannot serve as target. Take the model's own GGUF file."
        )
    hidden, vocab = (int(n) for n in parts["embed_tokens.weight"].shape)  # GGUF lists the innermost dimension first
    for key, part in parts.items():
        want = [hidden] if key == "norm.weight" else [hidden, vocab]
        if [int(n) for n in part.shape] != want:
            raise BadInput(f"{part.name} has shape {[int(n) for n in part.shape]}, but the embedding asks for {want}.")
    texts = _texts(reader)
    entries = [_dequantised(key, part) for key, part in parts.items()]
    entries += [entry(key, value) for key, value in (vocabulary.tensors(texts, vocab) if texts else {}).items()]
    sha256 = write(folder, entries)
    return Built(_record(reader, vocab, hidden, sha256, parts, bool(texts)), _inferred(parts), (), (sha256,))


def _record(reader: Any, vocab: int, hidden: int, sha256: str, parts: dict[str, Any], has_text: bool) -> Target:
    architecture = _value(reader, "general.architecture")
    layers = _value(reader, f"{architecture}.block_count")
    eps = _value(reader, f"{architecture}.attention.layer_norm_rms_epsilon")
    name = _value(reader, "general.name")
    return Target(
        vocab, hidden, sha256, str(name)[:200] if name else None, int(layers) if layers else None,
        tied="lm_head.weight" not in parts,  # GGUF leaves `output` out exactly when it is the embedding
        has_head="lm_head.weight" in parts, has_norm="norm.weight" in parts, has_text=has_text,
        rms_eps=float(eps) if eps else None,
    )  # fmt: skip


def _inferred(parts: dict[str, Any]) -> tuple[Inferred, ...]:
    kinds = ", ".join(f"{part.name} {part.tensor_type.name}" for part in parts.values())
    notes = [Inferred("dtype", "float32", f"dequantised from {kinds}")]
    if "lm_head.weight" not in parts:
        notes.append(Inferred("tied", "true", "the file has no output.weight; GGUF leaves it out when it is the embedding"))
    return tuple(notes)


def _value(reader: Any, key: str) -> Any:
    field = reader.get_field(key)
    return field.contents() if field is not None else None


def _texts(reader: Any) -> dict[int, bytes]:
    field = reader.get_field("tokenizer.ggml.tokens")
    if field is None:
        return {}
    kinds = _value(reader, "tokenizer.ggml.token_type") or []
    pieces = (bytes(field.parts[i]) for i in field.data)
    return vocabulary.from_gguf(pieces, str(_value(reader, "tokenizer.ggml.model")), [int(kind) for kind in kinds])


def _dequantised(key: str, part: Any) -> Entry:
    shape = tuple(int(n) for n in reversed(part.shape))  # [V, Ht] or [Ht]

    def chunks() -> Iterator[torch.Tensor]:
        data = part.data if len(shape) == 2 else part.data[None]
        step = max(1, CHUNK // max(1, shape[-1] * 4))
        for a in range(0, data.shape[0], step):
            block = gguf.quants.dequantize(np.asarray(data[a : a + step]), part.tensor_type)
            rows = torch.from_numpy(np.ascontiguousarray(block, dtype=np.float32))
            if not bool(torch.isfinite(rows).all()):
                raise BadInput(f"{part.name}: NaN or infinite values from row {a} on. The file is damaged.")
            yield rows if len(shape) == 2 else rows[0]

    return Entry(key, torch.float32, shape, chunks())
