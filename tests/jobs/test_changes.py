"""Faulty variants of the demo's healthy drafter, and whether replays with one thing changed name the fault."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from eagle3dash.analysis.acceptance import Tally
from eagle3dash.analysis.changes import ranked
from eagle3dash.analysis.trials import Stage, Trial, clear, winner
from eagle3dash.jobs import questions
from eagle3dash.jobs.imports import bring_in
from eagle3dash.jobs.questions import Question
from eagle3dash.store import Store

DEMO = Path(__file__).parents[2] / "data" / "demo"
TEXTS = (1, 4, 7)


def base(config):
    config["transformer_layer_config"]["rope_parameters"] = {"rope_type": "default", "rope_theta": 100.0}


def absolute(tensors):
    tensors["d2t"] = tensors["d2t"] + torch.arange(len(tensors["d2t"]))


def keep(_):
    pass


FAULTS = {
    "residual": (lambda c: c.update(norm_before_residual=True), keep, ["wrong-residual-norm"]),
    "rope": (base, keep, ["wrong-rope"]),
    "two": (lambda c: c.update(norm_output=True), absolute, ["wrong-vocab-map", "wrong-feedback-norm"]),
}


def variant(folder, config, tensors):
    folder.mkdir()
    read = json.loads((DEMO / "story-fixed/drafter/config.json").read_text())
    weights = load_file(DEMO / "drafter/model.safetensors")
    config(read)
    tensors(weights)
    (folder / "config.json").write_text(json.dumps(read))
    save_file(weights, folder / "model.safetensors")
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A store, and a training capture of three of the demo's texts."""
    folder = tmp_path_factory.mktemp("small")
    training = folder / "training"
    training.mkdir()
    for name in (*(f"data_{i}.pt" for i in TEXTS), "data_config.json"):
        shutil.copy(DEMO / "training" / name, training / name)
    with Store.open(folder / "store") as store:
        yield store, training, folder


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_file_is_named_with_what_it_costs(small, name):
    store, training, folder = small
    config, tensors, wanted = FAULTS[name]
    bring_in(store, [variant(folder / name, config, tensors), training, DEMO / "target"], name)
    document = questions.answer(store, Question("diagnose", name, {"steps": 3}))
    errors = [finding for finding in document["findings"] if finding["severity"] == "error"]
    assert [finding["id"] for finding in errors] == wanted
    told = errors[0]["evidence"]
    assert told["after"]["row_accept_length"] - told["before"]["row_accept_length"] >= told["difference"]["mean"] - 1e-6
    assert told["before"]["rows"] == told["after"]["rows"] > 100
    rows = document["changes"]["training"]
    names = [row["name"] for row in rows]
    for at, row in enumerate(rows):  # what makes no difference comes after what it changes
        before = " + ".join(row["on"]) or next(each for each in names if each.startswith("unchanged"))
        assert row["outcome"] not in ("no clear difference", "less likely") or names.index(before) < at
    single = next(row for row in rows if row["best"] == "single")
    assert single["clear"] and single["change"] in told["change"] and single["difference_low"] > 0.0
    pair = next(row for row in rows if row["best"] == "pair")
    assert (pair["clear"] and len(pair["on"]) == 1) == (name == "two")


def test_the_healthy_drafter_gains_by_nothing_and_its_replays_are_kept(shared):
    document = questions.answer(shared, Question("changes", "story-fixed", {"capture": "training"}))
    assert document["best"] is None and not any(row["clear"] for row in document["rows"])
    assert round(document["baseline"]["row_accept_length"], 4) == 2.0226
    still = next(row for row in document["rows"] if row["change"].startswith("RoPE without positions"))
    assert still["difference"] < -0.1 and still["likelier"] < -0.1  # it does read positions
    families = {row["family"] for row in document["rows"]}
    assert {"norms", "rope", "vocabulary", "head", "lag", "precision", "post-norm", "states"} <= families
    rows = {tuple(row["sets"].get("states", ())): row for row in ranked(document)}
    assert round(rows[2, 0, 15]["likelier"], 3) == -0.154 and rows[2, 0, 15]["outcome"] == "less likely"
    dead = next(row for row in document["rows"] if row["change"] == "d2t read as absolute ids")
    assert dead["low"] == 1.0 and dead["high"] < 1.02  # nothing is accepted, and texts that differ do not blur that
    assert all(1.0 <= row["low"] <= row["row_accept_length"] <= row["high"] <= 5.0 for row in document["rows"])
    other = questions.key(shared, Question("changes", "story-as-served", {"capture": "training"}))
    assert other == questions.key(shared, Question("changes", "story-fixed", {"capture": "training"}))
    for kind in ("sweep", "replay"):  # the same weights on the same capture, whatever ids the config claims
        keys = {questions.key(shared, Question(kind, run)) for run in ("story-as-served", "story-fixed")}
        assert len(keys) == 1


