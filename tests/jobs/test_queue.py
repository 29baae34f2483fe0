"""The queue with its real worker process, on the demo."""

import os
import signal
import time
from pathlib import Path

import pytest

from eagle3dash.errors import BadInput, NotFound
from eagle3dash.jobs import demo, imports
from eagle3dash.jobs.devices import Device
from eagle3dash.jobs.questions import Question
from eagle3dash.jobs.queue import OPEN, Queue
from eagle3dash.store import Store

CPU = [Device("cpu", "cpu", "processor", None, None)]
REPLAY = Question("replay", "story-as-served")


def long(steps=64):
    """A question that takes a while."""
    return Question("sweep", "story-as-served", {"steps": steps})


def wait(queue, job, seconds=90, until=lambda row: row["state"] not in OPEN):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        row = queue.status(job)
        if until(row):
            return row
        time.sleep(0.05)
    raise AssertionError(f"still {row}")


@pytest.fixture(scope="module")
def queue(shared):
    queue = Queue(shared, CPU)
    yield queue
    queue.close()


@pytest.fixture(autouse=True)
def nothing_left(queue):
    yield
    for row in queue.jobs():
        queue.cancel(row["id"])
        wait(queue, row["id"])


def worker(queue):
    return queue._children[0].pid


def test_a_question_is_answered_kept_and_then_known(queue):
    job = queue.submit(REPLAY)
    row = wait(queue, job)
    assert row["state"] == "done", row["message"]
    assert row["device"] == "cpu"
    assert round(row["result"]["accept_length"], 4) == 1.7473
    assert queue.cached(REPLAY) == row["result"]


def test_the_same_question_is_one_job(queue):
    first = queue.submit(long())
    assert queue.submit(long()) == first
    assert queue.submit(Question("sweep", "story-as-served", {"capture": "training", "steps": 64})) == first


def test_jobs_wait_in_order_and_can_be_taken_out(queue):
    running = queue.submit(long())
    wait(queue, running, until=lambda row: row["state"] == "running")
    second, third = queue.submit(long(63)), queue.submit(long(62))
    assert [queue.status(job)["ahead"] for job in (second, third)] == [1, 2]
    queue.cancel(second)
    assert queue.status(second)["state"] == "cancelled"
    assert queue.status(third)["ahead"] == 1


def test_cancel_ends_a_running_job_within_six_seconds(queue):
    job = queue.submit(long())
    wait(queue, job, until=lambda row: row["done"] > 0)
    row = queue.status(job)
    assert row["rate"] > 0
    assert row["eta"] > 0
    pid, start = worker(queue), time.monotonic()
    queue.cancel(job)
    assert wait(queue, job, 6)["state"] == "cancelled"
    assert time.monotonic() - start < 6
    assert not Path(f"/proc/{pid}").exists()
    assert wait(queue, queue.submit(REPLAY))["state"] == "done"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_worker_that_dies_fails_its_job_and_the_next_runs(queue, number):
    job = queue.submit(long())
    wait(queue, job, until=lambda row: row["done"] > 0)
    os.kill(worker(queue), number)
    row = wait(queue, job, 5)
    assert row["state"] == "failed"
    assert number.name in row["message"]
    again = queue.retry(job)
    queue.cancel(again)
    assert wait(queue, queue.submit(REPLAY))["state"] == "done"


def test_a_stopped_worker_is_killed(queue):
    job = queue.submit(long())
    wait(queue, job, until=lambda row: row["done"] > 0)
    os.kill(worker(queue), signal.SIGSTOP)  # deaf to SIGTERM
    queue.cancel(job)
    assert wait(queue, job, 7)["state"] == "cancelled"


def test_what_was_running_when_the_owner_ended_is_interrupted(demo_copy):
    with Store.open(demo_copy) as store:
        queue = Queue(store, CPU)
        job = queue.submit(long())
        waiting = queue.submit(REPLAY)
        wait(queue, job, until=lambda row: row["done"] > 0)
        pid = worker(queue)
        queue.close()
        assert not Path(f"/proc/{pid}").exists()
    with Store.open(demo_copy) as store:
        queue = Queue(store, CPU)
        assert [queue.status(each)["state"] for each in (job, waiting)] == ["interrupted", "interrupted"]
        assert wait(queue, queue.retry(waiting))["state"] == "done"
        queue.close()


def test_a_failure_is_told_in_words(queue, shared):
    imports.bring_in(shared, [demo.FOLDER / "drafter", demo.FOLDER / "training"], "no target")
    row = wait(queue, queue.submit(Question("replay", "no target")))
    assert row["state"] == "failed"
    assert "embed_tokens" in row["message"]


def test_an_import_is_a_job_too(queue, shared):
    job = queue.bring_in([str(demo.FOLDER / "drafter")], "mine")
    row = wait(queue, job)
    assert row["state"] == "done", row["message"]
    assert row["result"]["run"] == "mine"
    assert [(one["kind"], one["known"]) for one in row["result"]["added"]] == [("drafter", True)]
    assert shared.run("mine").drafter is not None


def test_an_import_can_be_cancelled_and_leaves_nothing(queue, shared):
    job = queue.bring_in([str(demo.FOLDER / "training")], "unwanted")
    queue.cancel(job)
    assert wait(queue, job, 6)["state"] == "cancelled"
    assert "unwanted" not in {run.name for run in shared.runs()}


def test_a_bad_import_says_why(queue, tmp_path):
    bad = tmp_path / "notes.txt"
    bad.write_text("nothing that a drafter needs\n")
    row = wait(queue, queue.bring_in([str(bad)], "mine"))
    assert row["state"] == "failed"
    assert "notes.txt" in row["message"]


def test_jobs_that_never_were(queue):
    with pytest.raises(NotFound):
        queue.status(9999)
    with pytest.raises(NotFound):
        queue.cancel(9999)


def test_an_open_job_is_not_retried(queue):
    job = queue.submit(long())
    with pytest.raises(BadInput, match="only one that ended"):
        queue.retry(job)
