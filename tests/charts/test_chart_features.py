"""The heatmap of states and its course: what slots hold and what training fed marked and said, fixed scales."""

import pytest

from eagle3dash.analysis.held import Held
from eagle3dash.charts.features import INK, depth, heatmap, over_position

CHUNK = {"kind": "chunk", "chunk": 32, "places": [31, 31]}


def cell(n, m, cosine, error, ratio=1.0):
    return {
        "training_state": (0, 2, 15)[n], "training_slot": n, "serving_slot": m, "serving_state": (2, 15)[m],
        "cosine": cosine, "relative_error": error, "norm_ratio": ratio,
    }  # fmt: skip


def slot(m, state, trained=None, how="match", **numbers):
    return Held(m, (2, 15)[m], m, state, trained, how, 0, 0, numbers)


@pytest.fixture
def document():
    errors = [[1.2, 1.1], [0.01, 0.9], [0.8, 0.02]]
    cells = [cell(n, m, 1 - errors[n][m] / 2, errors[n][m], 2.0) for n in range(3) for m in range(2)]
    best = [cell(1, 0, 0.995, 0.01), cell(2, 1, 0.99, 0.02)]
    return {
        "cells": cells,
        "best_cells": best,
        "aligned_tokens": 1234,
        "training_states": [0, 2, 15],
        "serving_states": [2, 15],
    }


def test_what_a_slot_holds_and_what_training_fed_are_marked(document):
    chart = heatmap(document, "cosine", [slot(0, 2, 0), slot(1, None, 15, "unknown")])
    trace = chart.figure.data[0]
    assert trace.z[1][0] == pytest.approx(0.995)
    assert [row[0] for row in trace.text] == ["◆ 0.400", "★ 0.995", "0.600"]
    assert trace.text[2][1] == "◆ 0.990"  # the nearest, but the slot does not hold it
    assert list(chart.figure.layout.yaxis.ticktext) == ["HF[0] ◆", "HF[2]", "HF[15] ◆"]
    boxes = {(s.x0, s.y0): s.line.dash for s in chart.figure.layout.shapes if s.line.color == INK}
    assert boxes == {(-0.49, -0.46): "dot", (-0.49, 0.54): "solid", (0.51, 1.54): "dot"}
    assert [row["held"] for row in chart.rows] == [False, False, True, False, False, False]


def test_caption_says_what_each_slot_holds(document):
    caption = heatmap(document, "cosine", [slot(0, 2), slot(1, None, how="unknown")]).caption
    assert "slot 0 holds HF[2]" in caption
    assert "slot 1 holds none of them (nearest HF[15]" in caption
    assert "1,234 aligned tokens" in caption
    moved = heatmap(document, "cosine", [slot(0, 2, how="blocks", order=[1, 0])]).caption
    assert "slot 0 holds HF[2], in another order of the blocks of its width (1, 0)" in moved
    assert "Too few tokens to tell" in heatmap(document, "cosine", []).caption


def test_norm_ratio_is_drawn_on_a_scale_even_around_one(document):
    trace = heatmap(document, "norm_ratio", []).figure.data[0]
    assert trace.z[0][0] == pytest.approx(1.0)  # log2 of 2
    assert (trace.zmin, trace.zmax) == (-3, 3)
    assert trace.text[0][0] == "2.000"


def test_a_cell_without_a_number_says_so(document):
    document["cells"][0] = {**document["cells"][0], "cosine": None}
    trace = heatmap(document, "cosine", []).figure.data[0]
    assert trace.z[0][0] is None
    assert trace.text[0][0] == "no data"


@pytest.mark.parametrize("quantity", ["cosine", "relative_error", "norm_ratio"])
def test_numbers_in_cells_can_be_read_on_every_colour(document, quantity):
    trace = heatmap(document, quantity, []).figure.data[0]

    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for _, colour in trace.colorscale:
        assert (light(colour) + 0.05) / (light(INK) + 0.05) >= 7  # between two light colours all are light


def points(values, wide=1):
    return [
        {
            "pair": "slot 0 with HF[2]",
            "slot": 0,
            "position": p,
            "position_end": p + wide - 1,
            "value": v,
            "tokens": 8 * wide,
        }
        for p, v in values
    ]


def test_course_names_its_worst_position_exactly():
    values = [(p, 1.2 if p == 28 else 0.01) for p in range(0, 100, 4)]
    worst = [{"serving_slot": 0, "position": 31, "relative_error": 1.3, "texts": 8}]
    chart = over_position(points(values, 4), worst=worst)
    assert "slot 0 with HF[2]: from 0.010 to 1.300, the most at position 31." in chart.caption
    assert "A point is the mean of 4 positions." in chart.caption
    line = chart.figure.data[0]
    assert line.x[0] == 1.5 and line.customdata[7][0] == "positions 28 to 31"
    assert chart.figure.layout.yaxis.type == "log"
    assert "the most at positions 28 to 31" in over_position(points(values, 4)).caption


def test_where_nothing_differs_no_worst_is_named():
    chart = over_position(points([(p, 0.01 + p / 1e4) for p in range(100)]))
    assert chart.caption == "Every slot stays within 0.020 of its state from the first token to the last."
    low, high = chart.figure.layout.yaxis.range
    assert low < -2 and high > 0  # the line lies at the bottom, under what two implementations differ by


def test_a_line_that_is_wrong_everywhere_has_no_worst_position():
    caption = over_position(points([(p, 1.3 + p / 1e3) for p in range(100)])).caption
    assert caption == "slot 0 with HF[2]: 1.300 to 1.399, much the same at all positions."


def marks(chart):
    return [line["x0"] for line in chart.figure.layout.shapes if line["x0"] == line["x1"]]


def test_where_states_change_is_marked_and_said():
    course = points([(p, 0.9) for p in range(100)])
    split = {"kind": "split", "position": 48, "before": 0.01, "after": 0.9}
    chart = over_position(course, [split, None, CHUNK, {"kind": "scattered"}])
    assert marks(chart) == [48, 31, 63, 95]
    assert "change at position 48" in chart.caption
    assert "at place 31 of every 32 tokens" in chart.caption
    assert not marks(over_position(course))


def test_the_server_s_own_boundaries_are_drawn():
    course = points([(p, 0.01) for p in range(100)])
    chart = over_position(course, boundaries={"cache block": 32, "chunk of a prefill": 8192})
    assert marks(chart) == [32, 64, 96]
    assert "every 32 tokens, the server's cache block" in chart.caption
    assert "chunk of a prefill of 8,192 tokens is longer than these texts" in chart.caption


def test_error_by_depth_tells_rounding_from_one_wrong_slot():
    grown = depth([slot(0, 2, error=0.06), slot(1, 15, error=0.13)])
    assert "grows with depth (6.00% at HF[2], 13.00% at HF[15])" in grown.caption
    assert "does not grow with depth" in depth([slot(0, 2, error=0.3), slot(1, 15, error=0.01)]).caption
    assert "what two implementations differ by" in depth([slot(0, 2, error=0.01)]).caption
