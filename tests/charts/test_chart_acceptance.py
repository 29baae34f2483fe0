"""Acceptance charts: bars and lines hold the given numbers, on the axis 1 .. K+1, with a sentence about these data."""

import csv
import io

import pytest

from eagle3dash.charts.acceptance import Series, by_position, by_role, histogram, over_time
from eagle3dash.charts.theme import ROLES

REPLAY = {
    "accept_length": 2.0, "rounds": 100, "histogram": [40, 30, 20, 10, 0],
    "survival": [0.6, 0.3, 0.1, 0.0], "alpha": [0.6, 0.5, 1 / 3, None],
}  # fmt: skip
NO_ROUNDS = {"accept_length": 1.5, "rounds": None, "histogram": None, "survival": None, "alpha": None}


def test_histogram_counts_the_bonus_token_and_shares_sum_to_one():
    chart = histogram([by_role("training", REPLAY)], 4)
    bar = chart.figure.data[0]
    assert list(bar.x) == [1, 2, 3, 4, 5]
    assert sum(bar.y) == pytest.approx(1)
    assert list(bar.customdata) == REPLAY["histogram"]
    assert list(chart.figure.layout.xaxis.range) == [0.5, 5.5]
    assert "bonus token included" in chart.figure.layout.xaxis.title.text


def test_histogram_caption_speaks_of_these_numbers():
    chart = histogram([by_role("training", REPLAY), by_role("served", NO_ROUNDS)], 4)
    assert "2.00 tokens a round over 100 rounds" in chart.caption
    assert "40.0 % kept only the bonus token" in chart.caption
    assert "Served: 1.50 on average; its source holds no single rounds." in chart.caption
    assert chart.caption in chart.alt


def test_no_source_says_no_data_instead_of_drawing_zeros():
    chart = histogram([by_role("served", NO_ROUNDS)], 4)
    assert not chart.figure.data
    assert "no data" in chart.figure.layout.annotations[0].text


def test_csv_holds_every_drawn_number():
    rows = list(csv.DictReader(io.StringIO(histogram([by_role("served", REPLAY)], 4).csv())))
    assert [int(row["rounds"]) for row in rows] == REPLAY["histogram"]
    assert [int(row["accept_length"]) for row in rows] == [1, 2, 3, 4, 5]


def test_position_without_data_is_a_gap():
    chart = by_position([by_role("training", REPLAY)], 4, "alpha")
    assert list(chart.figure.data[0].y) == [0.6, 0.5, 1 / 3, None]
    assert chart.figure.data[0].connectgaps is False
    assert "60.0 % at position 0, 33.3 % at position 2" in chart.caption


def test_over_time_uses_times_only_when_all_lines_have_one():
    timed = [
        {"line": 1, "time": "2026-01-01 10:00:00", "accept_length": 2.0},
        {"line": 5, "time": None, "accept_length": 3.0},
    ]
    chart = over_time(timed, 4, [by_role("serving", REPLAY)])
    assert list(chart.figure.data[0].x) == [1, 5]
    assert list(chart.figure.layout.yaxis.range) == [1, 5]
    assert chart.figure.layout.shapes[0].y0 == 2.0
    assert chart.figure.layout.shapes[0].line.color == ROLES["serving"].colour


def test_requests_are_not_called_windows():
    points = [{"line": i, "time": None, "accept_length": 1.0 + i / 100, "windows": 1} for i in range(1, 51)]
    chart = over_time(points, 4, of="request")
    assert chart.figure.layout.title.text == "Served accept length of each request"
    assert chart.figure.data[0].name == "served, a request"
    assert "50 requests between 1.01 and 1.50" in chart.caption and "window" not in chart.caption + chart.alt
    pooled = over_time([{**point, "windows": 4} for point in points], 4)
    assert "200 windows, drawn as 50 points, between 1.01" in pooled.caption


def test_names_from_files_are_no_markup():
    evil = Series('<a href="http://x">win</a><b>', ROLES["served"], REPLAY)
    for chart in (histogram([evil], 4), by_position([evil], 4)):
        assert "<a" not in chart.figure.data[0].name
        assert "<a" not in chart.figure.data[0].hovertemplate


def test_csv_does_not_start_a_formula():
    text = histogram([Series("=HYPERLINK(1)", ROLES["served"], REPLAY)], 4).csv()
    assert "\n=HYPER" not in text
    assert "'=HYPERLINK(1)" in text
