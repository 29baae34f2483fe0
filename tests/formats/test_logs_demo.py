"""The demo's own server files: what vLLM really served, from three sources that must agree."""

from collections import Counter
from pathlib import Path

import pytest

from eagle3dash.formats.logs import parse, sniff

DEMO = Path(__file__).parents[2] / "data" / "demo"
SNAPSHOTS = ("metrics_before.txt", "metrics_after.txt")
SERVED = {"story-as-served": (445, 6811, [2, 15, 27]), "story-fixed": (3177, 4117, [0, 2, 15])}


def read(story, *names):
    paths = [DEMO / story / "server" / name for name in names]
    return parse(paths, sniff(paths[0].read_bytes()[:65536], names[0]))


@pytest.mark.parametrize("story", SERVED)
@pytest.mark.parametrize("names", [SNAPSHOTS, SNAPSHOTS[::-1]])
def test_two_snapshots_are_subtracted_in_any_order(story, names):
    accepted, rounds, _ = SERVED[story]
    log = read(story, *names).log
    assert (log.format, log.engine, log.steps) == ("prometheus", "vllm", 4)
    (window,) = log.windows
    assert (window.accepted, window.rounds, window.drafted, window.cumulative) == (accepted, rounds, 4 * rounds, False)
    assert window.accept_length == pytest.approx(1 + accepted / rounds)
    assert window.acceptance_rate == pytest.approx(accepted / (4 * rounds))
    assert 1 + sum(window.survival) == pytest.approx(window.accept_length)


def test_one_snapshot_is_cumulative():
    parsed = read("story-fixed", "metrics_after.txt")
    assert parsed.log.windows[0].cumulative
    assert any("since the server started" in one.value for one in parsed.inferred)


@pytest.mark.parametrize("story", SERVED)
def test_responses_give_every_round(story):
    accepted, rounds, _ = SERVED[story]
    parsed = read(story, "responses.jsonl")
    log = parsed.log
    assert parsed.problems == ()
    assert (log.format, log.engine, log.version, log.steps) == ("responses", "vllm", "0.32.0", 4)
    assert len(log.requests) == len(log.windows) == 50
    spread = Counter(n for request in log.requests for n in request.accepted)
    assert sum(spread.values()) == rounds
    assert sum(n * times for n, times in spread.items()) == accepted
    histogram = [sum(w.extra["histogram"][i] for w in log.windows) for i in range(5)]
    assert histogram == [spread[i] for i in range(5)]
    assert {n for request in log.requests for n in request.drafted} <= {1, 2, 3, 4}
    assert all(request.prompt_tokens and request.completion_tokens for request in log.requests)


@pytest.mark.parametrize("story", SERVED)
def test_server_log(story):
    _, _, layers = SERVED[story]
    parsed = read(story, "server.log")
    log = parsed.log
    assert parsed.problems == ()
    assert (log.format, log.engine, log.version, log.steps) == ("vllm-log", "vllm", "0.32.0", 4)
    assert log.settings["aux_layers"] == layers
    wanted = {"method": "eagle3", "num_speculative_tokens": 4, "dtype": "bfloat16", "tp": 1, "dp": 1, "enforce_eager": True}
    assert wanted.items() <= log.settings.items()
    assert (log.settings["embed_tokens"], log.settings["lm_head"]) == ("shared with the target", "own")
    assert {w["id"] for w in log.settings["warnings"]} == {"draft-length", "sampling-limits"}
    text = (DEMO / story / "server" / "server.log").read_text()
    assert len(log.windows) == text.count("SpecDecoding metrics")
    for window in log.windows:
        assert window.rank == "Engine 000"
        assert window.running is not None
        assert window.throughput is not None
        assert 1 + window.accepted / window.rounds == pytest.approx(window.accept_length, abs=0.006)


def test_server_log_adds_up_to_the_counters():
    log = read("story-fixed", "server.log").log
    total = 1 + sum(w.accepted for w in log.windows) / sum(w.rounds for w in log.windows)
    assert total == pytest.approx(1 + 3177 / 4117, abs=0.01)
