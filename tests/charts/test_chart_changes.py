"""Bars of what each change does: which are drawn, in which order, what is marked, what the caption says."""

from eagle3dash.analysis.changes import ranked
from eagle3dash.analysis.report import markdown
from eagle3dash.charts.changes import changes, drawn

BASE = {"row_accept_length": 1.5, "low": 1.2, "high": 1.8, "accept_length": 1.4, "rows": 100}


def row(name, length, family="norms", clear=False, on=(), half=0.01, likelier=0.0, **more):
    difference = length - 1.5
    told = {"change": name, "family": family, "sets": {family: name}, "readings": [], "on": list(on), "clear": clear}
    told |= {"difference": difference, "difference_low": difference - half, "difference_high": difference + half}
    told |= {"likelier": likelier, "likelier_low": likelier - 0.01, "likelier_high": likelier + 0.01, "exact": True}
    return {**told, "row_accept_length": length, "low": length - half, "high": length + half, **BASE_REST, **more}


BASE_REST = {"accept_length": 1.4, "rows": 100}
THETAS = [row(f"theta {i}", 1.4 - i / 1000, "rope") for i in range(2, 30)]


def document(rows, stacked=(), made=(), capture="training"):
    best = {"changes": list(made), "states": [0, 2, 15]} if made else None
    return {"capture": capture, "states": [0, 2, 15], "steps": 4, "baseline": BASE, "rows": rows} | {
        "stacked": list(stacked),
        "best": best,
    }


def sweep_row(states, length, less=0.0, **more):
    return {
        "states": states,
        "row_accept_length": length,
        "low": length - 0.2,
        "high": length + 0.2,
        "kept": {"mean": (length - 1) / 0.5, "low": (length - 1) / 0.5 - 0.1, "high": (length - 1) / 0.5 + 0.1},
        "less_likely": {"mean": less, "low": less - 0.01, "high": less + 0.01},
        "accept_length": length,
        "row_survival": [],
        "survival": [],
        "rows": 100,
        "rounds": 50,
        "exact": True,
        **more,
    }


SWEEP = [sweep_row([0, 2, 15], 1.5), sweep_row([2, 0, 15], 1.48, 0.2), sweep_row([2, 15, 27], 1.03, 5.0)]
GAINS = [
    row("<b>residual</b> on", 2.0, clear=True),
    row("theta 1", 1.505, "rope"),
    *THETAS,
    row("d2t absolute", 1.0, "vocabulary"),
]
STACKED = [
    row("theta 3", 2.3, "rope", clear=True, on=("<b>residual</b> on",), difference=0.3),
    row("lag", 1.0, "lag", on=("<b>residual</b> on",)),
]
ROWS = ranked(document(GAINS, STACKED, ["<b>residual</b> on", "theta 3"]))
HEALTHY = ranked(document([GAINS[1], *THETAS, row("both", 1.2, sets={"a": 1, "b": 1})]), SWEEP, [2, 15, 27], [2, 15, 27])


def labels(chart):
    return [note.text for note in chart.figure.layout.annotations]


def test_what_makes_no_difference_comes_after_the_drafter_unchanged():
    names = [each["name"] for each in ranked(document(GAINS))]
    assert names[:3] == ["<b>residual</b> on", "unchanged, states 0, 2, 15", "theta 1"]
    assert [each["outcome"] for each in ranked(document(GAINS))][:3] == ["gains", "unchanged", "no clear difference"]


def test_the_best_the_baseline_and_one_of_each_family_are_drawn():
    names = [each["name"] for each in drawn(ROWS)]
    assert names[:3] == ["<b>residual</b> on + theta 3", "<b>residual</b> on", "unchanged, states 0, 2, 15"]
    assert "d2t absolute" in names and not any("lag" in name for name in names) and len(names) == 14


