"""Layer combinations: best first, intervals, and the trained and the served one marked by words as well as by fill."""

from eagle3dash.charts.compare import numbers, run_series
from eagle3dash.charts.layers import combinations
from eagle3dash.charts.theme import RUNS

ROWS = [
    {"states": [0, 2, 15], "row_accept_length": 2.02, "low": 1.9, "high": 2.1, "accept_length": 1.75, "exact": True},
    {"states": [2, 0, 15], "row_accept_length": 1.3, "low": 1.2, "high": 1.4, "accept_length": None, "exact": False},
    {"states": [2, 15, 27], "row_accept_length": 1.07, "low": 1.0, "high": 1.1, "accept_length": 1.07, "exact": True},
]


def test_trained_and_served_are_marked_in_words():
    chart = combinations(ROWS, 4, [0, 2, 15], [2, 15, 27])
    labels = [note.text for note in chart.figure.layout.annotations]  # above the bars: a narrow page has room for them
    assert labels[0].startswith("0 · 2 · 15") and "trained" in labels[0]
    assert "served" in labels[2]
    assert labels[1] == "2 · 0 · 15"
    assert list(chart.figure.layout.xaxis.range) == [1, 5]


def test_every_bar_has_its_interval():
    chart = combinations(ROWS, 4, [0, 2, 15], [2, 15, 27])
    bars = {bar.y[0]: bar for bar in chart.figure.data}
    assert set(bars) == {0, 1, 2}
    assert abs(bars[0].error_x.array[0] - 0.08) < 1e-9
    assert abs(bars[0].error_x.arrayminus[0] - 0.12) < 1e-9
    top, bottom = chart.figure.layout.yaxis.range[::-1]
    assert top < 0 < bottom  # the best, place 0, is on top


def test_caption_ranks_the_served_one():
    caption = combinations(ROWS, 4, [0, 2, 15], [2, 15, 27]).caption
    assert "Best: 0 · 2 · 15 with 2.02" in caption
    assert "Served: 2 · 15 · 27 is number 3 with 1.07" in caption


def test_runs_share_one_axis_and_hollow_marks_are_per_row():
    runs = [("a", {"served": 1.1, "replayed_training_rows": 2.0}), ("b", {"served": None})]
    chart = numbers(runs, 4)
    by_name = {trace.name: trace for trace in chart.figure.data}
    assert by_name["replayed on training features, per row"].marker.symbol.endswith("-open")
    assert list(by_name["served, per round"].text) == ["a"]
    heights = [trace.y[0] for trace in chart.figure.data]
    assert len(set(heights)) == len(heights)  # equal numbers lie beside each other
    assert list(chart.figure.layout.xaxis.range) == [1, 5]
    assert "b: served no data" in chart.caption


def test_runs_keep_their_order_of_looks():
    series = run_series(["a", "b"], [{}, {}])
    assert [one.look for one in series] == list(RUNS[:2])


def test_likelihood_tells_apart_what_accepts_alike():
    none = {"mean": 0.0, "low": 0.0, "high": 0.0}
    paired = {"mean": 0.01, "low": -0.1, "high": 0.1}
    rows = [
        {**ROWS[0], "behind": none, "less_likely": none},
        {**ROWS[1], "behind": paired, "less_likely": {"mean": 0.154, "low": 0.06, "high": 0.25}, "log_likelihood": -2.5},
        {**ROWS[2], "behind": {"mean": 0.95, "low": 0.3, "high": 1.6}, "less_likely": None},
    ]
    chart = combinations(rows, 4, None, None)
    assert "Within chance 0 · 2 · 15, 2 · 0 · 15 accept alike; likelihood tells 2 · 0 · 15 apart" in chart.caption
    assert "likelier by 0.15 nats a row" in chart.caption
    assert (chart.rows[1]["less_likely"], chart.rows[1]["log_likelihood"]) == (0.154, -2.5)
    rows[1]["less_likely"] = {"mean": 0.001, "low": 0.0, "high": 0.002}
    assert "are as good as each other" in combinations(rows, 4, None, None).caption
