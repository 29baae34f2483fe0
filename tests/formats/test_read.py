"""`formats.read` from end to end: real files in, records and canonical tensor files out."""

import dataclasses
import gzip
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from eagle3dash import formats
from eagle3dash.errors import BadInput, Cancelled
from eagle3dash.records import Import, from_json, to_json

DEMO = Path(__file__).parents[2] / "data" / "demo"
torch.set_num_threads(1)


def one(paths, out, **options) -> Import:
    found = formats.read(paths, out, **options)
    assert len(found) == 1, [item.kind for item in found]
    return found[0]


def tensors(out: Path, sha256: str) -> dict[str, torch.Tensor]:
    return load_file(out / f"{sha256}.safetensors")


def connector(path: Path, rows: int = 8, width: int = 16, n: int = 3) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    states = torch.randn(rows, n, width, generator=torch.Generator().manual_seed(rows)).to(torch.bfloat16)
    save_file({"hidden_states": states, "token_ids": torch.arange(rows)}, path)
    return path


def test_demo_training_capture_is_read_value_for_value(tmp_path):
    item = one([DEMO / "training"], tmp_path)
    record = item.record
    assert (record.format, record.role, record.width, record.dtype) == (
        "speculators v1 data_N.pt",
        "training",
        576,
        "bfloat16",
    )
    assert record.states == (0, 2, 15, 27) and record.aux == (0, 1, 2) and record.last == "pre-norm"
    assert [sequence.name for sequence in record.sequences] == [f"data_{i}.pt" for i in range(8)]
    for i, sequence in enumerate(record.sequences):
        source = torch.load(DEMO / "training" / f"data_{i}.pt", weights_only=True)
        stored = tensors(tmp_path, sequence.tensors)
        assert torch.equal(stored["token_ids"], source["input_ids"]) and sequence.tokens == len(source["input_ids"])
        assert torch.equal(stored["loss_mask"], source["loss_mask"].to(torch.uint8))
        assert sequence.loss_tokens == int(source["loss_mask"].sum())
        for slot, state in enumerate(source["hidden_states"]):
            assert torch.equal(stored[f"state.{slot}"], state)


def test_demo_serving_capture_is_read_value_for_value(tmp_path):
    record = one([DEMO / "story-as-served" / "serving"], tmp_path).record
    assert (record.format, record.role, record.aux, record.last) == ("vllm connector", "serving", (0, 1, 2), "none")
    assert record.states == (None, None, None)
    for sequence in record.sequences:
        source = load_file(DEMO / "story-as-served" / "serving" / sequence.name)
        stored = tensors(tmp_path, sequence.tensors)
        assert torch.equal(stored["token_ids"], source["token_ids"])
        for slot in range(3):
            assert torch.equal(stored[f"state.{slot}"], source["hidden_states"][:, slot])


def test_the_whole_story_in_one_call(tmp_path):
    served = DEMO / "story-as-served"
    found = formats.read(
        [DEMO / "drafter", DEMO / "target", DEMO / "training", served / "serving", served / "server"], tmp_path
    )
    assert sorted(item.kind for item in found) == ["capture", "capture", "drafter", "log", "log", "log", "target"]
    metrics = next(item for item in found if len(item.sources) == 2 and item.kind == "log")
    assert sum(window.rounds or 0 for window in metrics.record.windows) == 6811
    assert all(path.suffix == ".safetensors" for path in tmp_path.iterdir())
    assert {path.stem for path in tmp_path.iterdir()} == {sha256 for item in found for sha256 in item.tensors}


def test_the_story_uploaded_as_one_flat_folder(tmp_path):
    flat, served = tmp_path / "upload", DEMO / "story-as-served"
    flat.mkdir()
    for folder in (DEMO / "drafter", DEMO / "training", served / "serving", served / "server", DEMO / "target"):
        for path in folder.iterdir():
            shutil.copy(path, flat)
    found = formats.read([flat], tmp_path / "out")
    apart = formats.read(
        [DEMO / "drafter", DEMO / "target", DEMO / "training", served / "serving", served / "server"], tmp_path
    )
    assert sorted(item.sha256 for item in found) == sorted(item.sha256 for item in apart)
    assert all(not item.problems for item in found)


