"""Answers on the demo, checked against its README: an independent float64 forward, and what vLLM reported."""

import json

import pytest

from eagle3dash.errors import BadInput, Missing, NotFound
from eagle3dash.jobs import imports, payloads, questions
from eagle3dash.jobs.demo import FOLDER as DEMO
from eagle3dash.jobs.questions import Question
from eagle3dash.jobs.selection import likely_states
from eagle3dash.records import Run


def ask(store, kind, run, **args):
    return questions.answer(store, Question(kind, run, args))


def test_training_features_with_the_trained_states(shared):
    document = ask(shared, "replay", "story-as-served")
    assert (document["states"], document["steps"]) == ([0, 2, 15], 4)
    assert (document["rows"], document["rounds"]) == (1282, 736)
    assert round(document["row_accept_length"], 4) == 2.0226
    assert round(document["accept_length"], 4) == 1.7473


def test_training_features_with_the_served_states(shared):
    document = ask(shared, "replay", "story-as-served", capture="training", states=["2", "15", "27"])
    assert round(document["row_accept_length"], 4) == 1.0694
    assert round(document["accept_length"], 4) == 1.0719


@pytest.mark.parametrize(
    ("run", "states", "rows", "rounds"),
    [("story-as-served", [2, 15, 27], 1.0710, 1.0728), ("story-fixed", [0, 2, 15], 2.0195, 1.7449)],
)
def test_serving_features(shared, run, states, rows, rounds):
    document = ask(shared, "replay", run, capture="serving")
    assert document["states"] == states
    assert round(document["row_accept_length"], 4) == rows
    assert round(document["accept_length"], 4) == rounds


def test_the_sweep_finds_the_trained_states_and_agrees_with_replays(shared):
    rows = ask(shared, "sweep", "story-as-served")["rows"]
    assert len(rows) == 24
    assert rows[0]["states"] == [0, 2, 15]
    by_states = {tuple(row["states"]): row for row in rows}
    assert round(by_states[0, 2, 15]["row_accept_length"], 4) == 2.0226
    assert round(by_states[0, 2, 15]["accept_length"], 4) == 1.7473
    assert round(by_states[2, 15, 27]["row_accept_length"], 4) == 1.0694


def test_features_name_the_served_states(shared):
    assert ask(shared, "features", "story-as-served")["best"] == [2, 15, 27]
    fixed = ask(shared, "features", "story-fixed")
    assert (fixed["best"], fixed["lag"]) == ([0, 2, 15], 0)


def test_the_diagnosis_of_the_founding_story(shared):
    document = ask(shared, "diagnose", "story-as-served")
    first = document["findings"][0]
    assert (first["id"], first["severity"]) == ("wrong-aux-states", "error")
    numbers = document["numbers"]
    assert round(numbers["replayed_training_rows"], 4) == 2.0226
    assert round(numbers["replayed_training"], 4) == 1.7473
    assert round(numbers["replayed_serving"], 4) == 1.0728
    assert round(numbers["served"], 4) == 1.0653
    assert round(numbers["expected"], 3) == 1.985
    assert document["could_not_check"] is not None


def test_the_fixed_run_is_healthy(shared):
    document = ask(shared, "diagnose", "story-fixed")
    assert not [finding for finding in document["findings"] if finding["severity"] == "error"]
    assert round(document["numbers"]["served"], 4) == 1.7717
    assert round(document["numbers"]["replayed_serving"], 4) == 1.7449


def test_a_diagnosis_keeps_and_reuses_its_parts(shared):
    ask(shared, "diagnose", "story-as-served")
    rest = ((kind, {}) for kind in ("sweep", "features", "changes"))
    for kind, args in [("replay", {}), ("replay", {"capture": "serving"}), *rest]:
        assert questions.cached(shared, Question(kind, "story-as-served", args)) is not None
    known = questions.payload(shared, Question("diagnose", "story-as-served", {}))["known"]
    assert len(known) == 6  # replays, sweep, features, changes of both captures


