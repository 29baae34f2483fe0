"""Pairing by token ids."""

import re

import numpy as np
import pytest

from eagle3dash.analysis.align import Pair, align, alignment, common_prefix
from eagle3dash.analysis.difference import first_difference


def arrays(*lists):
    return [np.array(ids) for ids in lists]


def test_equal_sequences_pair_whatever_their_order():
    training, serving = arrays([1, 2, 3], [4, 5], [1, 2, 3]), arrays([4, 5], [1, 2, 3])
    assert align(training, serving) == [Pair(1, 0, 2, True), Pair(0, 1, 3, True)]


def test_the_longest_common_prefix_wins_and_each_is_used_once():
    training = arrays([1, 2, 3, 4, 5], [1, 2, 9, 9], [7, 7])
    serving = arrays([1, 2, 3, 8], [1, 2, 9, 9, 9], [1, 2, 3, 4], [6])
    assert align(training, serving) == [Pair(1, 1, 4, True), Pair(0, 2, 4, True)]
    assert align(training, serving[:1]) == [Pair(0, 0, 3, False)]


def test_pairing_is_no_worse_than_a_plain_search_by_beginning_or_end():
    rng = np.random.default_rng(2)
    training = [rng.integers(0, 3, rng.integers(5, 12)) for _ in range(40)]
    for _ in range(30):
        ids = rng.integers(0, 3, 7)  # no run long enough to tell by itself
        (found,) = align(training, [ids])
        assert found.tokens == common_prefix(training[found.training], ids)
        plain = [max(common_prefix(t, ids), common_prefix(t[::-1], ids[::-1])) for t in training]
        assert found.tokens + found.after >= max(plain)


def chats(seed=0, count=6):
    """(prompt, answer) of texts behind one head; ids of ten and more are text."""
    rng = np.random.default_rng(seed)
    return [(rng.integers(10, 400, 30).tolist(), rng.integers(10, 400, 60).tolist()) for _ in range(count)]


HEAD, OTHER, TURN, END = [1, 5, 6], [7, 8], [2, 3], [2, 4]


def test_texts_behind_another_head_find_their_own_partner():
    texts = chats()
    training = [np.array([*HEAD, *range(400, 417), *TURN, *p, *TURN, *a, *END]) for p, a in texts]
    serving = [np.array([*HEAD, *range(500, 505), *TURN, *p, *TURN, *a, *END]) for p, a in reversed(texts)]
    pairs = align(training, serving)
    assert [(p.training, p.tokens, p.same) for p in pairs] == [(i, 3, False) for i in (5, 4, 3, 2, 1, 0)]
    assert {p.after for p in pairs} == {2 + 30 + 2 + 60 + 2}
    found = alignment(training, serving, pairs)
    assert found["same_ends"] == 6 and found["tokens_behind"] == 6 * 96 and found["aligned_tokens"] == 18
    first = found["first_difference"]
    assert (first["position"], first["training_span"], first["serving_span"]) == (3, [3, 20], [3, 8])


def test_other_answers_behind_another_head_are_paired_by_their_prompts():
    texts, others = chats(), chats(seed=1)
    training = [np.array([*HEAD, *p, *TURN, *a, *END]) for p, a in texts]
    serving = [np.array([*HEAD, *OTHER, *p, *TURN, *a, *END]) for (p, _), (_, a) in zip(texts, others, strict=True)]
    pairs = align(training, serving[::-1])
    assert [(p.training, p.tokens, p.after) for p in pairs] == [(i, 3, 2) for i in (5, 4, 3, 2, 1, 0)]
    first = alignment(training, serving, align(training, serving))["first_difference"]
    assert (first["training_tokens"], first["serving_tokens"]) == (0, 2)  # and not all that follows


def test_a_missing_first_token_is_told():
    training = [np.array([*HEAD, *p, *TURN, *a]) for p, a in chats()]
    cut, twice = [ids[1:] for ids in training], [np.concatenate([[1], ids]) for ids in training]
    pairs = align(training, cut)
    assert [(p.training, p.tokens) for p in pairs] == [(i, 0) for i in range(6)]
    told = alignment(training, cut, pairs)
    assert told["first_difference"]["what"] == "the first token (BOS) is missing in serving" and told["same_ends"] == 6
    back = alignment(cut, training, align(cut, training), decode=lambda ids: "".join("<s>" if i == 1 else "x" for i in ids))
    assert back["first_difference"]["what"] == "the first token (BOS: <s>) is missing in training"
    again = alignment(training, twice, align(training, twice))["first_difference"]
    assert again["what"] == "the first token (BOS) stands twice in serving"


def letters(ids):
    return "".join("abcdefghij"[i] for i in ids)


def test_the_first_difference_is_shown_with_its_text():
    training, serving = arrays([1, 2, 3, 4, 5]), arrays([1, 2, 9, 4])
    pairs = align(training, serving)
    found = alignment(training, serving, pairs, [np.array([0, 0, 0, 1, 1])], letters)
    assert found["aligned_tokens"] == 2 and found["compared_tokens"] == 4 and found["differ_in_prompt"] == 1
    first = found["first_difference"]
    assert first["position"] == 2 and first["training_text"] == "bc⟦def⟧" and first["serving_text"] == "bc⟦je⟧"
    assert first["training_parts"] == ["bc", "def", ""]
    late = alignment(training, serving, pairs, [np.array([0, 1, 1, 1, 1])])
    assert late["differ_in_prompt"] == 0 and late["prompt_known"] and late["first_difference"]["what"] == "answer"
    assert not alignment(training, serving, pairs)["prompt_known"]


@pytest.mark.parametrize(
    "training, serving, what",
    [
        ("<|im_start|>system\nYou are A.<|im_end|>", "<|im_start|>system\nBe brief, please.<|im_end|>", "system prompt"),
        ("<|start|>user\nHi there", "<|start|>system\nBe brief.<|end|><|start|>user\nHi there", "system prompt"),
        ("<|im_start|>system\nYou are A.<|im_end|>", "<|im_start|>system\nBe brief, please.", "system prompt"),
        ("<|im_start|>user\nHi.<|im_end|>", "<|im_start|>user\nLo.<|im_end|>", "prompt"),
        ("<|im_start|>assistant\nSo it is.", "<|im_start|>assistant\n<think>\n</think>So it is.", "thinking mode"),
        ("<|im_start|>user\nHi there.", "<|user|>Hi there.", "chat template"),
    ],
)
def test_the_part_that_differs_is_named(training, serving, what):
    tokens = [re.findall(r"<[^>]+>|(?s:.)", text) for text in (training, serving)]
    words = sorted({*tokens[0], *tokens[1]})
    a, b = (np.array([words.index(token) for token in text]) for text in tokens)
    found = first_difference(a, b, common_prefix(a, b), decode=lambda ids: "".join(words[i] for i in ids))
    assert found["what"] == what
    assert "\n" not in found["training_text"]


def test_nothing_in_common_is_told():
    training, serving = arrays([1, 2]), arrays([3, 4])
    found = alignment(training, serving, align(training, serving))
    assert found["aligned_tokens"] == 0 and found["unpaired_serving"] == [0]
    assert found["first_difference"]["serving_ids"] == [3, 4]
    assert alignment(training, training, align(training, training))["first_difference"] is None