def test_tensor_files_are_canonical(tmp_path):
    item = one([DEMO / "drafter"], tmp_path)
    path = tmp_path / f"{item.record.tensors}.safetensors"
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout.startswith(path.stem)
    with safe_open(path, "pt") as stored, safe_open(DEMO / "drafter" / "model.safetensors", "pt") as source:
        assert stored.metadata() is None
        assert torch.equal(stored.get_tensor("fc.weight"), source.get_tensor("fc.weight"))
        assert {"norm.weight", "lm_head.weight", "d2t", "t2d", "layers.0.hidden_norm.weight"} <= set(stored.keys())


def test_a_config_named_by_itself_wins_over_the_folders(tmp_path):
    item = one([DEMO / "drafter" / "model.safetensors", DEMO / "story-fixed" / "drafter" / "config.json"], tmp_path)
    assert item.record.layer_ids == (0, 2, 15)
    both = one([DEMO / "drafter", DEMO / "story-fixed" / "drafter" / "config.json"], tmp_path)
    assert both.record.layer_ids == (0, 2, 15)
    assert both.sha256 == item.sha256
    own = one([DEMO / "drafter"], tmp_path)
    assert own.record.layer_ids == (2, 15, 27) and own.sha256 != item.sha256
    assert own.record.tensors == item.record.tensors  # the same weights are one file


def test_imports_survive_json(tmp_path):
    for item in formats.read([DEMO / "drafter", DEMO / "training", DEMO / "story-as-served" / "server"], tmp_path):
        assert from_json(Import, json.loads(json.dumps(to_json(item)))) == item


def test_content_is_known_again_under_other_names(tmp_path):
    first = one([DEMO / "story-as-served" / "serving"], tmp_path / "out")
    folder = tmp_path / "renamed"
    folder.mkdir()
    for i, path in enumerate(sorted((DEMO / "story-as-served" / "serving").iterdir())):
        shutil.copy(path, folder / f"x{9 - i}.safetensors")
    again = one([folder], tmp_path / "out")
    assert again.sha256 == first.sha256
    assert one([folder], tmp_path / "out", role="training").sha256 != first.sha256


def test_files_are_taken_in_natural_order(tmp_path):
    folder = tmp_path / "in"
    for i in (10, 2, 1):
        connector(folder / f"r{i}.safetensors", rows=i + 1)
    record = one([folder], tmp_path / "out").record
    assert [sequence.name for sequence in record.sequences] == ["r1.safetensors", "r2.safetensors", "r10.safetensors"]


def test_states_named_by_the_user(tmp_path):
    path = connector(tmp_path / "a.safetensors")
    assert one([path], tmp_path / "out", states=(2, 15, 27)).record.states == (2, 15, 27)
    with pytest.raises(BadInput, match="4 states were named, but the capture has 3"):
        formats.read([path], tmp_path / "out", states=(0, 1, 2, 3))


def test_width_disagrees_with_the_drafter(tmp_path):
    path = connector(tmp_path / "a.safetensors", width=16)
    with pytest.raises(
        BadInput, match=r"a\.safetensors: wrong width: the states are 16 wide, the drafter reads states of 576"
    ):
        formats.read([DEMO / "drafter", path], tmp_path / "out")
    with pytest.raises(BadInput, match="16 wide.*of 32"):
        formats.read([path], tmp_path / "out", width=32)
    assert not list((tmp_path / "out").iterdir())


def test_mixed_widths_in_one_folder(tmp_path):
    connector(tmp_path / "in" / "a.safetensors", width=16)
    connector(tmp_path / "in" / "b.safetensors", width=24)
    with pytest.raises(BadInput, match=r"b\.safetensors: wrong width: 24.*a\.safetensors is 16"):
        formats.read([tmp_path / "in"], tmp_path / "out")


@pytest.mark.parametrize("role, kind", [("log", "capture"), ("drafter", "capture"), ("target", "capture")])
def test_role_that_does_not_fit(tmp_path, role, kind):
    with pytest.raises(BadInput, match=f"is a {kind}, not a {role}"):
        formats.read([connector(tmp_path / "a.safetensors")], tmp_path / "out", role=role)
    with pytest.raises(BadInput, match="no kind of file"):
        formats.read([DEMO / "training"], tmp_path / "out", role="picture")


