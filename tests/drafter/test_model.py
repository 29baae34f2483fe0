"""What a drafter lacks is borrowed from its target or named."""

from dataclasses import replace

import pytest
import torch
from random_drafter import PLAIN, drafter, tensors, text
from safetensors.torch import save_file

from eagle3dash.drafter.model import Model, load
from eagle3dash.drafter.trace import trace
from eagle3dash.errors import BadInput, Missing
from eagle3dash.records import Drafter, Target

PARTS = ("embed_tokens.weight", "lm_head.weight")


def without(*names: str) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in tensors(PLAIN).items() if name not in names}


def test_load_borrows_from_the_target(tmp_path):
    complete = tensors(PLAIN)
    head = torch.randn(PLAIN.vocab, PLAIN.hidden, dtype=torch.float64)
    save_file(without(*PARTS), tmp_path / "drafter.safetensors")
    save_file({PARTS[0]: complete[PARTS[0]], PARTS[1]: head}, tmp_path / "target.safetensors")
    made = load(
        Drafter("speculators", PLAIN, "x"), tmp_path / "drafter.safetensors", dtype=torch.float64,
        target=Target(PLAIN.vocab, PLAIN.hidden, "y", has_head=True), target_path=tmp_path / "target.safetensors",
    )  # fmt: skip
    rows = head[torch.arange(PLAIN.draft_vocab) + complete["d2t"]]
    plain = Model(PLAIN, complete | {"lm_head.weight": rows}, dtype=torch.float64)
    features, ids = text(PLAIN, 9)
    assert torch.equal(trace(made, features, ids, 3)["logits"], trace(plain, features, ids, 3)["logits"])


def test_a_tied_target_lends_its_embedding_as_head(tmp_path):
    save_file(without(*PARTS), tmp_path / "drafter.safetensors")
    save_file({PARTS[0]: tensors(PLAIN)[PARTS[0]]}, tmp_path / "target.safetensors")
    paths = {"path": tmp_path / "drafter.safetensors", "target_path": tmp_path / "target.safetensors"}
    made = load(Drafter("x", PLAIN, "x"), target=Target(50, 32, "y", tied=True), **paths)
    assert torch.equal(made.head, made.embedding[made.target_ids].float())
    with pytest.raises(Missing, match="lm_head") as error:
        load(Drafter("x", PLAIN, "x"), target=Target(50, 32, "y"), **paths)
    assert error.value.needs == "target"


@pytest.mark.parametrize("name", PARTS)
def test_missing_parts_of_the_target_are_named(name):
    with pytest.raises(Missing, match=name) as error:
        Model(PLAIN, without(name))
    assert error.value.needs == "target"


def test_missing_weights_are_named():
    with pytest.raises(Missing, match="fc_norm.0.weight") as error:
        Model(replace(PLAIN, fc_norm=True), without("fc_norm.0.weight"))
    assert error.value.needs == "drafter"


@pytest.mark.parametrize(
    ("spec", "table", "says"),
    [
        (PLAIN, torch.zeros(50, 40), "target's embeddings are 40 wide, the drafter reads 32"),
        (PLAIN, torch.zeros(49, 32), "hold 49 tokens"),
        (replace(PLAIN, activation="mish"), torch.zeros(50, 32), "'mish'"),
    ],
)
def test_what_does_not_fit_is_refused(spec, table, says):
    with pytest.raises(BadInput, match=says):
        Model(spec, without("embed_tokens.weight"), embedding=table)


def test_readings_by_name(tmp_path):
    path = tmp_path / "drafter.safetensors"
    save_file(tensors(PLAIN), path)
    record = Drafter("x", PLAIN, "x", reading="as trained", readings={"as served": replace(PLAIN, feedback_norm=True)})
    assert load(record, path).spec == load(record, path, reading="as trained").spec == PLAIN
    assert load(record, path, reading="as served").spec.feedback_norm
    with pytest.raises(BadInput, match="no reading 'x'; it has 'as trained', 'as served'"):
        load(record, path, reading="x")


def test_draft_vocabulary():
    model = drafter(PLAIN)
    ids = torch.arange(PLAIN.vocab)
    assert model.in_vocab(ids).nonzero().flatten().tolist() == sorted(model.target_ids.tolist())
    assert len(set(model.target_ids.tolist())) == PLAIN.draft_vocab


def test_bfloat16_stays_near():
    features, ids = text(PLAIN, 30)
    models = [Model(PLAIN, tensors(PLAIN), dtype=dtype) for dtype in (torch.float64, torch.bfloat16)]
    wide, narrow = (trace(model, features, ids, 3) for model in models)
    valid = wide["valid"]
    assert narrow["logits"].dtype == torch.float32
    error = (narrow["logits"] - wide["logits"])[valid].norm() / wide["logits"][valid].norm()
    assert error < 0.03
