"""The canonical writer: readable by safetensors, same tensors same bytes, whole or not at all."""

import hashlib

import pytest
import torch
from safetensors.torch import load_file

from eagle3dash.formats.tensors import NAMES, Entry, entry, write

torch.set_num_threads(1)
TENSORS = {f"t.{i}": torch.arange(6).reshape(2, 3).to(dtype) for i, dtype in enumerate(NAMES)} | {
    "scalar": torch.tensor(3.0),
    "empty": torch.empty(0, 4),
}


def test_safetensors_reads_what_was_written(tmp_path):
    sha256 = write(tmp_path, [entry(name, tensor) for name, tensor in TENSORS.items()])
    path = tmp_path / f"{sha256}.safetensors"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    stored = load_file(path)
    assert set(stored) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert stored[name].dtype is tensor.dtype and stored[name].shape == tensor.shape
        assert stored[name].view(torch.uint8).tolist() == tensor.view(torch.uint8).tolist() if tensor.dim() else True
    assert float(stored["scalar"]) == 3.0


def test_same_tensors_same_bytes_whatever_order_and_chunks(tmp_path):
    forward = write(tmp_path, [entry(name, tensor) for name, tensor in TENSORS.items()])
    backward = write(None, [entry(name, tensor) for name, tensor in reversed(TENSORS.items())])
    pieces = write(
        None,
        [
            Entry(name, tensor.dtype, tuple(tensor.shape), tensor.split(1) if tensor.dim() else (tensor,))
            for name, tensor in TENSORS.items()
        ],
    )
    assert forward == backward == pieces
    assert [path.stem for path in tmp_path.iterdir()] == [forward]


def test_views_are_written_as_they_look(tmp_path):
    base = torch.arange(24.0).reshape(4, 6)
    sha256 = write(tmp_path, [entry("a", base.T), entry("b", base[1:3, 2:4])])
    stored = load_file(tmp_path / f"{sha256}.safetensors")
    assert torch.equal(stored["a"], base.T) and torch.equal(stored["b"], base[1:3, 2:4])


def test_a_failed_write_leaves_nothing(tmp_path):
    def chunks():
        yield torch.ones(1, 3)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write(tmp_path, [Entry("a", torch.float32, (2, 3), chunks())])
    with pytest.raises(ValueError, match="needs 24"):
        write(tmp_path, [Entry("a", torch.float32, (2, 3), (torch.ones(1, 3),))])
    assert not list(tmp_path.iterdir())