def test_a_role_picks_its_kind_out_of_a_folder(tmp_path):
    folder = tmp_path / "in"
    shutil.copytree(DEMO / "drafter", folder)
    connector(folder / "a.safetensors", width=576)
    shutil.copy(DEMO / "story-as-served" / "server" / "server.log", folder)
    assert one([folder], tmp_path / "out", role="drafter").kind == "drafter"
    assert one([folder], tmp_path / "out", role="log").kind == "log"
    with pytest.raises(BadInput, match="No target there"):
        formats.read([DEMO / "story-as-served" / "server"], tmp_path / "out", role="target")
    with pytest.raises(BadInput, match="No serving capture there, but drafter"):
        formats.read([DEMO / "drafter"], tmp_path / "out", role="serving")


def test_only_the_standard_weights_of_a_folder_are_the_model(tmp_path):
    folder = tmp_path / "in"
    shutil.copytree(DEMO / "drafter", folder)
    save_file({"fc.weight": torch.ones(2, 6), "logits": torch.ones(3, 3)}, folder / "expected.safetensors")
    item = one([folder], tmp_path / "out")
    assert item.sha256 == one([DEMO / "drafter"], tmp_path / "out").sha256
    assert item.problems == ("Not used beside in/model.safetensors: in/expected.safetensors.",)


def test_nothing_is_left_when_one_file_of_many_is_bad(tmp_path):
    folder = tmp_path / "in"
    shutil.copytree(DEMO / "training", folder)
    data = (folder / "data_5.pt").read_bytes()
    (folder / "data_5.pt").write_bytes(data[: len(data) // 2])
    out = tmp_path / "out"
    with pytest.raises(BadInput, match=r"data_5\.pt"):
        formats.read([folder], out)
    assert not list(out.iterdir())


def test_progress_counts_bytes_and_ends_complete(tmp_path):
    seen = []
    formats.read([DEMO / "training"], tmp_path, progress=lambda done, total, message: seen.append((done, total, message)))
    total = 2 * sum(path.stat().st_size for path in (DEMO / "training").iterdir())
    assert all(entry[1] == total for entry in seen) and seen[-1][0] == total
    assert [entry[0] for entry in seen] == sorted(entry[0] for entry in seen)


def test_cancelling_leaves_nothing(tmp_path):
    def progress(done, total, message):
        raise Cancelled("no longer wanted")

    with pytest.raises(Cancelled):
        formats.read([DEMO / "training"], tmp_path / "out", progress=progress)
    assert not list((tmp_path / "out").iterdir())
    assert one([DEMO / "training"], tmp_path / "out").kind == "capture"


def test_a_file_that_is_written_to_meanwhile_is_refused(tmp_path):
    path = connector(tmp_path / "a.safetensors")
    done = []

    def progress(at, total, message):
        if message == "hashing" and not done:
            done.append(True)
            data = bytearray(path.read_bytes())
            data[-1] ^= 1
            path.write_bytes(data)

    with pytest.raises(BadInput, match="changed while it was read"):
        formats.read([path], tmp_path / "out", progress=progress)
    assert not list((tmp_path / "out").iterdir())


def test_an_existing_tensor_file_is_left_as_it_is(tmp_path):
    first = one([DEMO / "training"], tmp_path)
    again = one([DEMO / "training"], tmp_path)
    assert dataclasses.replace(again) == first and len(list(tmp_path.iterdir())) == 8


def test_packed_logs_and_captures(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    log = (DEMO / "story-as-served" / "server" / "server.log").read_bytes()
    (folder / "server.log.gz").write_bytes(gzip.compress(log))
    packed = one([folder / "server.log.gz"], tmp_path / "out").record
    assert packed.windows == one([DEMO / "story-as-served" / "server" / "server.log"], tmp_path / "out").record.windows
    (folder / "server.log.gz").write_bytes(gzip.compress(log)[:-200])
    with pytest.raises(BadInput, match="gzip"):
        formats.read([folder / "server.log.gz"], tmp_path / "out")


@pytest.mark.parametrize(
    "name, data, match",
    [
        ("notes.txt", b"shopping list\n", "unknown kind"),
        ("image.png", b"\x89PNG\r\n\x1a\n" + bytes(100), "unknown kind"),
        ("empty.pt", b"", "empty"),
        ("model.safetensors", b"\x10\x00", "truncated"),
        ("data_0.pt", b"not a torch file at all", "not a torch file"),
        ("config.json", b'{"model_type": "llama", ', "not readable JSON"),
        ("config.json", b'{"model_type": "llama", "hidden_size": 64}', "config without weights"),
        ("model.gguf", b"GGUF\x03\x00\x00\x00", "GGUF"),
    ],
)
def test_unusable_files(tmp_path, name, data, match):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(BadInput, match=match) as caught:
        formats.read([path], tmp_path / "out")
    assert str(caught.value).startswith(name) and len(str(caught.value)) <= 300
    assert not list((tmp_path / "out").iterdir())


def test_accessories_of_a_folder_are_no_obstacle(tmp_path):
    folder = tmp_path / "drafter"
    shutil.copytree(DEMO / "drafter", folder)
    for name in ("README.md", "tokenizer_config.json", "generation_config.json", ".gitattributes", "eagle3.py"):
        (folder / name).write_text("{}")
    torch.save({"object": Path("x")}, folder / "optimizer.pt")
    assert one([folder], tmp_path / "out").kind == "drafter"
    (folder / "notes.dat").write_text("??")
    assert any("notes.dat" in problem for problem in one([folder], tmp_path / "out").problems)
    with pytest.raises(BadInput, match=r"notes\.dat: unknown kind"):
        formats.read([folder, folder / "notes.dat"], tmp_path / "out")


def test_a_folder_of_accessories_only(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "README.md").write_text("# hello")
    with pytest.raises(BadInput, match="nothing here"):
        formats.read([tmp_path / "in"], tmp_path / "out")


def test_sharded_drafter_with_an_index(tmp_path):
    weights = load_file(DEMO / "drafter" / "model.safetensors")
    folder, half = tmp_path / "drafter", len(weights) // 2
    folder.mkdir()
    shutil.copy(DEMO / "drafter" / "config.json", folder)
    names = sorted(weights)
    shards = {"model-00001-of-00002.safetensors": names[:half], "model-00002-of-00002.safetensors": names[half:]}
    for shard, mine in shards.items():
        save_file({name: weights[name] for name in mine}, folder / shard)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: shard for shard, mine in shards.items() for name in mine}}))
    whole = one([DEMO / "drafter"], tmp_path / "out")
    assert one([folder], tmp_path / "out").sha256 == whole.sha256
    save_file({"x": torch.ones(1)}, tmp_path / "outside.safetensors")
    index.write_text(json.dumps({"weight_map": dict.fromkeys(names, "../outside.safetensors")}))
    with pytest.raises(BadInput, match="not in its folder"):
        formats.read([folder], tmp_path / "out")


