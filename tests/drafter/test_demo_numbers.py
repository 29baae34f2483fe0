"""The demo's table (data/demo/README.md): an independent float64 forward found these counts; we must find the same.

float32 gives the same counts on the machines seen; float64 is free of ties broken by rounding.
"""

import json
from functools import cache
from itertools import permutations
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from eagle3dash.analysis.acceptance import count, countable, merge
from eagle3dash.drafter.model import Model
from eagle3dash.drafter.replay import drafts
from eagle3dash.drafter.sweep import Sweep
from eagle3dash.formats.drafters import convert

torch.set_num_threads(1)
DEMO = Path(__file__).parents[2] / "data" / "demo"
STEPS = 4


@cache
def embeddings() -> torch.Tensor:
    reader = gguf.GGUFReader(next((DEMO / "target").glob("*.gguf")))
    stored = next(x for x in reader.tensors if x.name == "token_embd.weight")
    return torch.from_numpy(gguf.quants.dequantize(stored.data, stored.tensor_type))


def demo_drafter(dtype: torch.dtype, device: str = "cpu") -> Model:
    config = json.loads((DEMO / "drafter" / "config.json").read_text())
    converted = convert(config, load_file(DEMO / "drafter" / "model.safetensors"))
    return Model(converted.record.spec, converted.tensors, embedding=embeddings(), device=device, dtype=dtype)


@pytest.fixture(scope="module")
def drafter():
    return demo_drafter(torch.float64)


def training(index: int) -> tuple[list[torch.Tensor], torch.Tensor, np.ndarray]:
    stored = torch.load(DEMO / "training" / f"data_{index}.pt", weights_only=True)
    return stored["hidden_states"], stored["input_ids"], stored["loss_mask"].numpy()


def serving(story: str, index: int) -> tuple[list[torch.Tensor], torch.Tensor, np.ndarray]:
    stored = load_file(next((DEMO / story / "serving").glob(f"{index}-*.safetensors")))
    return list(stored["hidden_states"].unbind(1)), stored["token_ids"], training(index)[2]  # the same texts, no mask


def counts(model: Model, texts) -> object:
    pooled = []
    for features, ids, mask in texts:
        made = drafts(model, features, ids, STEPS).right
        pooled.append(count(made, countable(len(ids), STEPS, mask), model.in_vocab(ids).numpy())[0])
    return merge(pooled)


def numbers(pooled) -> tuple[float, int, float, int]:
    """(per row, rows, per round, rounds), as the table has them."""
    mean = [np.average(np.arange(STEPS + 1), weights=x) for x in (pooled.row_histogram, pooled.histogram)]
    return round(1 + mean[0], 4), pooled.rows, round(1 + mean[1], 4), pooled.rounds


def test_training_features_that_it_was_trained_on(drafter):
    texts = [(states[:3], ids, mask) for states, ids, mask in map(training, range(8))]
    assert numbers(counts(drafter, texts)) == (2.0226, 1282, 1.7473, 736)


def test_training_features_that_its_config_claims(drafter):
    texts = [(states[1:], ids, mask) for states, ids, mask in map(training, range(8))]
    assert numbers(counts(drafter, texts)) == (1.0694, 1282, 1.0719, 1196)


def test_serving_features_as_served(drafter):
    assert numbers(counts(drafter, [serving("story-as-served", i) for i in range(8)])) == (1.0710, 1282, 1.0728, 1195)


def test_serving_features_after_the_fix(drafter):
    assert numbers(counts(drafter, [serving("story-fixed", i) for i in range(8)])) == (2.0195, 1282, 1.7449, 737)


def test_float32_finds_the_same(drafter):
    texts = [(states[:3], ids, mask) for states, ids, mask in map(training, range(8))]
    made = numbers(counts(demo_drafter(torch.float32), texts))
    assert made[0] == pytest.approx(2.0226, abs=0.004) and made[2] == pytest.approx(1.7473, abs=0.008)


def test_every_combination_swept_equals_its_replay(drafter):
    states, ids, _ = training(7)  # the shortest text
    shared = Sweep(drafter, states, ids, STEPS)
    for combination in permutations(range(4), 3):
        plain = drafts(drafter, [states[i] for i in combination], ids, STEPS).right
        assert np.array_equal(shared.drafts(combination).right, plain)
        assert np.array_equal(shared.drafts(combination, leading=True).right, np.logical_and.accumulate(plain, axis=0))
