"""Pairing by token ids."""

import numpy as np

from eagle3dash.analysis.align import Pair, align, alignment, common_prefix


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


def test_pairing_is_the_best_prefix_of_a_plain_search():
    rng = np.random.default_rng(2)
    training = [rng.integers(0, 3, rng.integers(5, 12)) for _ in range(40)]
    for _ in range(30):
        ids = rng.integers(0, 3, 9)
        found = align(training, [ids])
        assert (found[0].tokens if found else 0) == max(common_prefix(t, ids) for t in training)


def test_the_first_difference_is_shown_with_its_text():
    training, serving = arrays([1, 2, 3, 4, 5]), arrays([1, 2, 9, 4])
    pairs = align(training, serving)
    found = alignment(training, serving, pairs, [np.array([0, 0, 0, 1, 1])], text=list("abcdefghij"))
    assert found["aligned_tokens"] == 2 and found["compared_tokens"] == 4 and found["differ_in_prompt"] == 1
    first = found["first_difference"]
    assert first["position"] == 2 and first["training_text"] == "bcdef" and first["serving_text"] == "bcje"
    late = alignment(training, serving, pairs, [np.array([0, 1, 1, 1, 1])])
    assert late["differ_in_prompt"] == 0 and late["prompt_known"]
    assert not alignment(training, serving, pairs)["prompt_known"]


def test_nothing_in_common_is_told():
    training, serving = arrays([1, 2]), arrays([3, 4])
    found = alignment(training, serving, align(training, serving))
    assert found["aligned_tokens"] == 0 and found["unpaired_serving"] == [0]
    assert found["first_difference"]["serving_ids"] == [3, 4]
    assert alignment(training, training, align(training, training))["first_difference"] is None
