"""A chosen reading: the question runs the drafter as that code reads its file, and is another question."""

import json
import shutil
from pathlib import Path

import pytest

from eagle3dash.errors import BadInput
from eagle3dash.jobs import questions
from eagle3dash.jobs.imports import bring_in
from eagle3dash.jobs.questions import Question
from eagle3dash.jobs.selection import readings

DRAFTER = Path(__file__).parents[2] / "data" / "demo" / "drafter"
RUN, VLLM = "story-as-served", "as served by vLLM"


@pytest.fixture
def absent(store, tmp_path):
    """The demo's run with a drafter whose config lacks norm_before_residual: false to speculators, true to vLLM."""
    config = json.loads((DRAFTER / "config.json").read_text())
    del config["norm_before_residual"]
    (tmp_path / "drafter").mkdir()
    (tmp_path / "drafter" / "config.json").write_text(json.dumps(config))
    shutil.copy(DRAFTER / "model.safetensors", tmp_path / "drafter")
    bring_in(store, [tmp_path / "drafter"], RUN)
    return store


def test_each_reading_has_its_own_answer(absent):
    own, other = (questions.answer(absent, Question("replay", RUN, {"reading": name})) for name in (None, VLLM))
    assert (own["reading"], other["reading"]) == ("as trained by speculators", VLLM)
    assert round(own["row_accept_length"], 4) == 2.0226
    assert other["row_accept_length"] < own["row_accept_length"] - 0.05


@pytest.mark.parametrize("kind", ["replay", "sweep", "diagnose"])
def test_the_key_includes_the_reading(absent, kind):
    keys = {name: questions.key(absent, Question(kind, RUN, {"reading": name})) for name in readings(drafter(absent))}
    assert len(set(keys.values())) == 4
    assert questions.key(absent, Question(kind, RUN)) == keys["as trained by speculators"]


def test_a_reading_that_the_drafter_has_not(store):
    with pytest.raises(BadInput, match="no reading 'mine'; it has 'as trained by speculators', 'as served by vLLM'"):
        questions.key(store, Question("replay", RUN, {"reading": "mine"}))
    with pytest.raises(BadInput, match="features takes no reading"):
        questions.key(store, Question("features", RUN, {"reading": VLLM}))


def drafter(store):
    return store.run(RUN).drafter.record
