"""Every page on an empty store and on the demo: its title is its question, nothing fails, nothing is left unsaid."""

import json
import re
import shutil

import pytest
from demo_runs import ANSWERED, ROOT, UNASKED

from eagle3dash.jobs.imports import bring_in
from eagle3dash.store import Store
from eagle3dash.web import state

PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))
OF_A_RUN = ["acceptance", "diagnosis", "drafter", "features", "imports", "layers"]


def charts(app):
    return [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]


def texts(app):
    found = [*app.markdown, *app.caption, *app.error, *app.warning, *app.success, *app.info]
    return "\n".join(str(one.value) for one in found).replace("\\", "")


@pytest.mark.parametrize("page", PAGES)
def test_empty_store(page, visit, empty_store):
    app = visit(page)
    assert not app.exception
    assert not app.error
    assert app.title[0].value.endswith("?")
    if page != "jobs":
        assert "There is no run yet." in texts(app)
        assert any(button.label == "Load the demo" for button in app.button)


@pytest.mark.parametrize("page", PAGES)
def test_demo_answered(page, visit, demo_store):
    app = visit(page, run=ANSWERED)
    assert not app.exception
    assert app.title[0].value.endswith("?")
    assert len(charts(app)) == {
        "overview": 1,
        "diagnosis": 3,
        "acceptance": 4,
        "features": 5,
        "layers": 1,
        "compare": 3,
    }.get(page, 0)
    for chart in charts(app):
        assert chart["layout"]["title"]["text"]


@pytest.mark.parametrize("page", ["acceptance", "diagnosis", "features"])  # the sweep is the same: weights and texts are
def test_demo_not_asked_yet_offers_to_ask(page, visit, demo_store):
    app = visit(page, run=UNASKED)
    assert not app.exception
    assert any(button.label.startswith(("Diagnose", "Replay", "Compare", "Try")) for button in app.button)
    assert "It runs on" in texts(app)


@pytest.mark.parametrize("page", OF_A_RUN)
def test_a_link_to_a_run_that_is_not_there_never_shows_another(page, visit, demo_store):
    app = visit(page, run="<b>nosuch</b>")
    assert not app.exception
    assert [error.value.replace("\\", "") for error in app.error] == ["There is no run **<b>nosuch</b>**."]
    assert not charts(app) and not app.selectbox and not app.metric and not app.dataframe
    assert len(app.get("page_link")) == 1


def test_a_link_to_a_deleted_run_says_where_to_bring_it_back(visit, demo_store):
    state.store().delete_run(UNASKED)
    try:
        assert "It was deleted; the overview can bring it back" in texts(visit("diagnosis", run=UNASKED))
        assert "It was deleted" in texts(visit("compare", runs=[ANSWERED, UNASKED]))
    finally:
        state.store().restore_run(UNASKED)


def test_diagnosis_names_the_states(visit, demo_store):
    app = visit("diagnosis", run=ANSWERED)
    shown = texts(app)
    assert "wrong-aux-states" in shown
    assert len(app.error) == 1
    assert "trained on states 0, 2, 15; the server feeds 2, 15, 27" in app.error[0].value.replace("\\", "")
    assert "HF[0, 2, 15]" in shown
    waterfall = charts(app)[0]
    assert waterfall["layout"]["yaxis"]["range"] == [1, 5]
    assert "bonus token included" in waterfall["layout"]["yaxis"]["title"]["text"]


def test_acceptance_shows_served_beside_replayed_on_the_same_axis(visit, demo_store):
    app = visit("acceptance", run=ANSWERED)
    values = {metric.label: metric.value for metric in app.metric}
    assert values == {"Replayed on training features": "1.75", "Replayed on serving features": "1.07", "Served": "1.07"}
    histogram = charts(app)[0]
    assert [trace["name"] for trace in histogram["data"]] == [
        "replayed on training features",
        "replayed on serving features",
        "served",
    ]
    assert histogram["layout"]["xaxis"]["range"] == [0.5, 5.5]


def test_layers_marks_the_trained_and_the_served_combination(visit, demo_store):
    labels = [note["text"] for note in charts(visit("layers", run=ANSWERED))[0]["layout"]["annotations"]]
    assert "trained" in labels[0] and labels[0].startswith("0 · 2 · 15")
    assert any(label.startswith("2 · 15 · 27") and "served" in label for label in labels)


def test_layers_can_show_all(visit, demo_store):
    few = charts(visit("layers", run=ANSWERED))[0]["layout"]["annotations"]
    every = charts(visit("layers", run=ANSWERED, all="true"))[0]["layout"]["annotations"]
    assert (len(few) <= 14, len(every)) == (True, 24)


