"""A person's corrections: for one run, merged, checked, and never at the cost of what the file said."""

import pytest
from store_samples import add, capture, drafter, log

from eagle3dash.errors import BadInput, NotFound


def test_a_correction_holds_for_its_run_only_and_says_what_the_file_gave(store):
    [added] = add(store, "a", lambda s: capture(s, 1))
    add(store, "b", lambda s: capture(s, 1))
    store.correct("a", added.sha256, {"states": [1, 3, 31, 61], "role": "serving"})
    [corrected], [original] = store.run("a").imports, store.run("b").imports
    assert corrected.record.states == (1, 3, 31, 61) and corrected.record.role == "serving"
    assert original.record.states == (0, 3, 31, None) and original.record.role == "training"
    told = {i.field: i for i in corrected.inferred}
    assert told["states"].value == "1, 3, 31, 61" and told["states"].why == "set by hand; the file gave 0, 3, 31, unknown"


def test_corrections_add_up_and_can_be_taken_back(store):
    [added] = add(store, "a", lambda s: capture(s, 1))
    before = store.run("a").imports
    store.correct("a", added.sha256, {"aux": [2, 1, 0]})
    store.correct("a", added.sha256, {"last": "post-norm"})
    record = store.run("a").imports[0].record
    assert record.aux == (2, 1, 0) and record.last == "post-norm"
    store.correct("a", added.sha256, {"aux": None, "last": "none"})
    assert store.run("a").imports == before


def test_a_correction_outlives_bringing_the_file_in_again(store):
    [added] = add(store, "a", lambda s: capture(s, 1))
    store.correct("a", added.sha256, {"last": "pre-norm"})
    add(store, "a", lambda s: capture(s, 1))
    assert store.run("a").imports[0].record.last == "pre-norm"


def test_another_reading_of_a_drafter_becomes_its_spec_and_the_old_one_stays_a_choice(store):
    [added] = add(store, "a", lambda s: drafter(s, 1))
    before = store.run("a").drafter.record
    store.correct("a", added.sha256, {"reading": "vllm", "states": [3, 31, 59]})
    after = store.run("a").drafter.record
    assert after.reading == "vllm" and after.spec == before.readings["vllm"] and after.states == (3, 31, 59)
    assert after.readings == {"as stored": before.spec}


def test_the_steps_and_engine_of_a_log(store):
    [added] = add(store, "a", lambda s: log(1))
    store.correct("a", added.sha256, {"steps": 5, "engine": "sglang"})
    assert (store.run("a").logs[0].record.steps, store.run("a").logs[0].record.engine) == (5, "sglang")


@pytest.mark.parametrize(
    ("make", "changes", "says"),
    [
        (capture, {"states": [1, 2]}, "4 distinct states"),
        (capture, {"states": [1, 1, 2, 3]}, "4 distinct states"),
        (capture, {"states": [1, -2, 3, 4]}, "4 distinct states"),
        (capture, {"states": "0123"}, "4 distinct states"),
        (capture, {"states": [True, 2, 3, 4]}, "4 distinct states"),
        (capture, {"aux": [0, 4]}, "slots of 0..3"),
        (capture, {"aux": 3}, "slots of 0..3"),
        (capture, {"role": "test"}, "training or serving"),
        (capture, {"width": 64}, "states, role, aux, last"),
        (drafter, {"reading": "magic"}, "as stored or vllm"),
        (drafter, {"states": [3, None, 5]}, "3 distinct states"),
        (lambda _, n: log(n), {"steps": 0}, "whole number of 1..64"),
        (lambda _, n: log(n), {"steps": 2.5}, "whole number of 1..64"),
        (lambda _, n: log(n), {"engine": "a\nb"}, "printable"),
    ],
)
def test_a_correction_that_cannot_be_is_refused(store, make, changes, says):
    [added] = add(store, "a", lambda s: make(s, 1))
    before = store.run("a")
    with pytest.raises(BadInput, match=says):
        store.correct("a", added.sha256, changes)
    assert store.run("a") == before


def test_only_what_is_in_the_run_can_be_corrected(store):
    add(store, "a", lambda s: log(1))
    with pytest.raises(NotFound):
        store.correct("a", log(2).sha256, {"steps": 3})
