"""Hostile files of the kinds beside torch and safetensors (`test_sandbox`): GGUF, tokenizers, Arrow, JSON, numpy."""

import gzip
import io
import json
import resource
import struct
import time
from pathlib import Path

import numpy as np
import pyarrow
import pytest
import torch
from safetensors.torch import save_file

from eagle3dash import formats
from eagle3dash.errors import BadInput

torch.set_num_threads(1)


def gguf_text(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def gguf_file(tensors: bytes = b"", entries: bytes = b"", counts: tuple[int, int] = (0, 0), version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, *counts) + entries + tensors


def entry(key: bytes, kind: int, value: bytes) -> bytes:
    return gguf_text(key) + struct.pack("<I", kind) + value


def tensor(name: bytes, shape: tuple[int, ...], kind: int = 0, offset: int = 0, dims: int | None = None) -> bytes:
    head = struct.pack("<I", len(shape) if dims is None else dims) + struct.pack(f"<{len(shape)}Q", *shape)
    return gguf_text(name) + head + struct.pack("<IQ", kind, offset)


EMBEDDING = b"token_embd.weight"
ARRAY, STRING = 9, 8
GGUF_FILES = {
    "mark only": b"GGUF",
    "version 99": gguf_file(version=99),
    "big-endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "tensors that are not there": gguf_file(counts=(2**60, 0)),
    "entries that are not there": gguf_file(counts=(0, 2**60)),
    "a long text": gguf_file(entries=struct.pack("<Q", 2**60), counts=(0, 1)),
    "a long list": gguf_file(entries=entry(b"k", ARRAY, struct.pack("<IQ", 4, 2**40)), counts=(0, 1)),
    "a long list of texts": gguf_file(entries=entry(b"k", ARRAY, struct.pack("<IQ", STRING, 2**40)), counts=(0, 1)),
    "lists in lists": gguf_file(entries=entry(b"k", ARRAY, struct.pack("<IQ", ARRAY, 1) * 5000), counts=(0, 1)),
    "unknown value": gguf_file(entries=entry(b"k", 77, bytes(8)), counts=(0, 1)),
    "key twice": gguf_file(entries=entry(b"k", 4, bytes(4)) * 2, counts=(0, 2)),
    "key of bytes": gguf_file(entries=entry(b"\xff\xfe", 4, bytes(4)), counts=(0, 1)),
    "alignment zero": gguf_file(entries=entry(b"general.alignment", 4, bytes(4)), counts=(0, 1)),
    "a huge tensor": gguf_file(tensor(EMBEDDING, (2**31, 2**31)), counts=(1, 0)),
    "overflowing": gguf_file(tensor(EMBEDDING, (2**33, 2**33)), counts=(1, 0)),
    "many dimensions": gguf_file(tensor(EMBEDDING, (4,), dims=2**31), counts=(1, 0)),
    "far away": gguf_file(tensor(EMBEDDING, (4, 4), offset=2**62), counts=(1, 0)),
    "unknown type": gguf_file(tensor(EMBEDDING, (4, 4), kind=999), counts=(1, 0)),
    "odd blocks": gguf_file(tensor(EMBEDDING, (33, 4), kind=8) + bytes(4096), counts=(1, 0)),
    "no rows": gguf_file(tensor(EMBEDDING, (4, 0)) + bytes(64), counts=(1, 0)),
    "no columns": gguf_file(tensor(EMBEDDING, (0, 4)) + bytes(64), counts=(1, 0)),
    "one dimension": gguf_file(tensor(EMBEDDING, (16,)) + bytes(512), counts=(1, 0)),
    "not finite": gguf_file(tensor(EMBEDDING, (8, 8)) + b"\xff" * 1024, counts=(1, 0)),
    "whole numbers": gguf_file(tensor(EMBEDDING, (8, 8), kind=26) + bytes(1024), counts=(1, 0)),
    "other tensors": gguf_file(tensor(b"blk.0.attn_q.weight", (8, 8)) + bytes(1024), counts=(1, 0)),
}


def refused(paths: list[Path], out: Path) -> str:
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.raises(BadInput) as caught:
        formats.read(paths, out)
    assert time.monotonic() - started < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KB
    text = str(caught.value)
    assert len(text) <= 300 and text.isprintable() and text.rstrip().endswith(".")
    assert not out.exists() or not list(out.iterdir())
    return text


@pytest.mark.parametrize("name", GGUF_FILES)
def test_gguf(tmp_path, name):
    path = tmp_path / "model.gguf"
    path.write_bytes(GGUF_FILES[name])
    assert refused([path], tmp_path / "out").startswith("model.gguf: ")


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


OTHERS = {
    "states.npy": npy(np.ones((4, 4))),
    "objects.npy": b"\x93NUMPY\x01\x00\x46\x00{'descr': '|O', 'shape': (1,)}".ljust(80) + b"cposix\nsystem\n.",
    "notes.txt": b"all is well\n" * 1000,
    "page.html": b"<script>alert(1)</script>",
    "nul.dat": bytes(100_000),
    "config.json": b'{"architectures": ["LlamaForCausalLMEagle3"], "auto_map": {"AutoModel": "evil.Evil"}}',
    "deep.json": b"[" * 200_000 + b"]" * 200_000,
    "deep_config.json": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "number.json": b'{"hidden_size": 1' + b"0" * 100_000 + b"}",
    "replies.json": b'{"meta_info": {"hidden_states": [[[1e999, NaN]]]}, "input_ids": [1]}',
    "ragged.json": b'{"meta_info": {"hidden_states": [[[1, 2], [1]]]}, "input_ids": [1, 2]}',
    "words.json": b'{"meta_info": {"hidden_states": [[["a", "b"]]]}, "input_ids": [1]}',
    "cut.json": b'{"meta_info": {"hidden_states": [[[1, 2]',
    "huge_ids.json": b'{"meta_info": {"hidden_states": [[[1, 2, 3]]]}, "input_ids": [99999999999999999999999]}',
    "nested.gz": gzip.compress(gzip.compress(b"x" * 1000)),
    "link.gz": b"\x1f\x8b" + bytes(40),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_files(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(OTHERS[name])
    assert refused([path], tmp_path / "out").startswith(name)


TOKENIZERS = {
    "not json": b"{'model': 1}",
    "deep": b'{"model": {"vocab": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "ids of text": b'{"model": {"vocab": {"a": "b"}}}',
    "a number": b'{"model": {"vocab": 7}}',
    "added without id": b'{"model": {"vocab": {"a": 0}}, "added_tokens": [{"content": "x"}]}',
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers(tmp_path, name):
    folder = tmp_path / "model"
    folder.mkdir()
    save_file({"model.embed_tokens.weight": torch.ones(4, 8)}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes(TOKENIZERS[name])
    assert "tokenizer.json" in refused([folder], tmp_path / "out")


def test_an_empty_embedding(tmp_path):
    save_file({"model.embed_tokens.weight": torch.ones(0, 8)}, tmp_path / "model.safetensors")
    assert "is empty" in refused([tmp_path / "model.safetensors"], tmp_path / "out")


def test_token_ids_far_outside_are_no_text(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    save_file({"model.embed_tokens.weight": torch.ones(4, 8)}, folder / "model.safetensors")
    vocab = {"a": 0, "b": -5, "c": 10**15, "d": 3, "e" * 100_000: 1}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocab}}))
    (item,) = formats.read([folder], tmp_path / "out")
    assert item.record.has_text and item.record.vocab == 4


@pytest.mark.parametrize("kind", ["cut", "text", "negative", "wrong types"])
def test_arrow(tmp_path, kind):
    folder = tmp_path / "set"
    folder.mkdir()
    save_file({"hidden_states": torch.randn(4, 2, 8), "token_ids": torch.arange(4)}, folder / "hs_0.safetensors")
    columns = {"input_ids": [[0, 1, 2, 3]], "loss_mask": [[0, 1, 1, 1]]}
    columns |= {"wrong types": {"input_ids": ["abc"]}, "negative": {"loss_mask": [[-1, None, 1, 1]]}}.get(kind, {})
    table, sink = pyarrow.table(columns), pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data = sink.getvalue().to_pybytes()
    data = {"cut": data[: len(data) - 90], "text": b"\xff\xff\xff\xffhello"}.get(kind, data)
    (folder / "data-00000-of-00001.arrow").write_bytes(data)
    if kind == "negative":
        (item,) = formats.read([folder], tmp_path / "out")
        assert item.record.sequences[0].loss_tokens == 3
    else:
        assert "arrow" in refused([folder], tmp_path / "out")
