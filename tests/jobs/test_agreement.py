"""Files that cannot belong into one run are refused with both sides named, and nothing of them is stored."""

import pytest
import torch
from safetensors.torch import save_file

from eagle3dash.errors import BadInput
from eagle3dash.jobs import demo
from eagle3dash.jobs.imports import bring_in
from eagle3dash.store import Store


@pytest.fixture
def empty(tmp_path):
    with Store.open(tmp_path / "store") as opened:
        yield opened


def capture(path, ids, width=576):
    """A serving capture of one text, as vLLM's connector writes it."""
    states = torch.randn(len(ids), 3, width, generator=torch.Generator().manual_seed(0))
    save_file({"hidden_states": states, "token_ids": torch.tensor(ids)}, path)
    return path


def training(path, ids, width=576):
    path = path.with_name("data_0.pt")
    states = [torch.randn(len(ids), width, generator=torch.Generator().manual_seed(i)) for i in range(4)]
    torch.save({"input_ids": torch.tensor(ids), "loss_mask": torch.ones(len(ids)).long(), "hidden_states": states}, path)
    return path


def refused(store, path, match, role=None):
    before = store.run("r").imports, sorted((store.folder / "tensors").iterdir())
    with pytest.raises(BadInput, match=match) as caught:
        bring_in(store, [path], "r", role=role)
    assert (store.run("r").imports, sorted((store.folder / "tensors").iterdir())) == before
    assert list((store.folder / "staging").iterdir()) == []
    assert len(str(caught.value)) <= 300


def test_width_against_the_other_capture(empty, tmp_path):
    bring_in(empty, [training(tmp_path / "t", list(range(20)))], "r")
    refused(empty, capture(tmp_path / "s.safetensors", list(range(20)), 64), r"wrong width.* 64 wide.*576 wide")


def test_width_against_the_drafter_in_both_orders(empty, tmp_path):
    served = capture(tmp_path / "s.safetensors", list(range(20)), 64)
    bring_in(empty, [served], "r")
    refused(empty, demo.FOLDER / "drafter", r"wrong width.*576 wide.*64 wide")
    refused(empty, demo.FOLDER / "target", r"wrong width.*576 wide.*64 wide")
    bring_in(empty, [demo.FOLDER / "drafter"], "other")
    with pytest.raises(BadInput, match="wrong width: the states are 64 wide, the drafter reads states of 576"):
        bring_in(empty, [served], "other")


def test_captures_without_a_text_in_common(empty, tmp_path):
    ids = torch.randint(0, 40_000, (60,), generator=torch.Generator().manual_seed(1)).tolist()
    others = torch.randint(0, 40_000, (60,), generator=torch.Generator().manual_seed(2)).tolist()
    bring_in(empty, [training(tmp_path / "t", ids)], "r")
    refused(empty, capture(tmp_path / "a.safetensors", others), "other token ids: no text of this serving capture")
    refused(empty, capture(tmp_path / "b.safetensors", [ids[0], *others]), "other token ids")  # only the first token


def test_the_other_way_round(empty, tmp_path):
    bring_in(empty, [capture(tmp_path / "s.safetensors", list(range(50)))], "r")
    refused(empty, training(tmp_path / "t", list(range(100, 150))), "no text of this training capture")


@pytest.mark.parametrize("keep", [slice(0, 10), slice(40, 60), slice(1, None)], ids=["prompt", "answer", "one missing"])
def test_texts_that_differ_in_part_are_stored(empty, tmp_path, keep):
    ids = torch.randint(0, 40_000, (60,), generator=torch.Generator().manual_seed(1))
    bring_in(empty, [training(tmp_path / "t", ids.tolist())], "r")
    other = torch.cat([ids[keep], torch.arange(30)])
    bring_in(empty, [capture(tmp_path / "s.safetensors", other.tolist())], "r")
    assert empty.run("r").capture("serving") is not None


def test_token_ids_beyond_the_vocabulary(empty, tmp_path):
    bring_in(empty, [demo.FOLDER / "drafter"], "r")
    path = capture(tmp_path / "s.safetensors", [5, 6, 49152, 7, 8])
    refused(empty, path, "token id 49152 at position 2, but the drafter drafter knows ids below 49152")


def test_everything_replaced_at_once(empty, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    bring_in(
        empty, [training(small / "t", list(range(20)), 64), capture(small / "s.safetensors", list(range(20)), 64)], "r"
    )
    bring_in(empty, [demo.FOLDER / "drafter", demo.FOLDER / "training", demo.FOLDER / "story-as-served" / "serving"], "r")
    assert empty.run("r").capture("training").record.width == 576
