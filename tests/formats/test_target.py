"""Targets: GGUF and checkpoints, their parts value for value, and the text of their tokens."""

import base64
import json
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from eagle3dash import formats
from eagle3dash.errors import BadInput

DEMO = Path(__file__).parents[2] / "data" / "demo"
GGUF = DEMO / "target" / "smollm2-135m-instruct-embeddings.gguf"
torch.set_num_threads(1)


def read(paths, out):
    (item,) = formats.read(paths, out)
    assert item.kind == "target"
    return item.record, load_file(out / f"{item.record.tensors}.safetensors"), item


def text(stored: dict[str, torch.Tensor], token: int) -> bytes:
    a, b = stored["vocab_offsets"][token : token + 2].tolist()
    return stored["vocab_bytes"][a:b].numpy().tobytes()


def test_demo_target(tmp_path):
    record, stored, _ = read([GGUF], tmp_path)
    assert (record.vocab, record.hidden, record.layers, record.tied, record.has_norm) == (49152, 576, 30, True, True)
    assert record.rms_eps == pytest.approx(1e-5)
    reader = gguf.GGUFReader(GGUF)
    parts = {tensor.name: tensor for tensor in reader.tensors}
    embedding = parts["token_embd.weight"]
    assert np.array_equal(
        stored["embed_tokens.weight"].numpy(), gguf.quants.dequantize(embedding.data, embedding.tensor_type)
    )
    assert np.array_equal(stored["norm.weight"].numpy(), parts["output_norm.weight"].data)
    pieces = reader.get_field("tokenizer.ggml.tokens").contents()
    for i in (1, 2, 300, 5000, 49151):
        assert text(stored, i).decode(errors="replace") == pieces[i].replace("Ġ", " ").replace("Ċ", "\n")
    assert text(stored, pieces.index("Ġthe")) == b" the"


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0"])
def test_gguf_types(tmp_path, kind):
    path, type_ = tmp_path / "model.gguf", gguf.GGMLQuantizationType[kind]
    values = np.random.default_rng(0).standard_normal((40, 64)).astype(np.float32)
    plain = {"F32": np.float32, "F16": np.float16}
    data = values.astype(plain[kind]) if kind in plain else gguf.quants.quantize(values, type_)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(7)
    writer.add_tensor("token_embd.weight", data, raw_dtype=None if kind in plain else type_)
    writer.add_tensor("output.weight", values[::-1].copy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    record, stored, _ = read([path], tmp_path / "out")
    assert (record.vocab, record.hidden, record.layers, record.tied, record.has_head) == (40, 64, 7, False, True)
    assert np.array_equal(stored["embed_tokens.weight"].numpy(), gguf.quants.dequantize(data, type_))
    assert np.array_equal(stored["lm_head.weight"].numpy(), values[::-1])
    sound = path.read_bytes()
    for size in (3, 30, len(sound) // 3, len(sound) - 64):
        path.write_bytes(sound[:size])
        with pytest.raises(BadInput, match=r"model\.gguf"):
            formats.read([path], tmp_path / "out")


def checkpoint(folder: Path, **changes) -> dict[str, torch.Tensor]:
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        "language_model.model.embed_tokens.weight": torch.randn(30, 8).to(torch.bfloat16),
        "language_model.lm_head.weight": torch.randn(30, 8).to(torch.bfloat16),
        "language_model.model.norm.weight": torch.ones(8),
        "language_model.model.layers.0.mlp.up_proj.weight": torch.randn(16, 8),
        "vision_tower.norm.weight": torch.ones(8),
    } | changes
    tensors = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    save_file(tensors, folder / "model.safetensors")
    config = {
        "model_type": "kimi_k25",
        "text_config": {"model_type": "gemma3_text", "num_hidden_layers": 5, "rms_norm_eps": 1e-5},
    }
    (folder / "config.json").write_text(json.dumps(config))
    return tensors


def test_checkpoint_of_a_multimodal_model(tmp_path):
    tensors = checkpoint(tmp_path / "model")
    record, stored, item = read([tmp_path / "model"], tmp_path / "out")
    assert (record.vocab, record.hidden, record.layers, record.has_head, record.tied) == (30, 8, 5, True, False)
    assert record.norm_plus_one and record.rms_eps == 1e-5
    assert torch.equal(stored["embed_tokens.weight"], tensors["language_model.model.embed_tokens.weight"])
    assert torch.equal(stored["lm_head.weight"], tensors["language_model.lm_head.weight"])
    assert set(stored) == {"embed_tokens.weight", "lm_head.weight", "norm.weight"}
    assert len(item.sources) == 2


def test_shards_that_are_not_needed_may_be_absent(tmp_path):
    folder = tmp_path / "model"
    tensors = checkpoint(folder)
    (folder / "model.safetensors").rename(folder / "model-00001-of-00062.safetensors")
    names = dict.fromkeys(tensors, "model-00001-of-00062.safetensors") | {
        "model.layers.1.x": "model-00002-of-00062.safetensors"
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    assert read([folder], tmp_path / "out")[0].vocab == 30


def test_parts_that_contradict(tmp_path):
    checkpoint(tmp_path / "model", **{"language_model.lm_head.weight": torch.randn(31, 8)})
    with pytest.raises(BadInput, match=r"lm_head.weight has shape \[31, 8\]"):
        formats.read([tmp_path / "model"], tmp_path / "out")
    checkpoint(tmp_path / "model", **{"language_model.lm_head.weight": None})
    (item,) = formats.read([tmp_path / "model"], tmp_path / "out")
    assert not item.record.has_head and not item.record.tied and "No lm_head" in item.problems[0]


TOKENIZERS = {
    "byte level": {
        "model": {"vocab": {"a": 0, "Ġthe": 1, "Ċ": 2, "Ã": 3}}, "decoder": {"type": "ByteLevel"},
        "added_tokens": [{"id": 4, "content": "<|end|>"}],
    },
    "pieces": {
        "model": {"vocab": {"a": 0, "▁the": 1, "<0x0A>": 2, "<0xC3>": 3}}, "decoder": {"type": "Sequence"},
        "added_tokens": [{"id": 4, "content": "<|end|>"}],
    },
    "unigram": {
        "model": {"vocab": [["a", 0.0], ["▁the", -1.0], ["<0x0A>", -2.0], ["<0xC3>", -3.0]]},
        "added_tokens": [{"id": 4, "content": "<|end|>"}],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", TOKENIZERS)
def test_text_of_tokens(tmp_path, name):
    checkpoint(tmp_path / "model")
    (tmp_path / "model" / "tokenizer.json").write_text(json.dumps(TOKENIZERS[name]))
    record, stored, _ = read([tmp_path / "model"], tmp_path / "out")
    assert record.has_text
    assert [text(stored, i) for i in range(6)] == [b"a", b" the", b"\n", b"\xc3", b"<|end|>", b""]
    assert len(stored["vocab_offsets"]) == 31


def test_text_of_tokens_from_tiktoken(tmp_path):
    checkpoint(tmp_path / "model")
    lines = [f"{base64.b64encode(piece).decode()} {i}" for i, piece in enumerate([b"a", b" the", b"\xff\n"])]
    (tmp_path / "model" / "tiktoken.model").write_text("\n".join(lines))
    _, stored, _ = read([tmp_path / "model"], tmp_path / "out")
    assert [text(stored, i) for i in range(4)] == [b"a", b" the", b"\xff\n", b""]
    (tmp_path / "model" / "tiktoken.model").write_text("not base64 at all")
    with pytest.raises(BadInput, match="tiktoken"):
        formats.read([tmp_path / "model"], tmp_path / "out")
