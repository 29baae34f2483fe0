"""Bars of one thing changed at a time: which are drawn, what is marked, what the caption says."""

from eagle3dash.charts.changes import changes, drawn


def row(name, length, family="norms", clear=False, on=()):
    told = {"change": name, "name": " + ".join((*on, name)), "family": family, "on": list(on), "clear": clear}
    told |= {"exact": True}
    numbers = {"difference": length - 1.5, "difference_low": length - 1.6, "difference_high": length - 1.4}
    return {**told, **numbers, "row_accept_length": length, "low": length - 0.1, "high": length + 0.1} | {
        "accept_length": length,
        "rows": 100,
    }


ROWS = [
    row("<b>residual</b> on", 2.0, clear=True),
    row("theta 1", 1.6, "rope"),
    row("as its files say", 1.5, "baseline"),
    *(row(f"theta {i}", 1.4, "rope") for i in range(2, 30)),
    row("d2t absolute", 1.0, "vocabulary"),
    row("lag", 1.0, "lag", on=("<b>residual</b> on",)),
]


def test_the_best_the_baseline_and_one_of_each_family_are_drawn():
    names = [each["change"] for each in drawn(ROWS)]
    assert names[:3] == ["<b>residual</b> on", "theta 1", "as its files say"]
    assert "d2t absolute" in names and "lag" not in names and len(names) == 16


def test_a_gain_is_marked_and_told_and_names_are_no_tags():
    chart = changes(ROWS, 4)
    labels = chart.figure.layout.yaxis.ticktext
    assert "gains" in labels[0] and "&lt;b&gt;residual" in labels[0] and "gains" not in labels[1]
    assert "1.50" in chart.caption and "2.00" in chart.caption
    assert tuple(chart.figure.layout.xaxis.range) == (1, 5)
    assert len(chart.rows) == len(ROWS) and len(chart.figure.layout.shapes) == 1


def test_nothing_tried_is_said():
    assert "Nothing was tried" in changes([], 4).caption
    told = changes([ROWS[2], ROWS[1]], 4).caption
    assert "none of 1 changes gains" in told
