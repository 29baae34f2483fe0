"""What a slot holds and whether that is what training fed, said in words; on states made here, with faults put in."""

import re

import numpy as np
import pytest
import torch

from eagle3dash.analysis.align import align, alignment
from eagle3dash.analysis.behind import behind
from eagle3dash.analysis.features import compare
from eagle3dash.analysis.held import enough, held, rows_of, verdict
from eagle3dash.analysis.pairs import Aligned

STATES, WIDTH, ROWS = [0, 2, 15, 27], 96, 200


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def training():
    draw = torch.Generator().manual_seed(0)
    return [[torch.randn(ROWS, WIDTH, generator=draw) for _ in STATES] for _ in range(4)]


def document(training, change=lambda m, x: x, fed=(0, 1, 2)):
    """The features document of these captures, the texts the same."""
    draw = torch.Generator().manual_seed(1)

    def served(states):
        every = [states[n] + 0.01 * torch.randn(ROWS, WIDTH, generator=draw) for n in fed]
        return [change(m, x) for m, x in enumerate(every)]

    pairs = [Aligned(i, ROWS, t, served(t)) for i, t in enumerate(training)]
    found, _ = compare(lambda: iter(pairs), STATES, [STATES[n] for n in fed])
    ids = [np.arange(ROWS) + i for i in range(len(training))]
    return found | {"alignment": alignment(ids, ids, align(ids, ids))}


def said(found, trained=(0, 2, 15)):
    return verdict(found, held(found, None, trained), trained, "as measured")


def test_equal_states_are_a_yes(training):
    level, sentence = said(document(training))
    assert level == "success" and sentence.startswith("Yes. Training fed HF[0], HF[2], HF[15] (as measured)")
    assert "equal to within 1.0%" in sentence
    assert all(each.right for each in held(document(training), None, (0, 2, 15)))


def test_other_states_are_a_no_that_names_both(training):
    level, sentence = said(document(training, fed=(1, 2, 3)))
    assert (level, sentence) == (
        "error",
        "No. Training fed HF[0], HF[2], HF[15] (as measured); the server feeds HF[2], HF[15], HF[27].",
    )


def test_reordered_blocks_are_the_same_state(training):
    found = document(training, lambda m, x: torch.cat(list(x.chunk(4, -1))[::-1], -1))
    level, sentence = said(found)
    assert level == "error" and "feeds the same states, but every slot is in another order of the blocks" in sentence
    assert "(3, 2, 1, 0)" in sentence
    assert [each.state for each in held(found)] == [0, 2, 15]


def test_one_slot_after_a_norm_is_named(training):
    weight = torch.linspace(0.2, 3.0, WIDTH)

    def normed(m, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True)) * weight if m == 2 else x

    found = document(training, normed)
    assert "but slot 2 (HF[15]) is served after a norm." in said(found)[1]
    own = next(cell for cell in found["cells"] if (cell["training_state"], cell["serving_slot"]) == (15, 2))
    assert held(found)[2].numbers["cosine"] == own["cosine"]  # of the state it holds, whatever is nearest
    curve = found["tests"][2]["channels"]
    assert curve["of"] == "weight of a norm" and curve["channels"] == WIDTH
    assert curve["percentiles"] == pytest.approx(np.linspace(0.2, 3.0, 101), rel=0.05)
    flat = found["tests"][0]["channels"]
    assert flat["of"] == "serving / training" and np.allclose(flat["percentiles"], 1.0, atol=0.01)
    left = found["tests"][2]["left"]
    assert min(left, key=left.get) == "normed" and left["match"] > 10 * left["normed"]


def test_shifts_and_torn_rows_are_told_with_their_places(training):
    assert "every slot is shifted by +1 token." in said(document(training, lambda m, x: x.roll(1, 0)))[1]

    def torn(m, x):
        out = x.clone()
        out[31::32] = x.flip(0)[31::32]
        return out

    found = document(training, torn)
    assert "every slot is wrong at place 31 of every 32 tokens." in said(found)[1]
    assert {one["position"] % 32 for one in found["worst"]} == {31} and found["worst"][0]["relative_error"] > 1