def test_drafter_in_a_torch_file(tmp_path):
    folder = tmp_path / "drafter"
    folder.mkdir()
    shutil.copy(DEMO / "drafter" / "config.json", folder)
    torch.save(load_file(DEMO / "drafter" / "model.safetensors"), folder / "pytorch_model.bin")
    assert one([folder], tmp_path / "out").sha256 == one([DEMO / "drafter"], tmp_path / "out").sha256


def test_the_caller_never_loads_torch(tmp_path):
    code = (
        "import sys, json; from pathlib import Path; from eagle3dash import formats;"
        f"found = formats.read([Path({str(DEMO / 'training')!r})], Path({str(tmp_path)!r}));"
        "print(len(found), any(m in sys.modules for m in ('torch', 'safetensors', 'gguf', 'transformers')))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, env=os.environ, check=True
    )
    assert done.stdout.split() == ["1", "False"]


def test_a_drafters_folder_with_other_tensors_beside(tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    golden = Path(__file__).parents[1] / "golden" / "modelopt-base"
    for path in golden.iterdir():
        shutil.copy2(path, folder)
    (folder / "notes.json").write_text('{"author": "me"}')
    drafter, target = formats.read([folder], tmp_path / "out")
    assert (drafter.kind, target.kind) == ("drafter", "target")
    assert (target.record.vocab, target.record.hidden, target.record.layers) == (300, 64, None)
    told = " ".join(drafter.problems)
    for name in ("expected.safetensors", "inputs.safetensors", "notes.json"):
        assert name in told
    both = formats.read([folder], tmp_path / "again", role="training")
    assert [item.kind for item in both] == ["drafter", "target", "capture"]
    with pytest.raises(BadInput, match=r"inputs.safetensors: from training or from serving\?"):
        formats.read(
            [folder / "model.safetensors", folder / "config.json", folder / "inputs.safetensors"], tmp_path / "named"
        )
