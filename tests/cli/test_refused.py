"""A diagnosis of files of which one cannot be used: it says which and why, and goes on with the others."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_cli import DEMO, document

FIXED = DEMO / "story-fixed"


@pytest.fixture
def files(tmp_path):
    """Folders of the demo's two short texts, and its fixed drafter."""
    for role, source in (("training", DEMO / "training"), ("serving", FIXED / "serving")):
        (tmp_path / role).mkdir()
        for path in source.iterdir():
            if path.name.startswith(("data_1.", "data_7.", "data_config", "1-", "7-")):
                shutil.copy(path, tmp_path / role)
    (tmp_path / "drafter").mkdir()
    shutil.copy(FIXED / "drafter" / "config.json", tmp_path / "drafter")
    shutil.copy(DEMO / "drafter" / "model.safetensors", tmp_path / "drafter")
    return tmp_path


def given(files, *roles):
    more = [part for role in roles for part in (f"--{role}", files / role)]
    return ("diagnose", *more, "--log", FIXED / "server", "--json")


def served(files, change, texts=1):
    """Changes the states of some texts. -> the name of the first."""
    paths = sorted((files / "serving").iterdir())[:texts]
    for path in paths:
        found = load_file(path)
        change(found["hidden_states"])
        save_file(found, path)
    return paths[0].name


def test_rows_that_the_server_captured_nothing_in(eagle3dash, files):
    name = served(files, lambda states: states[:, 1].zero_())
    done = eagle3dash(*given(files, "drafter", "training", "serving"))
    assert done.returncode == 1
    found = document(done)
    first = found["findings"][0]
    assert (first["id"], first["severity"]) == ("corrupt-features", "error")
    assert first["title"] in found["verdict"] and "All rows of slot 1 hold only zeros" in first["title"]
    rows = first["evidence"]["rows_by_slot"]
    assert first["evidence"]["file"] == name and len(rows) == 1
    assert (rows[0]["slot"], rows[0]["first_row"], rows[0]["bad_rows"]) == (1, 0, rows[0]["of"])
    assert "number of layers" in first["fix"] and first["confidence"]["level"] == "shown"
    assert round(found["numbers"]["served"], 4) == 1.7717
    lacking = {gap["id"]: gap["needs"] for gap in found["could_not_check"]}
    assert name in lacking["shifted-features"] and name in lacking["engine-loss"]
    stored = eagle3dash("import", files / "serving", "--store", files / "store")
    assert (stored.returncode, stored.stdout) == (2, "") and "slot 1, every row holds only zeros" in stored.stderr


def test_rows_of_a_training_capture_are_a_warning(eagle3dash, files):
    path = files / "training" / "data_1.pt"
    kept = torch.load(path)
    kept["hidden_states"][2][30:34] = float("nan")
    torch.save(kept, path)
    done = eagle3dash(*given(files, "drafter", "training", "serving"))
    assert done.returncode == 0
    first = document(done)["findings"][0]
    assert (first["id"], first["severity"]) == ("corrupt-features", "warning")
    rows = first["evidence"]["rows_by_slot"][0]
    assert (first["evidence"]["file"], rows["slot"], rows["first_row"], rows["bad_rows"]) == ("data_1.pt", 2, 30, 4)
    assert "float16" in first["fix"]


def test_a_drafter_without_a_weight_leaves_the_captures_to_compare(eagle3dash, files):
    path = files / "drafter" / "model.safetensors"
    kept = load_file(path)
    del kept["norm.weight"], kept["layers.0.hidden_norm.weight"]
    save_file(kept, path)
    served(files, lambda states: states[:, 1].mul_(4), texts=2)
    done = eagle3dash(*given(files, "drafter", "training", "serving"))
    assert done.returncode == 1
    found = document(done)
    first, second = found["findings"][:2]
    assert (first["id"], first["severity"], second["id"]) == ("missing-weights", "error", "scaled-features")
    assert {"norm.weight", "layers.0.hidden_norm.weight"} <= set(first["evidence"]["lacks"])
    text = eagle3dash(*given(files, "drafter", "training", "serving")[:-1], "--report", files / "report.md")
    assert text.returncode == 1 and "missing-weights" in text.stdout
    assert "lacks" in (files / "report.md").read_text()


def test_nothing_but_a_file_that_cannot_be_used(eagle3dash, files):
    served(files, lambda states: states[5].fill_(float("inf")))
    done = eagle3dash("diagnose", "--serving", files / "serving", "--json", "--report", files / "report.html")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert [finding["id"] for finding in found["findings"]] == ["corrupt-features"]
    assert (files / "report.html").exists()


def test_other_bad_input_ends_it(eagle3dash, files):
    (files / "training" / "data_1.pt").write_bytes(b"no capture")
    done = eagle3dash(*given(files, "drafter", "training"))
    assert (done.returncode, done.stdout) == (2, "")