def tally(rows, logprob=-2.0):
    """One text of blocks of 32 rows: num_accepted of every row as given for its block."""
    found, accepted = Tally(2), np.repeat(rows, 32)
    right = np.pad(np.stack([accepted >= 1, accepted >= 2]), ((0, 0), (0, 4)))  # a chain's labels follow its row
    counted = np.arange(right.shape[1]) < len(accepted)
    found.add(right, counted, np.ones(len(counted), dtype=bool), np.full(len(counted), logprob))
    return found


def test_a_loss_is_told_as_the_share_that_is_kept():
    base, half = tally([0, 2] * 8), tally([0, 1] * 8)
    assert half.share_of(base).mean == 0.5 and half.share_of(base).high < 0.51  # each text keeps half, however they differ
    assert half.ahead_of(base).high - half.ahead_of(base).low > 0.4
    assert tally([0] * 16).share_of(base).mean == 0.0
    assert base.share_of(tally([0] * 16)) is None  # a share of nothing


def test_a_gain_of_one_stretch_is_an_accident_and_one_of_every_stretch_is_not():
    base = tally([0, 1] * 8)
    assert not clear(tally([0, 1] * 7 + [2, 1]), base)
    assert clear(tally([1, 1] * 8), base)
    assert not clear(base, base)


@pytest.mark.parametrize(
    ("family", "rows", "logprob", "wins"),
    [
        ("rope", [0, 1] * 8, -1.9, True),  # likelier everywhere, no token gained
        ("rope", [0, 1] * 8, -1.99, False),  # as much as rounding does
        ("rope", [0, 0] * 8, -1.9, False),  # it costs tokens
        ("head", [0, 1] * 8, -1.9, False),  # other weights: the drafter may only be weak
    ],
)
def test_what_makes_the_texts_tokens_likelier_is_what_it_was_trained_with(family, rows, logprob, wins):
    base = tally([0, 1] * 8)
    trial = Trial({"change": "it", "family": family, "sets": {"it": 1}}, tally(rows, logprob), base, True)
    assert trial.clear == wins and (winner(Stage((), base, [trial])) is trial) == wins


def test_of_changes_that_gain_alike_the_likeliest_wins():
    base = tally([0, 1] * 8)
    near, own = (
        Trial({"change": name, "family": "rope", "sets": {"rope": name}}, tally(rows, logprob), base, True)
        for name, rows, logprob in (("near", [1, 1] * 8, -1.8), ("own", [0, 1] * 8, -1.7))
    )
    assert winner(Stage((), base, [near, own])) is near  # beyond doubt ahead in tokens
    less = Trial(near.told, tally([0, 1] * 7 + [1, 1], -1.8), base, True)
    assert winner(Stage((), base, [less, own])) is own


def test_a_later_token_s_state_is_no_gain_when_only_the_first_step_gains():
    base, leaking = tally([0] * 16), tally([1] * 16)
    trial = Trial({"change": "later", "family": "lag", "sets": {"lag": 1}}, leaking, base, True)
    assert trial.leaks and winner(Stage((), base, [trial])) is None
    right = Trial({"change": "later", "family": "lag", "sets": {"lag": 1}}, tally([2, 1] * 8), base, True)
    assert winner(Stage((), base, [right])) is right
