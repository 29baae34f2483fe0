"""Parts of a target: embeddings, head and final norm, from safetensors (or torch) weights or from GGUF.

Runs only in the parsing child. Of a full model only these tensors are read, whatever its layers are. Names: transformers
(`model.embed_tokens`, `language_model.model.embed_tokens`, `lm_head`, `model.norm`), GPT-2 style (`transformer.wte`), GGUF
(`token_embd`, `output`, `output_norm`; llama.cpp `gguf-py/gguf/constants.py`). GGUF blocks are dequantised to float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from eagle3dash.errors import BadInput
from eagle3dash.formats import vocabulary
from eagle3dash.formats.containers import Leaf
from eagle3dash.formats.job import Built
from eagle3dash.formats.tensors import Entry, entry, write
from eagle3dash.records import Inferred, Target

EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "tok_embeddings.weight", "embedding.word_embeddings.weight")
HEADS = ("lm_head.weight", "output.weight", "embed_out.weight")
NORMS = ("model.norm.weight", "norm.weight", "transformer.ln_f.weight", "final_layernorm.weight")
PLUS_ONE = ("gemma", "gemma2", "gemma3", "qwen3_next")  # RMSNorm multiplies by 1 + weight


def embedding_name(leaves: Mapping[str, Any]) -> str | None:
    """The name of the embedding among the tensors of a checkpoint, or None: then it is no target."""
    return _named(leaves, EMBEDDINGS, 2)


def _named(leaves: Mapping[str, Any], endings: tuple[str, ...], dims: int) -> str | None:
    """The shortest name with one of these endings, so that a vision tower's norm loses against the model's own."""
    fits = [
        n for n, leaf in leaves.items() if len(leaf.shape) == dims and any(n == e or n.endswith("." + e) for e in endings)
    ]
    fits = [n for n in fits if ".layers." not in n and "vision" not in n and "visual" not in n]
    return min(fits, key=lambda name: (len(name), name)) if fits else None


def from_weights(
    leaves: dict[str, Leaf], config: dict[str, Any] | None, texts: dict[int, bytes], folder: Path | None
) -> Built:
    """A Target from a checkpoint's tensors. Raises BadInput when shapes contradict."""
    names = {
        "embed_tokens.weight": embedding_name(leaves),
        "lm_head.weight": _named(leaves, HEADS, 2),
        "norm.weight": _named(leaves, NORMS, 1),
    }
    parts = {key: leaves[name] for key, name in names.items() if name is not None}
    vocab, hidden = parts["embed_tokens.weight"].shape
    _check(parts, vocab, hidden)
    text = _text_config(config)
    tied = (
        "lm_head.weight" not in parts and text.get("tie_word_embeddings", (config or {}).get("tie_word_embeddings")) is True
    )
    problems = ()
    if "lm_head.weight" not in parts and not tied:
        problems = ("No lm_head among these files, and the config does not tie it to the embeddings.",)
    entries = [_copy(key, leaf) for key, leaf in parts.items()]
    entries += [entry(key, value) for key, value in (vocabulary.tensors(texts, vocab) if texts else {}).items()]
    sha256 = write(folder, entries)
    record = Target(
        vocab, hidden, sha256, _string(config, "_name_or_path"), _integer(text, "num_hidden_layers"), tied,
        "lm_head.weight" in parts, "norm.weight" in parts, bool(texts),
        str(text.get("model_type", "")).removesuffix("_text") in PLUS_ONE, _number(text, "rms_norm_eps"),
    )  # fmt: skip
    inferred = tuple(Inferred(key, name, "by its name and shape") for key, name in names.items() if name is not None)
    return Built(record, inferred, problems, (sha256,), frozenset(leaf.path for leaf in parts.values()))


def _check(parts: dict[str, Leaf], vocab: int, hidden: int) -> None:
    if not vocab or not hidden:
        raise BadInput(f"the embedding has shape {[vocab, hidden]}: it is empty. Take the model's own checkpoint.")
    for key, leaf in parts.items():
        want = (hidden,) if key == "norm.weight" else (vocab, hidden)
        if leaf.shape != want:
            raise BadInput(
                f"{key} has shape {list(leaf.shape)}, but the embedding {[vocab, hidden]} asks for {list(want)}."
            )
        if not leaf.dtype.is_floating_point or leaf.dtype.itemsize == 1:
            raise BadInput(
                f"{key} is stored as {leaf.dtype}; a quantised {key} cannot be used. Take the bfloat16 checkpoint."
            )


def _copy(key: str, leaf: Leaf) -> Entry:
    step, rows = leaf.step(), leaf.shape[0]
    chunks: Iterator[torch.Tensor] = (leaf.rows(a, min(a + step, rows)) for a in range(0, rows, step))
    return Entry(key, leaf.dtype, leaf.shape, chunks)


def _text_config(config: dict[str, Any] | None) -> dict[str, Any]:
    inner = (config or {}).get("text_config")
    return inner if isinstance(inner, dict) else config or {}


def _string(config: dict[str, Any] | None, key: str) -> str | None:
    value = (config or {}).get(key)
    return value[:200] if isinstance(value, str) and value else None


def _integer(config: dict[str, Any], key: str) -> int | None:
    value = config.get(key)
    return value if type(value) is int and 0 < value < 100_000 else None


def _number(config: dict[str, Any], key: str) -> float | None:
    value = config.get(key)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1 else None