def test_without_what_training_fed_no_verdict_is_given(training):
    level, sentence = said(document(training), trained=None)
    assert (level, sentence) == ("info", "What training fed is not known here. The server feeds HF[0], HF[2], HF[15].")


def test_different_texts_are_said_first(training):
    found = document(training)
    ids = [np.concatenate([[1, 2, 3], np.arange(100, 117), np.arange(200, 300) + i]) for i in range(4)]
    others = [np.concatenate([x[:3], [7, 8, 9, 10, 11], x[20:]]) for x in ids]
    told = alignment(ids, others, align(ids, others))
    few = found | {"aligned_tokens": 12, "alignment": told, "forensics": [{"how": "unknown", "rows": 0}] * 3}
    assert not enough(few) and held(few) == []
    level, sentence = said(few)
    assert level == "error" and sentence.startswith("It can't be said. The captures hold different texts (")
    assert "17 tokens at position 3 in training, 5 in serving): only 12 of 432 serving tokens stand behind" in sentence
    assert sentence.endswith("too few to compare.")
    assert said(found | {"alignment": told})[0] == "warning"
    cut = [x[1:] for x in ids]
    none = few | {"aligned_tokens": 0, "alignment": alignment(ids, cut, align(ids, cut))}
    assert "texts (the first token (BOS) is missing in serving): none of the 476 serving tokens" in said(none)[1]
    apart = [np.concatenate([x[:60], x[60:] + 500]) for x in ids]
    answers = alignment(ids, apart, align(ids, apart), [np.r_[np.zeros(40, int), np.ones(80, int)]] * 4)
    level, sentence = said(found | {"alignment": answers})
    assert level == "success" and "The answers part ways, which is no fault: only 240 of 480" in sentence


def test_rows_on_another_prefix_tell_which_state_and_no_more(training):
    draw = torch.Generator().manual_seed(3)

    def tails(states, noise):
        for i, t in enumerate(training):
            served = [t[n] + noise * torch.randn(ROWS, WIDTH, generator=draw) for n in states]
            yield Aligned(i, ROWS, t, served)

    found = behind(tails((1, 2, 3), 0.3), STATES, ["s0", "s1", "s2"])
    assert [slot["state"] for slot in found["slots"]] == [2, 15, 27] and found["tokens"] == 4 * (ROWS - 4)
    assert found["slots"][0]["relative_error"] == pytest.approx(0.3, rel=0.05)
    assert [slot["state"] for slot in behind(tails((1, 2), 2.0), STATES, ["s0", "s1"])["slots"]] == [None, None]
    assert behind([], STATES, ["s0"]) is None
    few = document(training) | {"aligned_tokens": 0, "forensics": [], "behind": found}
    told = "By 784 rows of the same tokens on another prefix, the slots look like HF[2], HF[15], HF[27]."
    assert said(few)[1].endswith(told)


def test_noise_is_told_once_with_its_size_in_every_slot(training):
    draw = torch.Generator().manual_seed(2)
    found = document(training, lambda m, x: x + 0.15 * torch.randn(x.shape, generator=draw))
    assert [each.how for each in held(found)] == ["noisy"] * 3
    assert re.search(
        r"but equal only to within 1\d\.\d% \(slot 0\), 1\d\.\d% \(slot 1\), 1\d\.\d% \(slot 2\): more", said(found)[1]
    )


def test_the_evidence_of_slots_is_a_table_without_inner_numbers():
    slot = {"slot": 2, "state": 15, "how": "normed", "relative_error": 0.98, "systematic": 0.4, "levels": 1.0, "lean": 2.0}
    slot |= {"break": {"kind": "split", "position": 100, "before": 0.01, "after": 1.0}, "share": 0.5, "order": None}
    torn = {"slot": 0, "kind": "chunk", "chunk": 32, "places": [0, 3], "share": 0.1, "wrong_rows": 40}
    assert rows_of([slot, torn]) == [
        {
            "slot": "2",
            "holds": "HF[15]",
            "how": "after a norm",
            "relative error": "0.9800",
            "rows right": "50.0%",
            "wrong rows": "from position 100 on",
        },
        {
            "slot": "0",
            "holds": "",
            "how": "",
            "relative error": "",
            "rows right": "",
            "wrong rows": "at places 0 to 3 of every 32 tokens",
        },
    ]
