"""Hostile and broken files: none runs code, none takes the caller down, each ends in one sentence."""

import gzip
import io
import json
import os
import pickle
import random
import resource
import signal
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import save, save_file

from eagle3dash import formats
from eagle3dash.errors import BadInput
from eagle3dash.formats import sandbox

torch.set_num_threads(1)
DUMP = {"input_ids": torch.arange(6), "hidden_states": [torch.randn(6, 8) for _ in range(4)]}
TORCH = io.BytesIO()
torch.save(DUMP, TORCH)
SOUND = TORCH.getvalue()
STACK = save({"token_ids": torch.arange(6), "hidden_states": torch.randn(6, 3, 8)})


class Evil:
    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


def rezipped(change=None, compression=zipfile.ZIP_STORED, extra=()) -> bytes:
    """The sound file's records written again, changed: name -> (name, bytes) or None to leave it out."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(SOUND)) as old, zipfile.ZipFile(buffer, "w", compression) as new:
        for record in old.infolist():
            changed = (change or (lambda name, data: (name, data)))(record.filename, old.read(record))
            if changed is not None:
                new.writestr(*changed)
        for name, data in extra:
            new.writestr(name, data)
    return buffer.getvalue()


def with_pickle(data: bytes) -> bytes:
    return rezipped(lambda name, old: (name, data if name.endswith("data.pkl") else old))


def saved(content) -> bytes:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 0x40
    return bytes(changed)


def header(table, data: bytes = b"", length: int | None = None) -> bytes:
    text = table if isinstance(table, bytes) else json.dumps(table).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype, shape, start, end) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


def laughs() -> list:
    value: list = [1] * 10
    for _ in range(9):
        value = [value] * 10
    return value


ONE = b'{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
BYTEARRAY = b"\x80\x02cbuiltins\nbytearray\n\x8a\x05\x00\xe4\x0bT\x02\x85R."  # bytearray(10_000_000_000)
TORCH_FILES = {
    "bytearray bomb": with_pickle(BYTEARRAY),
    "bare bytearray bomb": BYTEARRAY,
    "stride 0": saved({"input_ids": torch.arange(6), "hidden_states": torch.zeros(1).expand(50_000, 50_000)}),
    "deflated": rezipped(compression=zipfile.ZIP_DEFLATED),
    "record too large": rezipped(lambda name, data: (name, data + data if name.endswith("data/0") else data)),
    "record cut": rezipped(lambda name, data: (name, data[:7] if name.endswith("data/0") else data)),
    "record missing": rezipped(lambda name, data: None if name.endswith("data/1") else (name, data)),
    "no data.pkl": rezipped(lambda name, data: None if name.endswith("data.pkl") else (name, data)),
    "two data.pkl": rezipped(extra=[("other/data.pkl", b"\x80\x02}.")]),
    "way out": rezipped(extra=[("../../evil", b"x")]),
    "backslash": rezipped(extra=[("..\\evil", b"x")]),
    "absolute": rezipped(extra=[("/etc/evil", b"x")]),
    "torchscript": rezipped(extra=[("archive/constants.pkl", b"\x80\x02}.")]),
    "meta": saved({"input_ids": torch.arange(6), "hidden_states": torch.empty(10**6, 10**6, device="meta")}),
    "sparse": saved({"input_ids": torch.arange(6), "hidden_states": torch.eye(6).to_sparse()}),
    "object": saved({"input_ids": torch.arange(6), "hidden_states": Path("x")}),
    "deep": saved(nested(100)),
    "laughs": saved(laughs()),
    "bit flip in the data": flipped(SOUND, SOUND.index(DUMP["hidden_states"][2].numpy().tobytes()) + 5),
    "cut": SOUND[: len(SOUND) // 2],
    "cut at the end": SOUND[:-10],
    "npz": rezipped(lambda name, data: None, extra=[("arr_0.npy", b"\x93NUMPY")]),
    "raw pickle": pickle.dumps({"input_ids": [1, 2]}),
    "protocol 5": pickle.dumps({"input_ids": [1, 2]}, protocol=5),
    "legacy cut": b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.",
    "stack global": with_pickle(b"\x80\x04\x8c\x05posix\x8c\x06system\x93."),
    "not a zip": b"PK\x03\x04" + bytes(200),
    "text": b"hello\n" * 100,
}
SAFETENSORS_FILES = {
    "huge header": header(b"{}", length=2**60),
    "header over the limit": header(b"{" + b" " * (9 << 20) + b"}"),
    "overlap": header({"a": tensor("F32", [2], 0, 8), "b": tensor("F32", [2], 4, 12)}, bytes(12)),
    "hole": header({"a": tensor("F32", [2], 0, 8), "b": tensor("F32", [2], 12, 20)}, bytes(20)),
    "reversed": header({"a": tensor("F32", [2], 8, 0)}, bytes(8)),
    "odd size": header({"a": tensor("BF16", [2], 0, 5)}, bytes(5)),
    "overflow": header({"a": tensor("F32", [2**32, 2**32], 0, 8)}, bytes(8)),
    "negative": header({"a": tensor("F32", [-1], 0, 8)}, bytes(8)),
    "unknown dtype": header({"a": tensor("F99", [2], 0, 8)}, bytes(8)),
    "trailing": STACK + b"trailing",
    "cut data": STACK[:-100],
    "cut header": STACK[:20],
    "twice": header(b'{"a":' + ONE + b',"a":' + ONE.replace(b"F32", b"I32") + b"}", bytes(4)),
    "deep": header(b"[" * 100_000),
    "long name": header({"n" * 5000: tensor("F32", [1], 0, 4)}, bytes(4)),
    "not json": header(b"{'a': 1}"),
    "a list": header(b"[1, 2]"),
    "many": header({f"t{i}": tensor("U8", [1], i, i + 1) for i in range(20_001)}, bytes(20_001)),
    "empty shape": header({"hidden_states": tensor("F32", [0, 2**62], 0, 0)}),
}  # fmt: skip


def refused(path: Path, out: Path) -> str:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    with pytest.raises(BadInput) as caught:
        formats.read([path], out)
    assert time.monotonic() - started < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KB
    text = str(caught.value)
    assert text.startswith(path.name) and len(text) <= 300 and "Traceback" not in text and text.isprintable()
    assert not out.exists() or not list(out.iterdir())
    return text


@pytest.mark.parametrize("name", TORCH_FILES)
def test_torch_files(tmp_path, name):
    path = tmp_path / "data_0.pt"
    path.write_bytes(TORCH_FILES[name])
    refused(path, tmp_path / "out")


@pytest.mark.parametrize("name", SAFETENSORS_FILES)
def test_safetensors_files(tmp_path, name):
    path = tmp_path / "model.safetensors"
    path.write_bytes(SAFETENSORS_FILES[name])
    refused(path, tmp_path / "out")


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("suffix", [".pt", ".bin", ".ckpt", ".safetensors", ""])
def test_no_code_runs(tmp_path, old, suffix):
    marker, path = tmp_path / "marker", tmp_path / f"data_0{suffix}"
    torch.save({"input_ids": torch.arange(3), "x": Evil(marker)}, path, _use_new_zipfile_serialization=not old)
    text = refused(path, tmp_path / "out")
    assert "posix.system" in text or suffix == ".safetensors"
    path.write_bytes(pickle.dumps(Evil(marker)))
    refused(path, tmp_path / "out")
    assert not marker.exists()


def test_unpacking_is_bounded(tmp_path):
    path = tmp_path / "data_0.ckpt.gz"
    path.write_bytes(gzip.compress(bytes(100 << 20)))
    assert "unpacks to more" in refused(path, tmp_path / "out")


def test_every_flip_in_the_data_is_found(tmp_path):
    """Checksums for torch files; for safetensors, which have none, whatever is accepted is at least well-formed."""
    chance, path = random.Random(1), tmp_path / "data_0.pt"
    start = SOUND.index(DUMP["hidden_states"][0].numpy().tobytes())
    for _ in range(20):
        path.write_bytes(flipped(SOUND, start + chance.randrange(6 * 8 * 4)))
        assert "checksum" in refused(path, tmp_path / "out")


def test_random_damage_never_stops_the_caller(tmp_path):
    chance, sound = (
        random.Random(7),
        {"data_0.pt": SOUND, "a.safetensors": STACK, "config.json": b'{"model_type": "llama"}'},
    )
    for _ in range(60):
        name, data = chance.choice(list(sound.items()))
        damaged = (
            data[: chance.randrange(len(data))] if chance.random() < 0.5 else flipped(data, chance.randrange(len(data)))
        )
        path = tmp_path / name
        path.write_bytes(damaged)
        documents = formats.inspect([path])
        assert documents and all(document["kind"] in ("unknown", "capture") for document in documents)
        assert all(len(problem) <= 300 for document in documents for problem in document["problems"])


def test_a_drafter_config_with_absurd_sizes(tmp_path):
    folder = tmp_path / "drafter"
    folder.mkdir()
    save_file(
        {"fc.weight": torch.ones(8, 24), "layers.0.self_attn.q_proj.weight": torch.ones(8, 16)},
        folder / "model.safetensors",
    )
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": 2**31, "vocab_size": 2**40}))
    with pytest.raises(BadInput):
        formats.read([folder], tmp_path / "out")


def memory(pid: int, what: str) -> int:
    """VmRSS or VmHWM of a process in KB; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/status").read_text().split(f"{what}:")[1].split()[0])
    except (OSError, IndexError):
        return 0


