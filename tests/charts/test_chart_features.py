"""The heatmap of states and its course: best matches outlined and said in words, fixed scales."""

import pytest

from eagle3dash.charts.features import heatmap, over_position


def cell(n, m, cosine, error, ratio=1.0):
    return {
        "training_state": (0, 2, 15)[n], "training_slot": n, "serving_slot": m, "serving_state": (2, 15)[m],
        "cosine": cosine, "relative_error": error, "norm_ratio": ratio,
    }  # fmt: skip


@pytest.fixture
def document():
    errors = [[1.2, 1.1], [0.01, 0.9], [0.8, 0.02]]
    cells = [cell(n, m, 1 - errors[n][m] / 2, errors[n][m], 2.0) for n in range(3) for m in range(2)]
    best = [{**cell(1, 0, 0.995, 0.01), "matches": True}, {**cell(2, 1, 0.99, 0.02), "matches": False}]
    return {
        "cells": cells,
        "best_cells": best,
        "aligned_tokens": 1234,
        "training_states": [0, 2, 15],
        "serving_states": [2, 15],
    }


def test_cells_hold_values_and_the_best_match_is_outlined(document):
    chart = heatmap(document, "cosine")
    trace = chart.figure.data[0]
    assert trace.z[1][0] == pytest.approx(0.995)
    assert trace.text[1][0] == "★ 0.995"
    assert trace.text[2][1] == "0.990"  # the nearest, but it does not match
    boxes = {(shape.x0, shape.y0) for shape in chart.figure.layout.shapes}
    assert boxes == {(-0.47, 0.55)}


def test_caption_says_what_each_slot_holds(document):
    caption = heatmap(document, "cosine").caption
    assert "slot 0 holds HF[2]" in caption
    assert "slot 1 holds none of them (nearest HF[15]" in caption
    assert "1,234 aligned tokens" in caption


def test_norm_ratio_is_drawn_on_a_scale_even_around_one(document):
    trace = heatmap(document, "norm_ratio").figure.data[0]
    assert trace.z[0][0] == pytest.approx(1.0)  # log2 of 2
    assert (trace.zmin, trace.zmax) == (-3, 3)
    assert trace.text[0][0] == "2.000"


def test_a_cell_without_a_number_says_so(document):
    document["cells"][0] = {**document["cells"][0], "cosine": None}
    trace = heatmap(document, "cosine").figure.data[0]
    assert trace.z[0][0] is None
    assert trace.text[0][0] == "no data"


def test_course_names_its_worst_position():
    points = [
        {"pair": "slot 0 with HF[2]", "position": p, "value": v, "tokens": 8} for p, v in ((0, 0.99), (50, 0.2), (99, 0.98))
    ]
    chart = over_position(points, "cosine")
    assert "between 0.200 and 0.990, worst at position 50" in chart.caption
    assert list(chart.figure.data[0].customdata) == [8, 8, 8]


def test_where_states_change_is_marked_and_said():
    points = [{"pair": "slot 0 with HF[2]", "position": p, "value": 0.9, "tokens": 8} for p in range(0, 100, 10)]
    split, chunk = {"kind": "split", "position": 48}, {"kind": "chunk", "chunk": 32, "places": [0, 3]}
    chart = over_position(points, "cosine", [split, None, chunk, {"kind": "scattered"}])
    assert [line["x0"] for line in chart.figure.layout.shapes] == [48, 32, 64]
    assert "change at position 48" in chart.caption
    assert "every 32 tokens" in chart.caption
    assert not over_position(points, "cosine").figure.layout.shapes
