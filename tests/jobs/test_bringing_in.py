"""Imports are whole or not at all, wherever they are broken off."""

import pytest
import torch
from safetensors.torch import save_file

from eagle3dash.errors import BadInput, Cancelled
from eagle3dash.jobs import demo
from eagle3dash.jobs.imports import bring_in
from eagle3dash.store import Store


@pytest.fixture
def empty(tmp_path):
    with Store.open(tmp_path / "store") as opened:
        yield opened


def left(store):
    return [*store.runs(), *(store.folder / "staging").iterdir(), *(store.folder / "tensors").iterdir()]


@pytest.mark.parametrize("share", [0.0, 0.4, 0.9])
def test_a_cancelled_import_leaves_nothing(empty, share):
    def progress(done, total, message):
        if total and done / total >= share:
            raise Cancelled("Cancelled.")

    with pytest.raises(Cancelled):
        bring_in(empty, [demo.FOLDER / "training"], "r", progress=progress)
    assert left(empty) == []


def test_one_bad_file_among_good_ones_leaves_nothing(empty, tmp_path):
    bad = tmp_path / "data_9.pt"
    bad.write_bytes((demo.FOLDER / "training" / "data_0.pt").read_bytes()[:-100])
    with pytest.raises(BadInput, match="data_9.pt"):
        bring_in(empty, [demo.FOLDER / "drafter", bad], "r")
    assert left(empty) == []


def test_what_was_inferred_is_told(empty):
    told = bring_in(empty, [demo.FOLDER / "drafter", demo.FOLDER / "training"])
    assert {one["kind"] for one in told["added"]} == {"drafter", "capture"}
    assert empty.run(told["run"]).drafter is not None
    assert any(one["inferred"] for one in told["added"])


def test_the_width_of_the_runs_drafter_splits_a_concatenation(empty, tmp_path):
    bring_in(empty, [demo.FOLDER / "drafter"], "r")
    states = torch.randn(40, 3 * 576)
    save_file({"hidden_states": states, "token_ids": torch.arange(40)}, tmp_path / "joined.safetensors")
    told = bring_in(empty, [tmp_path / "joined.safetensors"], "r", role="serving")
    assert [one["kind"] for one in told["added"]] == ["capture"]
    record = empty.run("r").capture("serving").record
    assert (record.width, len(record.states)) == (576, 3)
