"""Choices, sampling and ranking."""

import numpy as np
import pytest

from eagle3dash.analysis import sweep
from eagle3dash.analysis.acceptance import Tally, countable
from eagle3dash.errors import BadInput


def tally(rate, tokens=600, seed=0):
    made = Tally(3)
    right = np.random.default_rng(seed).random((3, tokens)) < rate
    made.add(right, countable(tokens, 3), np.ones(tokens, bool))
    return made


def test_choices_are_ordered_and_without_repetition():
    found = sweep.combinations(4, 3)
    assert len(found) == 24 and found[0] == (0, 1, 2) and (2, 1, 0) in found and all(len(set(c)) == 3 for c in found)
    with pytest.raises(BadInput, match="holds 2"):
        sweep.combinations(2, 3)
    with pytest.raises(BadInput, match="limit"):
        sweep.combinations(62, 3)


def test_a_sample_is_spread_and_a_small_capture_is_taken_whole():
    assert sweep.sample([100] * 10, 600) == list(range(10))
    spread = sweep.sample([100] * 1000, 500)
    assert len(spread) == 5 and spread == [0, 200, 400, 600, 800]
    assert sweep.sample([10**6, 10**6], 500) == [0]


def test_only_those_that_may_be_best_are_finished():
    tallies = {(0, 1): tally(0.8, seed=1), (1, 0): tally(0.8, seed=2), (0, 2): tally(0.2, seed=3), (2, 0): tally(0.1)}
    assert set(sweep.contenders(tallies)) == {(0, 1), (1, 0)}
    assert sweep.contenders(tallies, always=[(2, 0), (0, 1), (9, 9)])[-1] == (2, 0)
    assert sweep.contenders({}) == []


def test_the_document_ranks_best_first_and_says_what_is_exact():
    tallies = {(0, 1): tally(0.3), (1, 0): tally(0.7), (2, 1): Tally(3)}
    rows = sweep.document("training", [0, 2, 15], tallies, {(1, 0)}, 3)["rows"]
    assert [row["states"] for row in rows] == [[2, 0], [0, 2], [15, 2]]
    assert rows[0]["exact"] and rows[0]["rounds"] < rows[0]["rows"] == 596 and 1 < rows[0]["accept_length"] < 4
    assert rows[0]["low"] < rows[0]["row_accept_length"] < rows[0]["high"]
    assert rows[1]["accept_length"] is None and rows[1]["rounds"] is None
    assert rows[2]["row_accept_length"] is None and rows[2]["behind"] is None  # no rows: no data
    assert rows[0]["behind"]["mean"] == 0 and rows[1]["behind"]["low"] > 0


def test_of_two_that_accept_alike_the_likelier_is_as_good_alone():
    """The second is ahead in tokens by chance; the first makes the text's own tokens likelier nearly everywhere."""
    rng, tallies = np.random.default_rng(9), {(0, 1): Tally(2), (1, 0): Tally(2), (2, 0): Tally(2)}
    base = rng.normal(-2.0, 1.0, 900)
    for choice, rate, shift in (((0, 1), 0.60, 0.0), ((1, 0), 0.61, -0.3), ((2, 0), 0.1, -4.0)):
        right, logprob = rng.random((2, 900)) < rate, base + shift + rng.normal(0.0, 0.1, 900)
        tallies[choice].add(right, countable(900, 2), np.ones(900, bool), logprob)
    rows = sweep.document("training", [0, 2, 15], tallies, set(tallies), 2)["rows"]
    assert rows[0]["states"] == [2, 0] and rows[1]["behind"]["low"] < 0 < rows[1]["behind"]["mean"]
    assert [row["states"] for row in sweep.as_good(rows)] == [[0, 2]]
    assert rows[0]["less_likely"]["low"] > 0.2 and rows[1]["less_likely"]["mean"] == 0.0
    assert rows[1]["log_likelihood"] == pytest.approx(-2.0, abs=0.1)


def test_without_a_likelihood_those_that_accept_alike_are_all_as_good():
    rows = sweep.document("training", [0, 2], {(0, 1): tally(0.6), (1, 0): tally(0.6, seed=1)}, set(), 3)["rows"]
    assert len(sweep.as_good(rows)) == 2 and rows[0]["log_likelihood"] is None


def test_pairing_on_the_same_rows_sees_what_single_intervals_hide():
    """Texts of very different ease; one choice is a little worse on all of them."""
    rng, better, worse = np.random.default_rng(4), Tally(3), Tally(3)
    for ease in np.linspace(0.05, 0.95, 10):
        right = rng.random((3, 300)) < ease
        for made, keep in ((better, 1.0), (worse, 0.8)):
            made.add(right & (rng.random(right.shape) < keep), countable(300, 3), np.ones(300, bool))
    assert worse.row_interval.high > better.row_interval.low
    assert better.ahead_of(worse).low > 0
    assert sweep.contenders({(0,): better, (1,): worse}) == [(0,)]
    with pytest.raises(ValueError, match="same rows"):
        better.ahead_of(tally(0.5))
