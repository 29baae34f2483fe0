"""Answers and jobs as rows."""

import numpy
import pytest
from pandas import DataFrame
from store_samples import add, capture

from eagle3dash.errors import NotFound
from eagle3dash.store import Store


def positions(count=10, **columns):
    frame = {"training_slot": 0, "serving_slot": 1, "sequence": 0, "position": range(count), "cosine": 0.5}
    return DataFrame({**frame, "relative_error": 0.25, "norm_ratio": 1.0, **columns})


def test_an_answer_comes_back_with_missing_numbers_as_null(store):
    add(store, "a", lambda s: capture(s, 1))
    store.add_result("k", "features", "a", {"cosine": float("nan"), "rows": [1, float("inf"), None], "text": "≠"})
    assert store.result("k") == {"cosine": None, "rows": [1, None, None], "text": "≠"}
    assert store.result("other") is None


def test_the_same_question_keeps_its_first_answer(store):
    store.add_result("k", "replay", None, {"n": 1}, {"feature_position": positions(3)})
    store.add_result("k", "replay", None, {"n": 2}, {"feature_position": positions(3)})
    assert store.result("k") == {"n": 1}
    frame = store.frame("feature_position_mean", result_key="k", training_slot=0, serving_slot=1)
    assert frame.tokens.tolist() == [1, 1, 1]


def test_an_answer_for_a_run_renamed_meanwhile_is_kept(store):
    add(store, "a", lambda s: capture(s, 1))
    store.update_run("a", rename="b")
    store.add_result("k", "replay", "a", {"n": 1})
    assert store.result("k") == {"n": 1}


@pytest.mark.parametrize(
    "frames",
    [{"feature_position": positions().drop(columns="cosine")}, {"run": DataFrame({"id": [1]})}],
    ids=["column", "table"],
)
def test_a_frame_that_no_table_takes_stores_nothing(store, frames):
    with pytest.raises(ValueError, match="frame"):
        store.add_result("k", "features", None, {}, frames)
    assert store.result("k") is None


def test_a_frame_of_100_000_rows_of_numpy_types(store):
    rng = numpy.random.default_rng(0)
    accepted, visited = rng.integers(0, 6, 100_000, dtype=numpy.int8), rng.random(100_000) < 0.4
    frame = DataFrame(
        {"visited": visited, "num_accepted": accepted, "row": numpy.arange(100_000), "sequence": numpy.zeros(100_000, "i8")}
    )
    store.add_result("k", "replay", None, {}, {"replay_row": frame})
    [row] = store.frame("replay_sequences", result_key="k").to_dict("records")
    assert row["rows"] == 100_000 and row["rounds"] == visited.sum()
    assert row["accept_length"] == pytest.approx(1 + accepted[visited].mean())
    assert row["row_accept_length"] == pytest.approx(1 + accepted.mean())


def test_a_job_from_queue_to_end(store):
    job = store.add_job("sweep", "a", {"steps": 5, "states": None}, "key")
    assert store.job(job)["state"] == "queued" and store.job(job)["started"] is None
    store.update_job(job, state="running", device="cpu", done=3, total=10, message="ranking")
    running = store.job(job)
    assert running["started"] and running["ended"] is None and running["args"] == {"steps": 5, "states": None}
    assert (running["done"], running["total"], running["message"], running["device"]) == (3, 10, "ranking", "cpu")
    store.update_job(job, state="failed", message="out of memory")
    assert store.job(job)["ended"] and store.job(job)["message"] == "out of memory"
    later = store.add_job("replay", None, {}, "other")
    assert [j["id"] for j in store.jobs()] == [later, job] and [j["id"] for j in store.jobs(1)] == [later]


def test_jobs_that_cannot_be(store):
    job = store.add_job("sweep", "a", {}, "key")
    with pytest.raises(NotFound, match="99"):
        store.job(99)
    with pytest.raises(ValueError):
        store.update_job(job, state="sleeping")
    with pytest.raises(KeyError):
        store.update_job(job, owner="me")
    assert store.job(job)["state"] == "queued"


def test_what_a_gone_owner_was_doing_is_interrupted(tmp_path):
    with Store.open(tmp_path) as store:
        jobs = [store.add_job("replay", None, {}, str(n)) for n in range(3)]
        store.update_job(jobs[0], state="running")
        store.update_job(jobs[1], state="done")
    with Store.open(tmp_path) as store:
        assert [store.job(j)["state"] for j in jobs] == ["interrupted", "done", "interrupted"]
        assert store.job(jobs[0])["ended"]