@pytest.mark.parametrize("name", ["a.safetensors", "data_0.pt"])
def test_memory_does_not_grow_with_the_file(tmp_path, name):
    path, rows = tmp_path / name, 12_000
    states = torch.ones(rows, 3, 1024)  # 147 MB
    if name.endswith(".pt"):
        torch.save({"input_ids": torch.arange(rows), "hidden_states": list(states.unbind(1))}, path)
    else:
        save_file({"token_ids": torch.arange(rows), "hidden_states": states}, path)
    del states
    peak, base = [0], [0]

    def watch(done, total, message):
        for reader in children():
            base[0] = memory(reader, "VmRSS")
            workers = Path(f"/proc/{reader}/task/{reader}/children").read_text().split()
            peak[0] = max([peak[0], *(memory(int(worker), "VmHWM") for worker in workers)])

    before = memory(os.getpid(), "VmRSS")
    formats.read([path], tmp_path / "out", progress=watch)
    assert 0 < peak[0] < base[0] + 60_000
    assert memory(os.getpid(), "VmRSS") < before + 50_000


def test_a_killed_reader_is_a_message_and_the_next_request_works(tmp_path):
    path = tmp_path / "data_0.pt"
    path.write_bytes(SOUND)

    def kill(done, total, message):
        if message != "hashing":
            for child in children():
                os.kill(child, signal.SIGKILL)

    big = tmp_path / "big.safetensors"
    save_file({"token_ids": torch.arange(3000), "hidden_states": torch.randn(3000, 3, 1024)}, big)
    with pytest.raises(BadInput, match="the reader stopped|cannot be read"):
        formats.read([big], tmp_path / "out", progress=kill)
    assert len(formats.read([path], tmp_path / "out")) == 1


