"""The waterfall: what is lost between two numbers, where the fault is, and that counting rounds is none."""

import pytest

from eagle3dash.charts.theme import FAULT, NEUTRAL
from eagle3dash.charts.waterfall import Stage, waterfall


def story(served=1.07):
    return [
        Stage("expected", "expected", 1.99),
        Stage("training\nper row", "training", 2.02, "training"),
        Stage("training\nper round", "training", 1.75, "counting rounds instead of rows", counting=True),
        Stage("serving\nper round", "serving", 1.07, "other features in serving", fault=True),
        Stage("served", "served", served, "the engine"),
    ]


def losses(chart):
    return {bar.x[0]: bar for bar in chart.figure.data if bar.hovertemplate.startswith("−")}


def test_bars_start_at_one_and_the_axis_ends_at_k_plus_one():
    chart = waterfall(story(), 4)
    assert all(bar.base == 1 for bar in chart.figure.data if bar.x[0] == 0)
    assert chart.figure.data[0].y[0] == pytest.approx(0.99)
    assert list(chart.figure.layout.yaxis.range) == [1, 5]


def test_the_fault_and_the_way_of_counting_look_different():
    found = losses(waterfall(story(), 4))
    assert set(found) == {2, 3}
    assert found[3].y[0] == pytest.approx(0.68)
    assert found[3].marker.line.color == FAULT
    assert found[2].marker.line.color == NEUTRAL
    assert found[2].marker.pattern.shape != found[3].marker.pattern.shape


def test_the_sentence_names_the_drops_and_excuses_the_counting():
    caption = waterfall(story(), 4).caption
    assert "other features in serving costs 0.68" in caption
    assert "counting rounds instead of rows costs 0.27 (a way of counting, no fault)" in caption


def test_a_missing_number_is_no_data_and_no_drop():
    chart = waterfall(story(served=None), 4)
    assert any(note.text == "no data" and note.x == 4 for note in chart.figure.layout.annotations)
    assert 4 not in losses(chart)
    assert chart.rows[4]["accept_length"] is None


def test_numbers_have_their_intervals_and_blocks_are_explained():
    stages = story()
    stages[1] = Stage("training\nper row", "training", 2.02, "training", low=1.33, high=2.72)
    chart = waterfall(stages, 4)
    bar = next(bar for bar in chart.figure.data if bar.x[0] == 1)
    assert bar.error_y.array[0] == pytest.approx(0.70) and bar.error_y.arrayminus[0] == pytest.approx(0.69)
    assert (chart.rows[1]["low"], chart.rows[1]["high"]) == (1.33, 2.72) and chart.rows[0]["low"] is None
    assert "hatched orange: lost by a fault" in chart.caption and "Whiskers: 95 %" in chart.caption
    assert "dotted grey: a way of counting" in chart.caption