def test_features_answers_its_question_first(visit, demo_store):
    app = visit("features", run=ANSWERED, quantity="relative_error")
    assert app.get("button_group")
    told = app.error[0].value.replace("\\", "")
    assert told.startswith("**No. Training fed HF[0], HF[2], HF[15] (")
    assert told.endswith("; the server feeds HF[2], HF[15], HF[27].**")
    marks = [mark for row in charts(app)[0]["data"][0]["text"] for mark in row]
    assert [sum(sign in mark for mark in marks) for sign in "★◆"] == [3, 3]
    table = app.dataframe[0].value
    assert list(table["trained on"]) == ["HF[0]", "HF[2]", "HF[15]"]
    assert list(table["holds"]) == ["HF[2]", "HF[15]", "HF[27]"]
    assert "Loss mask of training, 8 answers: begins with the first token of the answers" in texts(app)


def test_compare_shows_only_differences_unless_asked(visit, demo_store):
    few = visit("compare").dataframe[-1].value
    every = visit("compare", differences="false").dataframe[-1].value
    assert 0 < len(few) < len(every)
    assert (few[ANSWERED] != few[UNASKED]).all()


def test_compare_of_runs_that_are_not_there_shows_no_others(visit, demo_store):
    app = visit("compare", runs=["nosuch", ANSWERED, "a,b"])
    assert [error.value for error in app.error] == ["There is no run **nosuch**.", "There is no run **a,b**."]
    assert not charts(app) and not app.dataframe


def test_compare_begins_with_runs_that_share_files_and_says_what_it_shows(visit, demo_folder, use_store, tmp_path):
    copy = shutil.copytree(demo_folder, tmp_path / "store")
    with Store.open(copy) as store:
        bring_in(store, [ROOT / "tests" / "golden" / "safeai-base"], "newest")
    use_store(copy)
    app = visit("compare")
    assert set(app.multiselect(key="runs").value) == {ANSWERED, UNASKED}
    assert "Both have the same target, training capture." in texts(app)
    titles = [chart["layout"]["title"]["text"] for chart in charts(app)]
    assert titles[1] == "Served accept length of a round" and titles[2].startswith("Served survival")
    other = visit("compare", runs=["newest", ANSWERED])
    assert other.multiselect(key="runs").value == ["newest", ANSWERED]
    assert "no file in common" in texts(other)


def test_overview_says_which_run_is_ill(visit, demo_store):
    shown = texts(visit("overview"))
    assert "tokens are lost" in shown
    assert "no verdict yet" in shown


def test_overview_finds_by_name(visit, demo_store):
    shown = texts(visit("overview", find="fixed"))
    assert UNASKED in shown and ANSWERED not in shown


def test_overview_of_many_runs_has_pages(visit, use_store, tmp_path):
    log = ROOT / "data" / "demo" / "story-fixed" / "server" / "server.log"
    with Store.open(tmp_path / "store") as store:
        for n in range(45):
            bring_in(store, [log], f"run {n:02d}")
    use_store(tmp_path / "store")
    first, last = texts(visit("overview")), texts(visit("overview", page="3"))
    assert "45 runs, 20 a page" in first
    assert [f"run {n:02d}" in first for n in (44, 25, 24, 0)] == [True, True, False, False]
    assert [f"run {n:02d}" in last for n in (44, 5, 4, 0)] == [False, False, True, True]
    assert "run 07" in texts(visit("overview", page="3", find="run 07"))  # fewer pages than the link asks for


def test_the_overview_says_that_the_demo_is_loading(visit, empty_store):
    store = state.store()
    job = store.add_job("demo", None, {}, "demo")
    store.update_job(job, state="running")
    app = visit("overview")
    assert "The demo is being loaded" in texts(app)
    assert not any(button.label == "Load the demo" for button in app.button)
    store.update_job(job, state="cancelled")
    assert any(button.label == "Load the demo" for button in visit("overview").button)


def test_every_page_of_numbers_explains_its_words(visit, demo_store):
    for page in ("overview", "diagnosis", "acceptance", "compare", "drafter", "imports", "layers"):
        told = texts(visit(page, run=ANSWERED))
        assert "the large model that is served" in told, page
    told = texts(visit("layers", run=ANSWERED))
    assert "**HF[k]**: the target's hidden state after k of its layers" in told


def test_imports_lists_what_was_inferred(visit, demo_store):
    app = visit("imports", run=ANSWERED)
    labels = " ".join(expander.label for expander in app.expander).replace("\\", "")
    assert "drafter** · speculators" in labels and "capture, serving** · 8 texts" in labels  # no name twice
    assert "log** · server.log · vllm" in labels
    assert all(kind in labels for kind in ("drafter", "capture, training", "capture, serving", "log", "target"))
    assert len(app.get("bidi_component")) == 1


def test_names_from_outside_stay_text(visit, demo_store):
    name = "<img src=x onerror=alert(1)> ![i](http://evil/p.png)"
    state.store().update_run(UNASKED, rename=name)
    try:
        for page in PAGES:
            app = visit(page, run=name)
            assert not app.exception
            for one in [*app.markdown, *app.caption]:
                assert not re.search(r"(?<!\\)(<img|!\[|\]\()", str(one.value))
    finally:
        state.store().update_run(name, rename=UNASKED)
