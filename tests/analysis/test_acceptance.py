"""Counts, walks, ratios and intervals against small cases worked out by hand and against a plain loop."""

import numpy as np
import pytest

from eagle3dash.analysis import acceptance as acc
from eagle3dash.analysis.intervals import blocks, interval, student


def plain_walk(accepted, counted):
    """Section 5 in the words of its definition, row by row."""
    visited, inside = [], False
    for t, counts in enumerate(counted):
        if not counts:
            inside = False
            continue
        if not inside:
            inside, start = True, t
        if t == start:
            visited.append(t)
            start = t + accepted[t] + 1
    return visited


def test_a_row_counts_when_its_chain_and_its_first_label_do():
    assert acc.countable(8, 3).tolist() == [True] * 4 + [False] * 4  # t + 4 <= 7
    mask = [0, 0, 0, 1, 1, 0, 1, 1]
    assert acc.countable(8, 3, np.array(mask, dtype=np.uint8)).tolist() == [False, True, True, False] + [False] * 4
    assert not acc.countable(4, 3).any() and acc.countable(5, 3).sum() == 1
    assert acc.countable(0, 3).tolist() == []


def test_a_round_starts_behind_the_bonus_token_of_the_one_before():
    right = np.array([[1, 1, 0, 1, 0, 1, 1, 0], [1, 0, 1, 1, 0, 1, 0, 0]], dtype=bool)
    counted = np.array([1, 1, 1, 1, 0, 1, 1, 0], dtype=bool)
    counts, visited, accepted = acc.count(right, counted, np.ones(11, dtype=bool))
    assert accepted.tolist() == [2, 1, 0, 2, 0, 2, 1, 0]
    assert np.flatnonzero(visited).tolist() == [0, 3, 5]  # the second run starts anew at 5
    assert counts.histogram == (0, 0, 3) and counts.row_histogram == (1, 2, 3)
    assert counts.step_right == (5, 4) and counts.rounds == 3 and counts.rows == 6


def test_the_walk_equals_a_plain_loop_on_random_rows():
    rng = np.random.default_rng(5)
    for _ in range(50):
        accepted, counted = rng.integers(0, 5, 90), rng.random(90) < 0.8
        assert np.flatnonzero(acc.visit(accepted, counted)).tolist() == plain_walk(accepted, counted)


def test_coverage_looks_at_the_labels_of_the_steps():
    known = np.array([0, 0, 1, 0, 1, 1], dtype=bool)
    counts, _, _ = acc.count(np.zeros((2, 6), dtype=bool), acc.countable(6, 2), known)
    # rows 0, 1, 2 have labels (2, 3), (3, 4), (4, 5)
    assert counts.in_vocab == 4 and acc.replay_json([0], counts)["coverage"] == 4 / 6


def test_ratios():
    histogram = [4, 3, 2, 1]
    assert acc.accept_length(histogram) == 2.0
    assert acc.survival(histogram) == [0.6, 0.3, 0.1]
    assert acc.alpha(histogram) == pytest.approx([0.6, 0.5, 1 / 3])
    assert acc.accept_length(histogram) == pytest.approx(1 + sum(acc.survival(histogram)))
    assert acc.alpha_of(acc.survival(histogram)) == pytest.approx(acc.alpha(histogram))
    assert acc.alpha([5, 0, 0]) == [0.0, None]


def test_no_rows_is_no_data_and_not_zero():
    answer = acc.replay_json(["s0"], acc.empty(2))
    assert answer["rows"] == answer["rounds"] == 0
    for key in ("accept_length", "row_accept_length", "low", "coverage"):
        assert answer[key] is None
    assert answer["survival"] == answer["step_accuracy"] == [None, None]


def test_sequences_pool_to_the_sum_of_their_counts():
    rng = np.random.default_rng(7)
    tally, parts = acc.Tally(3), []
    for tokens in (40, 3, 75):
        right, counted = rng.random((3, tokens)) < 0.6, acc.countable(tokens, 3)
        tally.add(right, counted, np.ones(tokens, bool))
        parts.append(acc.count(right, counted, np.ones(tokens, bool))[0])
    assert tally.counts == acc.merge(parts)
    answer = tally.document([0, 2, 15])
    assert answer["rows"] == 36 + 71 == sum(answer["row_histogram"])
    assert 1 <= answer["low"] <= answer["accept_length"] <= answer["high"] <= 4
    assert answer["small_sample"] is True
    with pytest.raises(ValueError, match="same number of steps"):
        acc.merge([acc.empty(2), acc.empty(3)])


def test_the_interval_covers_the_mean_of_correlated_rows():
    """200 texts of rows with a random level every 16 rows: a 95 % interval must miss about one time in twenty."""
    rng, missed, naive_missed = np.random.default_rng(11), 0, 0
    for _ in range(200):
        level = np.repeat(rng.random(64), 16)  # mean 0.5, 1024 rows
        rows = (rng.random(1024) < level).astype(float)
        found = interval(blocks(rows, np.ones(1024, bool)))
        missed += not found.low <= 0.5 <= found.high
        naive_missed += abs(rows.mean() - 0.5) > 1.96 * rows.std() / 32
    assert 2 <= missed <= 24  # 10 expected
    assert naive_missed > 2 * missed  # what taking rows as independent would do


def test_interval_of_few_or_constant_rows_claims_no_certainty():
    assert interval(np.zeros((0, 3))).mean is None
    constant = interval(blocks(np.zeros(400), np.ones(400, bool))).shifted(1.0, 5.0)
    assert constant.mean == constant.low == 1.0 and constant.high > 1.0 and not constant.small
    one = interval(blocks(np.ones(10), np.ones(10, bool))).shifted(1.0, 5.0)
    assert (one.low, one.high) == (1.0, 5.0) and one.small


def test_sequences_are_the_clusters_where_they_differ_more_than_blocks():
    parts = [blocks(np.full(320, float(i % 2)), np.ones(320, bool), i) for i in range(10)]
    found = interval(np.concatenate(parts))
    assert "10 sequences" in found.method and found.high - found.low > 0.6


def test_student():
    for df, exact in ((1, 12.706), (4, 2.776), (7, 2.365), (30, 2.042), (1000, 1.962)):
        assert student(df) == pytest.approx(exact, rel=5e-3)
