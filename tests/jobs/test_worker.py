"""The worker process from its owner's end, and what it does when memory is short."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from eagle3dash.errors import Eagle3Error
from eagle3dash.jobs import questions
from eagle3dash.jobs.child import Child
from eagle3dash.jobs.questions import Question
from eagle3dash.records import no_progress

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def child(tmp_path_factory):
    child = Child("cpu", tmp_path_factory.mktemp("log") / "worker.log")
    yield child
    child.stop()


def test_it_stays_warm_and_hands_back_frames(child, shared):
    asked = questions.payload(shared, Question("replay", "story-as-served"))
    answer = child.ask(asked, no_progress, threading.Event())[-1]
    first = child.pid
    assert answer.key == asked["key"]
    frame = answer.frames["replay_row"]
    assert len(frame) == answer.document["rows"] == 1282
    assert frame["visited"].sum() == answer.document["rounds"]
    child.ask(asked, no_progress, threading.Event())
    assert child.pid == first


def test_a_diagnosis_hands_back_its_parts_and_uses_known_ones(child, shared):
    asked = questions.payload(shared, Question("diagnose", "story-fixed"))
    answers = child.ask(asked, no_progress, threading.Event())
    assert [answer.kind for answer in answers] == [
        "replay",
        "replay",
        "sweep",
        "features",
        "changes",
        "changes",
        "diagnose",
    ]
    questions.keep(shared, "story-fixed", answers)
    again = questions.refreshed(shared, asked)
    assert [answer.kind for answer in child.ask(again, no_progress, threading.Event())] == ["diagnose"]


def test_an_error_of_the_files_is_told_and_the_worker_lives(child, shared):
    asked = questions.payload(shared, Question("replay", "story-fixed"))
    del asked["imports"]["target"]
    with pytest.raises(Eagle3Error, match="embed_tokens"):
        child.ask(asked, no_progress, threading.Event())
    assert child.pid is not None


def test_a_fault_of_ours_ends_it_and_names_the_log(child, shared):
    asked = questions.payload(shared, Question("replay", "story-fixed"))
    asked["args"]["slots"] = [9]
    with pytest.raises(Eagle3Error, match=r"ended with code 1.*worker\.log"):
        child.ask(asked, no_progress, threading.Event())
    asked["args"]["slots"] = [0, 1, 2]
    assert child.ask(asked, no_progress, threading.Event())


def test_a_worker_that_left_is_replaced(child, shared):
    asked = questions.payload(shared, Question("features", "story-fixed"))
    child.ask(asked, no_progress, threading.Event())
    child._process.stdin.close()  # as it leaves when it was idle: by itself, with code 0
    child._process.wait()
    child._process.stdin = subprocess.Popen(["true"], stdin=subprocess.PIPE, text=True).stdin
    assert child.ask(asked, no_progress, threading.Event())


def test_an_allocation_beyond_the_machine_is_an_error_in_words():
    code = """
import torch
from eagle3dash.errors import Eagle3Error
from eagle3dash.jobs import worker
from eagle3dash.jobs.tasks.shortage import shortage_told
worker._limit_memory()
try:
    with shortage_told("cpu"):
        torch.empty(1 << 45, dtype=torch.uint8)
except Eagle3Error as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert "Not enough memory on cpu" in done.stdout, done.stderr


def test_the_worker_goes_when_its_owner_goes():
    process = subprocess.Popen(
        [sys.executable, "-m", "eagle3dash.jobs.worker", "cpu"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    process.stdin.close()
    assert process.wait(60) == 0