def test_a_gain_is_marked_and_told_with_its_interval_and_names_are_no_tags():
    chart = changes(ROWS, 4)
    assert "gains" in labels(chart)[1] and "&lt;b&gt;residual" in labels(chart)[1]
    assert "Best single change: <b>residual</b> on with 2.00, +0.500 tokens per row (95 %: +0.490 to" in chart.caption
    assert "Best pair: <b>residual</b> on + theta 3 with 2.30, +0.300 tokens per row" in chart.caption
    assert "on top of <b>residual</b> on" in chart.caption
    assert tuple(chart.figure.layout.xaxis.range) == (1, 5)
    assert len(chart.rows) == len(ROWS) and len(chart.figure.layout.shapes) == 1
    assert f"14 of {len(ROWS)} are drawn" in chart.caption


def test_the_declared_and_served_states_are_always_drawn_and_the_baseline_names_its_own():
    chart = changes(HEALTHY, 4)
    assert "1.50 tokens per row unchanged, with states 0, 2, 15" in chart.caption
    assert "states 2, 15, 27 (declared and served) give 1.03" in chart.caption
    assert any("states 2, 15, 27 (declared and served)" in label for label in labels(chart))
    assert "No single change and no pair gains beyond doubt" in chart.caption
    assert "the best single change, theta 1, gives +0.005 tokens per row" in chart.caption
    assert "sees the answer" not in chart.caption
    own = ranked(document([GAINS[1]]), SWEEP, [0, 2, 15])
    assert own[0]["name"] == "unchanged, states 0, 2, 15 (declared)"


def test_unchanged_has_no_whisker_and_the_caption_says_why():
    chart = changes(HEALTHY, 4)
    at = [each["family"] for each in drawn(HEALTHY)].index("baseline")
    whiskers = chart.figure.data[0].error_x
    assert (whiskers.array[at], whiskers.arrayminus[at]) == (0, 0) and whiskers.array[at + 1] > 0
    assert "its own interval, 1.20 to 1.80, says how much texts differ" in chart.caption


def test_likelihood_tells_apart_what_accepts_alike():
    found = {each["name"]: each for each in ranked(document([]), [*SWEEP], None, [2, 0, 15])}
    assert found["states 2, 0, 15 (served)"]["outcome"] == "less likely"
    assert found["states 2, 0, 15 (served)"]["likelier"] == -0.2
    assert "the text's own tokens become less likely by 0.20 nats a row" in changes(list(found.values()), 4).caption
    clear = ranked(document([row("theta 9", 1.5, "rope", clear=True, likelier=0.1)], made=["theta 9"]))
    assert clear[0]["outcome"] == "likelier"
    assert "likelihood decides: the text's own tokens become likelier by 0.100 nats a row" in changes(clear, 4).caption
    assert changes(clear, 4).rows[0]["likelier"] == 0.1


def test_what_a_server_was_fed_says_what_is_not_tried():
    rows = ranked(document([row("later", 1.9, "lag", leaks=True)], capture="serving"), SWEEP)
    chart = changes(rows, 4, "serving")
    assert rows[0]["outcome"] == "sees the answer" and rows[1]["name"] == "unchanged, as the server fed it"
    assert "sees the answer, which is no gain" in chart.caption and "Other states and orders of blocks" in chart.caption


def test_nothing_tried_is_said():
    assert "Nothing was tried" in changes([], 4).caption


def test_a_report_has_the_changes_with_what_they_are():
    base = {"findings": [], "verdict": "Fine.", "lengths": {}, "numbers": {}, "drops": [], "steps": 4, "notes": []}
    base |= {"acceptance": {"text": "greedy"}, "checked": [], "changes": {"training": HEALTHY}}
    about = {"run": "it", "settings": {}, "notes": "", "files": [], "versions": {}, "made": "now"}
    text = markdown(base, about)
    assert "## What each change does, replayed on training features" in text
    assert "| states 2, 15, 27 (declared and served) | 1\\.030 | 1\\.000 to 1.080 | −0.470 | −5.000 | loses |" in text
    assert "No single change and no pair gains beyond doubt" in text