def children() -> list[int]:
    """The processes that this one started to read files."""
    mine = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and (folder / "stat").exists():
            try:
                command = (folder / "cmdline").read_bytes()
                parent = int((folder / "stat").read_text().rsplit(")")[1].split()[1])
            except (OSError, IndexError):  # it ended meanwhile
                continue
            if b"eagle3dash.formats.child" in command and parent == os.getpid():
                mine.append(int(folder.name))
    return mine


def test_a_file_that_shrinks_while_it_is_read(tmp_path):
    """A mapped torch file that is cut raises SIGBUS in the reader; the caller gets a sentence."""
    path = tmp_path / "data_0.pt"
    torch.save({"input_ids": torch.arange(40_000), "hidden_states": [torch.randn(40_000, 512) for _ in range(3)]}, path)
    cut = []

    def shrink(done, total, message):
        if done > 0 and not cut:
            cut.append(done)
            os.truncate(path, 4096)

    with pytest.raises(BadInput, match="shortened|changed"):
        formats.read([path], tmp_path / "out", progress=shrink)
    assert cut and not list((tmp_path / "out").iterdir())


def test_a_reader_that_takes_too_long_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "BASE_SECONDS", 0)
    monkeypatch.setattr(sandbox, "BYTES_A_SECOND", 1 << 60)
    path = tmp_path / "a.safetensors"
    save_file({"token_ids": torch.arange(20_000), "hidden_states": torch.randn(20_000, 3, 1024)}, path)
    sandbox.warm()
    with pytest.raises(BadInput, match="took longer than 0 s|took too long"):
        formats.read([path], tmp_path / "out")


def test_the_reader_ends_with_its_caller(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from eagle3dash.formats import sandbox; sandbox.warm();"
        "print(sandbox._idle[0].process.pid, flush=True); time.sleep(60)"
    )
    root = Path(__file__).parents[2]
    caller = subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True)
    reader = int(caller.stdout.readline())
    caller.kill()
    caller.wait()
    caller.stdout.close()
    until = time.monotonic() + 60
    while alive(reader) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(reader)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()[0] != "Z"
    except OSError:
        return False
