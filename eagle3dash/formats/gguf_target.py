"""A Target from a GGUF file: token_embd, output, output_norm and the tokenizer's pieces.

Runs only in the parsing child. Names: llama.cpp `gguf-py/gguf/constants.py`. Its converter has already added the one of
Gemma's norm weights, so `norm_plus_one` stays false.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from eagle3dash.errors import BadInput
from eagle3dash.formats import gguf_file, vocabulary
from eagle3dash.formats.gguf_file import Stored
from eagle3dash.formats.job import Built
from eagle3dash.formats.tensors import Entry, entry, write
from eagle3dash.records import Inferred, Target

NAMES = {"token_embd.weight": "embed_tokens.weight", "output.weight": "lm_head.weight", "output_norm.weight": "norm.weight"}
CHUNK = 8 << 20


def read(path: str, folder: Path | None) -> Built:
    """Raises BadInput when the file has no token embeddings."""
    metadata, tensors = gguf_file.read(path)
    parts = {new: tensors[old] for old, new in NAMES.items() if old in tensors}
    if "embed_tokens.weight" not in parts:
        raise BadInput("this GGUF file has no token_embd.weight, so it is no target. Take the model's own GGUF file.")
    vocab, hidden = _dims(parts)
    texts = _texts(metadata)
    entries = [_dequantised(key, part) for key, part in parts.items()]
    entries += [entry(key, value) for key, value in (vocabulary.tensors(texts, vocab) if texts else {}).items()]
    sha256 = write(folder, entries)
    return Built(_record(metadata, vocab, hidden, sha256, parts, bool(texts)), _inferred(parts), (), (sha256,))


def _dims(parts: dict[str, Stored]) -> tuple[int, int]:
    shape = parts["embed_tokens.weight"].shape
    if len(shape) != 2:
        raise BadInput(f"token_embd.weight has shape {list(shape)}; expected [vocabulary, hidden].")
    for key, part in parts.items():
        want = shape[1:] if key == "norm.weight" else shape
        if part.shape != want:
            raise BadInput(f"{part.name} has shape {list(part.shape)}, but the embedding asks for {list(want)}.")
    return shape[0], shape[1]


def _record(metadata: dict[str, Any], vocab: int, hidden: int, sha256: str, parts: dict[str, Stored], text: bool) -> Target:
    architecture = _text(metadata.get("general.architecture"))
    layers = metadata.get(f"{architecture}.block_count")
    eps = metadata.get(f"{architecture}.attention.layer_norm_rms_epsilon")
    return Target(
        vocab=vocab,
        hidden=hidden,
        tensors=sha256,
        name=_text(metadata.get("general.name")),
        layers=layers if type(layers) is int and layers > 0 else None,
        tied="lm_head.weight" not in parts,  # GGUF leaves `output` out exactly when it is the embedding
        has_head="lm_head.weight" in parts,
        has_norm="norm.weight" in parts,
        has_text=text,
        rms_eps=eps if type(eps) is float and 0 < eps < 1 else None,
    )


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace")[:200] if isinstance(value, bytes) and value else None


def _inferred(parts: dict[str, Stored]) -> tuple[Inferred, ...]:
    kinds = ", ".join(f"{part.name} {part.kind.name}" for part in parts.values())
    notes = [Inferred("dtype", "float32", f"dequantised from {kinds}")]
    if "lm_head.weight" not in parts:
        notes.append(Inferred("tied", "true", "the file has no output.weight; GGUF leaves it out when it is the embedding"))
    return tuple(notes)


def _texts(metadata: dict[str, Any]) -> dict[int, bytes]:
    pieces, kinds = metadata.get("tokenizer.ggml.tokens"), metadata.get("tokenizer.ggml.token_type")
    if not isinstance(pieces, list) or not all(isinstance(piece, bytes) for piece in pieces):
        return {}
    model = _text(metadata.get("tokenizer.ggml.model")) or ""
    return vocabulary.from_gguf(pieces, model, kinds if isinstance(kinds, list) else [])


def _dequantised(key: str, part: Stored) -> Entry:
    count = part.shape[0] if len(part.shape) == 2 else 1
    step = max(1, CHUNK // (4 * part.shape[-1]))

    def chunks() -> Iterator[torch.Tensor]:
        for a in range(0, count, step):
            rows = torch.from_numpy(part.rows(a, min(a + step, count)))  # [n, Ht]
            if not bool(torch.isfinite(rows).all()):
                raise BadInput(f"{part.name}: NaN or infinite values from row {a} on. The file is damaged.")
            yield rows

    return Entry(key, torch.float32, part.shape, chunks())
