"""The comparison of captures, on the demo's real states and on faults made from them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from eagle3dash.analysis.features import compare
from eagle3dash.analysis.matches import best_of
from eagle3dash.analysis.pairs import Aligned

DEMO = Path(__file__).parents[2] / "data" / "demo"
STATES = [0, 2, 15, 27]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def training():
    return [torch.load(DEMO / "training" / f"data_{i}.pt", weights_only=True)["hidden_states"] for i in range(8)]


def serving(story):
    files = sorted((DEMO / story / "serving").iterdir(), key=lambda path: path.name)
    return [list(load_file(path)["hidden_states"].unbind(1)) for path in files]


def run(training, served, labels=("s0", "s1", "s2")):
    def pairs():
        for i, (t, s) in enumerate(zip(training, served, strict=True)):
            yield Aligned(i, min(len(t[0]), len(s[0])), t, s)

    return compare(pairs, STATES, labels[: len(served[0])])


def changed(training, change, states=(0, 2, 15)):
    """A serving capture made of the training states, with `change(slot, tensor)` applied."""
    return [[change(m, t[STATES.index(k)]) for m, k in enumerate(states)] for t in training]


@pytest.mark.parametrize("story, best", [("story-as-served", [2, 15, 27]), ("story-fixed", [0, 2, 15])])
def test_vllm_fed_what_the_demo_says(training, story, best):
    document, columns = run(training, serving(story))
    assert document["best"] == best and document["lag"] == 0 and document["slot_lags"] == [0, 0, 0]
    assert document["aligned_tokens"] == 1623 and document["repeated_rows"] == [0, 0, 0]
    assert len(document["cells"]) == 12
    for cell in document["best_cells"]:
        assert cell["noise"] and cell["clear"] and cell["relative_error"] < 0.02 and cell["cosine"] > 0.999
        assert cell["next_error"] > 0.6
    for slot in document["forensics"]:
        assert (slot["how"], slot["share"], slot["break"]) == ("match", 1.0, None) and slot["error"] < 0.02
    assert {len(column) for column in columns.values()} == {12 * 1623}
    which = (columns["training_slot"] == 1) & (columns["serving_slot"] == best.index(2))
    cell = next(c for c in document["best_cells"] if c["training_state"] == 2)
    assert columns["relative_error"][which].mean() == pytest.approx(cell["relative_error"], rel=1e-4)


def test_a_cell_is_the_mean_of_values_by_token(training):
    document, _ = run(training[:2], serving("story-fixed")[:2])
    t = torch.cat([sequence[1] for sequence in training[:2]]).double()
    s = torch.cat([sequence[2] for sequence in serving("story-fixed")[:2]]).double()
    cell = next(c for c in document["cells"] if (c["training_state"], c["serving_slot"]) == (2, 2))
    assert cell["relative_error"] == pytest.approx(float(((s - t).norm(dim=1) / t.norm(dim=1)).mean()), rel=1e-5)
    assert cell["norm_ratio"] == pytest.approx(float((s.norm(dim=1) / t.norm(dim=1)).mean()), rel=1e-5)
    assert cell["cosine"] == pytest.approx(float(torch.cosine_similarity(s, t).mean()), abs=1e-6)


@pytest.mark.parametrize("lag", [-2, -1, 1, 2])
def test_shifted_rows_are_found_with_their_states(training, lag):
    document, columns = run(training, changed(training, lambda m, t: t.roll(lag, dims=0)))
    assert document["lag"] == lag and document["best"] == [0, 2, 15]
    assert document["best_cells"][1]["relative_error"] < 0.01
    assert document["repeated_rows"] == [0, 0, 0]  # rows that training repeats, shifted
    assert columns["position"].min() == max(0, -lag)


def test_one_shifted_slot_is_named(training):
    document, _ = run(training, changed(training, lambda m, t: t.roll(1, dims=0) if m == 2 else t))
    assert document["lag"] == 0 and document["slot_lags"] == [0, 0, 1]


def test_scale_norm_residual_and_block_order_are_told_apart(training):
    scaled, _ = run(training, changed(training, lambda m, t: t.float() * (2.5 if m == 1 else 1.0)))
    assert scaled["best"] == [0, 2, 15] and scaled["best_cells"][1]["scaled"]
    found = scaled["forensics"][1]
    assert found["how"] == "scaled" and found["weight"] == pytest.approx(2.5, rel=1e-3) and found["error"] < 1e-3

    weight = torch.linspace(0.2, 3.0, 576)

    def normed(m, t):
        t = t.float()
        return t * torch.rsqrt(t.square().mean(-1, keepdim=True) + 1e-5) * weight

    found = run(training, changed(training, normed))[0]["forensics"][2]
    assert found["how"] == "normed" and found["error"] < 1e-3 and found["training_slot"] == 2
    made, bare = changed(training, normed, STATES), changed(training, lambda _, t: t)
    found = run(made, bare)[0]["forensics"][2]  # training holds it after the norm
    assert found["how"] == "raw" and found["error"] < 1e-3 and found["training_slot"] == 2

    bare = [[t[0], t[1].float() - t[0].float(), t[2].float() - t[1].float()] for t in training]
    found = run(training, bare)[0]["forensics"][2]
    assert (found["how"], found["training_slot"], found["missing"]) == ("residual", 2, 1) and found["error"] < 0.01

    halves = changed(training, lambda m, t: torch.cat([t[:, 288:], t[:, :288]], dim=1))
    document, _ = run(training, halves)
    found = document["forensics"][1]
    assert (found["how"], found["order"], found["training_slot"]) == ("blocks", [1, 0], 1)


def test_noise_is_not_systematic_and_drift_has_a_position(training):
    torch.manual_seed(3)

    def noisy(m, t):
        t = t.float()
        return t + 0.1 * t.norm(dim=1, keepdim=True) / 24 * torch.randn_like(t)

    document, _ = run(training, changed(training, noisy))
    assert document["best"] == [0, 2, 15] and not document["best_cells"][0]["noise"]
    assert document["forensics"][2]["systematic"] < 0.02

    def late(m, t):
        return torch.cat([t[:100], noisy(m, t)[100:]]) if len(t) > 100 else t

    found = run(training, changed(training, late))[0]["forensics"][1]["break"]
    assert found["kind"] == "split" and found["position"] == 100 and found["after"] > 0.05 > found["before"]


def test_torn_rows_are_told_by_where_they_stand(training):
    def torn(rows):
        def change(m, t):
            out = t.clone()
            which = rows(len(t))
            out[which] = t.flip(0)[which]
            return out

        return [each["break"] for each in run(training, changed(training, change))[0]["forensics"]]

    for found in torn(lambda n: slice(31, None, 32)):
        assert (found["kind"], found["chunk"], found["places"]) == ("chunk", 32, [31, 31])
    here = torch.Generator().manual_seed(4)
    for found in torn(lambda n: torch.rand(n, generator=here) < 0.15):
        assert found["kind"] == "scattered" and 0.1 < found["share"] < 0.2
    swapped = [*training[:5], training[6], training[5], training[7]]
    n = [min(len(a[0]), len(b[0])) for a, b in zip(training, swapped, strict=True)]
    served = [[t[:m] for t in text[:3]] for text, m in zip(swapped, n, strict=True)]
    for each in run([[t[:m] for t in text] for text, m in zip(training, n, strict=True)], served)[0]["forensics"]:
        assert each["break"]["kind"] == "texts" and each["break"]["texts"] == [5, 6] and each["how"] == "match"


def test_a_fault_shows_through_torn_and_noisy_rows(training):
    torch.manual_seed(5)
    weight = torch.linspace(0.2, 3.0, 576)

    def change(m, t):
        t = t.float()
        normed = t * torch.rsqrt(t.square().mean(-1, keepdim=True) + 1e-5) * weight
        return torch.cat([normed[:60], normed.flip(0)[60:]])

    found = run(training, changed(training, change))[0]["forensics"][2]
    assert (found["how"], found["training_slot"]) == ("normed", 2) and found["break"]["position"] == 60


def test_repeated_rows_are_counted_where_training_does_not_repeat(training):
    def stuck(m, t):
        return torch.cat([t[:50], t[49:50].expand(30, -1), t[80:]]) if m == 1 else t

    assert run(training[:1], changed(training[:1], stuck))[0]["repeated_rows"] == [0, 30, 0]


def test_nothing_aligned_is_no_data(training):
    document, columns = compare(lambda: [], STATES, ["s0"])
    assert document["aligned_tokens"] == 0 and document["best"] == [None]
    assert document["cells"][0]["cosine"] is None and len(columns["position"]) == 0


def test_a_near_tie_is_not_clear():
    near = {"cosine": 0.9, "norm_ratio": 1.0, "training_slot": 0, "training_state": 2}
    assert not best_of([near | {"relative_error": 0.2}, near | {"relative_error": 0.3}])["matches"]
    assert best_of([near | {"relative_error": 0.1}, near | {"relative_error": 0.3}])["matches"]
    assert np.isclose(best_of([near | {"relative_error": 0.1}])["relative_error"], 0.1)
