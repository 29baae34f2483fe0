"""The text of every token, read from tokenizer files as data. Nothing is executed, nothing is fetched.

Runs only in the parsing child. Reads tokenizer.json (Hugging Face tokenizers: byte-level or sentencepiece-like pieces),
tiktoken files (base64 piece and rank a line: Kimi, Qwen-1) and GGUF metadata (`tokenizer.ggml.*`). Byte-level alphabet:
GPT-2 `encoder.py`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable

import torch

from eagle3dash.errors import BadInput

BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
MAX_TOKENS = 2_000_000
MAX_PIECE = 4096


def tensors(texts: dict[int, bytes], vocab: int) -> dict[str, torch.Tensor]:
    """vocab_bytes u8 and vocab_offsets [V+1] i64; an id without text is empty."""
    pieces = [texts.get(i, b"")[:MAX_PIECE] for i in range(vocab)]
    offsets = torch.zeros(vocab + 1, dtype=torch.int64)
    offsets[1:] = torch.tensor([len(piece) for piece in pieces], dtype=torch.int64).cumsum(0)
    joined = b"".join(pieces)
    data = torch.frombuffer(bytearray(joined), dtype=torch.uint8) if joined else torch.empty(0, dtype=torch.uint8)
    return {"vocab_bytes": data, "vocab_offsets": offsets}


def from_tokenizer_json(text: bytes) -> dict[int, bytes]:
    """Token id -> bytes. Raises BadInput when the file is no tokenizer."""
    try:
        document = json.loads(text)
        vocabulary = document["model"]["vocab"]
        if isinstance(vocabulary, list):  # Unigram: [piece, score]
            vocabulary = {piece[0]: i for i, piece in enumerate(vocabulary)}
        added = {int(item["id"]): str(item["content"]).encode() for item in document.get("added_tokens") or []}
        byte_level = '"ByteLevel"' in json.dumps([document.get("decoder"), document.get("pre_tokenizer")])
        texts = {int(i): _piece(str(piece), byte_level) for piece, i in vocabulary.items()}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise BadInput(f"not a readable tokenizer.json ({type(error).__name__}).") from error
    return texts | added


def from_tiktoken(text: bytes) -> dict[int, bytes]:
    """Token id -> bytes from lines of base64 and rank."""
    try:
        rows = [line.split() for line in text.splitlines()[:MAX_TOKENS] if line.strip()]
        return {int(rank): base64.b64decode(piece, validate=True) for piece, rank in rows}
    except (ValueError, binascii.Error) as error:
        raise BadInput(f"not a readable tiktoken file ({str(error)[:60]}).") from error


def from_gguf(pieces: Iterable[bytes], model: str, kinds: list[int]) -> dict[int, bytes]:
    """Token id -> bytes. `model`: gpt2 is byte-level, others are sentencepiece-like; kind 3 and 4 are control and user
    tokens."""
    texts = {}
    for i, piece in enumerate(pieces):
        literal = i < len(kinds) and kinds[i] in (3, 4)
        texts[i] = piece if literal else _piece(piece.decode("utf-8", "replace"), model == "gpt2")
    return texts


def _piece(piece: str, byte_level: bool) -> bytes:
    if byte_level:
        return b"".join(ALPHABET.get(c) or c.encode("utf-8", "replace") for c in piece)
    single = BYTE_PIECE.fullmatch(piece)
    return bytes([int(single[1], 16)]) if single else piece.replace("▁", " ").encode("utf-8", "replace")


def _alphabet() -> dict[str, bytes]:
    """GPT-2 writes printable bytes as themselves and the others as characters from 256 on."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = [b for b in range(256) if b not in printable]
    return {chr(b): bytes([b]) for b in printable} | {chr(256 + i): bytes([b]) for i, b in enumerate(others)}


ALPHABET = _alphabet()
