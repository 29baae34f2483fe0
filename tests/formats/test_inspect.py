"""`formats.inspect`: one document for each thing, never an exception, nothing written."""

import json
import os
from pathlib import Path

import pytest
import torch

from eagle3dash import formats

DEMO = Path(__file__).parents[2] / "data" / "demo"
torch.set_num_threads(1)


def one(*paths) -> dict:
    documents = formats.inspect([Path(path) for path in paths])
    json.dumps(documents, allow_nan=False)
    assert len(documents) == 1, [document["kind"] for document in documents]
    return documents[0]


def test_drafter():
    document = one(DEMO / "drafter")
    assert (document["kind"], document["flavour"], document["layer_ids"], document["states"]) == (
        "drafter", "speculators", [2, 15, 27], [2, 15, 27],
    )  # fmt: skip
    assert {"path", "value", "use", "note"} == set(document["fields"][0])
    assert {tensor["name"] for tensor in document["tensors"]} >= {"fc.weight", "norm.weight", "d2t"}
    assert {"vLLM", "SGLang"} <= set(document["engines"])


def test_captures():
    document = one(DEMO / "training")
    expected = {
        "kind": "capture", "format": "speculators v1 data_N.pt", "sequences": 8, "states": [0, 2, 15, 27], "width": 576,
        "dtype": "bfloat16", "last": "pre-norm", "role": "training", "problems": [],
    }  # fmt: skip
    assert {key: document[key] for key in expected} == expected
    shapes = [len(torch.load(path, weights_only=True)["input_ids"]) for path in (DEMO / "training").glob("*.pt")]
    assert document["tokens"] == sum(shapes)
    assert one(DEMO / "story-fixed" / "serving")["states"] == ["s0", "s1", "s2"]


def test_logs_and_metrics():
    documents = formats.inspect([DEMO / "story-as-served" / "server"])
    assert sorted(document["kind"] for document in documents) == ["log", "log", "metrics"]
    metrics = next(document for document in documents if document["kind"] == "metrics")
    assert metrics["engine"] == "vllm" and metrics["steps"] == 4
    assert metrics["windows"][-1]["accept_length"] == pytest.approx(1 + 445 / 6811, abs=1e-9)
    log = next(document for document in documents if document["names"] == ["server/server.log"])
    wanted = "line time rank accept_length acceptance_rate accepted drafted survival running throughput"
    assert set(wanted.split()) <= set(log["windows"][0])


def test_target():
    document = one(DEMO / "target")
    assert (document["kind"], document["format"], document["vocab"], document["hidden"]) == ("target", "gguf", 49152, 576)
    assert document["layers"] == 30 and document["tied"] and document["has_text"]


def test_a_bad_file_among_good_ones(tmp_path):
    for name in ("data_0.pt", "data_1.pt"):
        (tmp_path / name).write_bytes((DEMO / "training" / name).read_bytes())
    (tmp_path / "data_2.pt").write_bytes((DEMO / "training" / "data_2.pt").read_bytes()[:5000])
    (tmp_path / "notes.dat").write_text("?")
    documents = formats.inspect([tmp_path])
    assert [document["kind"] for document in documents] == ["capture", "unknown", "unknown"]
    assert documents[0]["sequences"] == 2
    assert all(document["problems"] for document in documents[1:])


@pytest.mark.parametrize(
    "name, data", [("a.txt", b"hello"), ("empty", b""), ("x.pt", b"PK\x03\x04"), ("README.md", b"# x")]
)
def test_unknown(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    document = one(tmp_path / name)
    assert document["kind"] == "unknown" and document["problems"][0].startswith(name)


def test_nothing_there(tmp_path):
    assert one(tmp_path / "absent")["kind"] == "unknown"
    (tmp_path / "empty").mkdir()
    assert one(tmp_path / "empty")["kind"] == "unknown"
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in one(tmp_path / "pipe")["problems"][0]


def test_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    one(DEMO / "training")
    assert not list(tmp_path.iterdir())