def test_frames_come_with_the_answer(shared):
    ask(shared, "replay", "story-as-served")
    key = questions.key(shared, Question("replay", "story-as-served"))
    assert shared.frame("replay_position", result_key=key, buckets=50)["rows"].sum() == 1282


def test_a_key_is_made_of_content_and_not_of_names(store):
    key = questions.key(store, Question("replay", "story-as-served"))
    store.update_run("story-as-served", rename="other name")
    assert questions.key(store, Question("replay", "other name")) == key
    assert questions.key(store, Question("replay", "other name", {"steps": 4, "capture": "training"})) == key
    assert questions.key(store, Question("replay", "other name", {"steps": 3})) != key
    store.correct("other name", store.run("other name").capture("training").sha256, {"states": [0, 3, 15, 27]})
    assert questions.key(store, Question("replay", "other name")) != key


def test_a_key_changes_with_the_code(store, monkeypatch):
    key = questions.key(store, Question("sweep", "story-as-served"))
    monkeypatch.setattr(payloads, "code_version", lambda: "another")
    assert questions.key(store, Question("sweep", "story-as-served")) != key


def test_what_a_run_lacks_is_said(store):
    store.detach("story-fixed", store.run("story-fixed").capture("serving").sha256)
    with pytest.raises(Missing, match="This run has no serving capture") as told:
        ask(store, "features", "story-fixed")
    assert told.value.needs == "serving"
    document = ask(store, "diagnose", "story-fixed")
    assert document["numbers"]["replayed_serving"] is None
    assert any("serving capture" in gap["needs"] for gap in document["could_not_check"])


def test_the_target_is_missed_only_where_it_is_needed(store):
    store.detach("story-fixed", store.run("story-fixed").target.sha256)
    with pytest.raises(Missing, match="embed_tokens") as told:
        ask(store, "replay", "story-fixed")
    assert told.value.needs == "target"
    document = ask(store, "diagnose", "story-fixed")
    assert document["numbers"]["replayed_training"] is None
    assert document["numbers"]["served"] is not None


def test_a_log_alone_gets_an_answer(store):
    for item in store.run("story-as-served").imports:
        if item.kind != "log":
            store.detach("story-as-served", item.sha256)
    document = ask(store, "diagnose", "story-as-served")
    assert round(document["numbers"]["served"], 4) == 1.0653
    assert document["could_not_check"]


@pytest.mark.parametrize(
    ("question", "error", "text"),
    [
        (Question("replay", "nobody"), NotFound, "nobody"),
        (Question("guess", "story-fixed"), BadInput, "no question 'guess'"),
        (Question("features", "story-fixed", {"steps": 3}), BadInput, "features takes no steps"),
        (Question("replay", "story-fixed", {"capture": "both"}), BadInput, "training or serving"),
        (Question("replay", "story-fixed", {"states": ["0", "2", "99"]}), BadInput, "no state 99"),
    ],
)
def test_questions_that_make_no_sense(store, question, error, text):
    with pytest.raises(error, match=text):
        questions.payload(store, question)


def test_an_empty_run_has_nothing_to_diagnose():
    with pytest.raises(Missing, match="is empty"):
        payloads.diagnose(Run("new", "2026"), {})


def test_a_capture_without_states_is_offered_the_likely_ones(shared):
    run = shared.run("story-fixed")
    found = likely_states(run, run.capture("serving").record)
    assert found[0] == ((0, 2, 15), "the drafter's config says so")
    assert [states for states, _ in found[1:]] == [(2, 15, 27), (3, 16, 28), (1, 14, 26)]
    assert likely_states(run, run.capture("training").record) == []


def test_a_kept_answer_names_no_run(store):
    """Answers are shared by content, so what one run lacks must not be said in another run's name."""
    for name in ("first", "second"):
        imports.bring_in(store, [DEMO / "story-fixed" / "server" / "server.log"], name)
    asked = [questions.key(store, Question("diagnose", name)) for name in ("first", "second")]
    assert asked[0] == asked[1]
    document = ask(store, "diagnose", "first")
    assert "first" not in json.dumps(document).split()
    assert "add the drafter" in json.dumps(document)
