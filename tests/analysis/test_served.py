"""The served number: which source wins, what is pooled and how; and what a training accuracy promises."""

import json
from pathlib import Path

import pytest

from eagle3dash.analysis.served import expected, one_tensor_rank, served, steps_of
from eagle3dash.errors import BadInput
from eagle3dash.records import Log, Request, Window

DEMO = Path(__file__).parents[2] / "data" / "demo"


def demo_requests(story):
    lines = (DEMO / story / "server" / "responses.jsonl").read_text().splitlines()
    found = [json.loads(line)["metrics"]["speculative_decoding"] for line in lines if line.strip()]
    return tuple(Request(str(i), tuple(m["per_step_accepted"]), tuple(m["per_step_drafted"])) for i, m in enumerate(found))


def window(length, **more):
    return Window(line=1, accept_length=length, **more)


def test_the_demo_servers_accepted_what_their_counters_say():
    fixed = served([Log("vllm-responses", "vllm", requests=demo_requests("story-fixed"))])
    assert (fixed["rounds"], fixed["accept_length"]) == (4117, pytest.approx(1 + 3177 / 4117))
    assert fixed["steps"] == 4 and sum(fixed["histogram"]) == 4117
    assert fixed["survival"] == pytest.approx([1723 / 4117, 789 / 4117, 416 / 4117, 249 / 4117])
    assert fixed["low"] < 1.7717 < fixed["high"] and fixed["high"] - fixed["low"] < 0.3
    broken = served([Log("vllm-responses", "vllm", requests=demo_requests("story-as-served"))])
    assert broken["accept_length"] == pytest.approx(1 + 445 / 6811)


def test_nothing_logged_is_none():
    assert served([]) is None and served([Log("vllm", "vllm")]) is None and steps_of([]) is None


def test_requests_beat_counters_beat_windows():
    lines = Log("vllm", "vllm", windows=(window(1.5, drafted=40, accepted=5, survival=(0.3, 0.2)),))
    counters = Log("prometheus", "vllm", windows=(window(1.6, rounds=10, accepted=6, drafted=20),))
    requests = Log("vllm-responses", "vllm", requests=(Request("a", (2, 0, 1), (2, 2, 2)),), settings={"temperature": 0})
    assert served([lines])["source"] == "windows"
    assert served([lines, counters])["source"] == "counters"
    best = served([lines, counters, requests])
    assert best["source"] == "requests" and best["histogram"] == [1, 1, 1] and best["settings"] == {"temperature": 0}
    assert [other["source"] for other in best["others"]] == ["counters", "windows"]
    assert served([lines])["histogram"] is None


def test_windows_are_weighted_by_rounds_and_warm_up_is_left_out():
    log = Log(
        "vllm",
        "vllm",
        steps=2,
        windows=(
            window(3.0, drafted=2, warmup=True),
            window(1.0, drafted=20, survival=(0.0, 0.0)),
            window(2.0, drafted=60, survival=(0.6, 0.4)),
        ),
    )
    answer = served([log])
    assert answer["accept_length"] == pytest.approx(1.75) and answer["rounds"] == 40
    assert answer["survival"] == pytest.approx([0.45, 0.3]) and answer["alpha"] == pytest.approx([0.45, 2 / 3])
    assert "drafted tokens" in answer["label"]


def test_windows_without_counts_weigh_by_running_requests_else_equally():
    log = Log("sglang", "sglang", windows=(window(2.0, running=1), window(3.0, running=3)))
    assert served([log])["accept_length"] == pytest.approx(2.75) and served([log])["rounds"] is None
    log = Log("sglang", "sglang", windows=(window(2.0), window(3.0, running=3)))
    assert served([log])["accept_length"] == pytest.approx(2.5) and "equal" in served([log])["label"]


def test_windows_of_requests_are_not_log_lines():
    both = Log("responses", "vllm", windows=(window(1.5, rounds=2),), requests=(Request("a", (1, 0), (1, 1)),))
    assert served([both])["others"] == []


def test_tensor_ranks_are_one_and_data_ranks_are_many():
    lines = [window(2.0, rank=r) for r in ("DP0 TP0", "DP0 TP1", "DP1 TP2", "DP1 TP3")] + [window(2.0)]
    assert [w.rank for w in one_tensor_rank(lines)] == ["DP0 TP0", "DP1 TP2", None]


def test_cumulative_counters_are_differenced_by_rank_and_survive_a_restart():
    before = window(1.0, rank="0", rounds=10, accepted=0, drafted=20, survival=(0.0, 0.0), cumulative=True)
    after = window(1.5, rank="0", rounds=20, accepted=10, drafted=40, survival=(0.3, 0.2), cumulative=True)
    answer = served([Log("prometheus", "vllm", windows=(before, after))])
    assert answer["accept_length"] == pytest.approx(2.0) and answer["rounds"] == 10
    assert answer["survival"] == pytest.approx([0.6, 0.4]) and "two snapshots" in answer["label"]
    assert served([Log("prometheus", "vllm", windows=(after,))])["label"] == "counters since the server started"
    assert served([Log("prometheus", "vllm", windows=(after, before))])["rounds"] == 10  # the counter was reset


def test_one_number_is_the_acceptance_of_every_step():
    answer = expected({"expected": 0.5}, 3)
    assert answer["accept_length"] == pytest.approx(1.875) and answer["kind"] == "one number"
    assert expected({"expected": 74.7}, 1)["accept_length"] == pytest.approx(1.747)
    assert expected({}, 3) is None


def test_a_list_is_read_as_it_says_and_runs_on_with_its_last_step():
    cumulative = {"expected": [0.479, 0.262, 0.150, 0.094], "expected_kind": "cumulative"}
    assert expected(cumulative, 4)["accept_length"] == pytest.approx(1.985)
    assert expected(cumulative, 2)["survival"] == pytest.approx([0.479, 0.262])
    conditional = expected({"expected": [0.5, 0.4], "expected_kind": "conditional"}, 3)
    assert conditional["survival"] == pytest.approx([0.5, 0.2, 0.08]) and "steps 2..2" in conditional["label"]
    for bad in (-0.1, [0.3, "x"], 101):
        with pytest.raises(BadInput, match="expected accuracy"):
            expected({"expected": bad}, 3)


@pytest.mark.parametrize(
    "given, kind, match",
    [
        (1.5e3, None, "0..1"),
        (-0.1, None, "0..1"),
        (float("nan"), None, "0..1"),
        ("much", None, "0..1"),
        ([0.2, 0.5], "cumulative", "never rise"),
        (0.5, "total", "conditional or cumulative"),
    ],
)
def test_an_expectation_that_cannot_be(given, kind, match):
    with pytest.raises(BadInput, match=match):
        expected({"expected": given, "expected_kind": kind}, 3)
