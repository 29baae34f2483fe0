"""Acceptance forensics from logs alone: texts as SGLang and vLLM write them, through the log reader, to findings."""

import json

import numpy as np
import pytest

from eagle3dash.analysis.findings import Evidence, diagnose
from eagle3dash.formats import logs
from eagle3dash.records import Import

K = 4


def rounds_of(first, later, count, seed):
    """num_accepted of `count` rounds: P(step 0 right) = first, each later one `later`."""
    draws = np.random.default_rng(seed).random((count, K)) < [first, *[later] * (K - 1)]  # [count, K]
    return np.cumprod(draws, axis=1).sum(axis=1)


def sglang(lengths, running=None, graph=None, prefills=None, rank="TP0", minute=0):
    lines = []
    for i, length in enumerate(lengths):
        time = f"2026-11-30 10:{minute + i // 60:02d}:{i % 60:02d}"
        if prefills:
            new, cached = prefills[i]
            lines.append(
                f"[{time} {rank}] Prefill batch, #new-seq: 1, #new-token: {new}, #cached-token: {cached}, "
                "token usage: 0.01, #running-req: 1, #queue-req: 0"
            )
        n, on = running[i] if running else 8, graph[i] if graph else True
        lines.append(
            f"[{time} {rank}] Decode batch, #running-req: {n}, #token: {n * 900}, token usage: 0.04, accept len: "
            f"{length:.2f}, accept rate: {(length - 1) / K:.2f}, cuda graph: {on}, gen throughput (token/s): "
            f"{n * 40 * length:.2f}, #queue-req: 0"
        )
    return "\n".join(lines) + "\n"


def vllm(parts):
    lines = []
    for i, accepted in enumerate(parts):
        rates = ", ".join(f"{(accepted > step).mean():.3f}" for step in range(K))
        total, drafted = int(accepted.sum()), K * len(accepted)
        lines.append(
            f"(APIServer pid=1) INFO 11-30 10:{i // 6:02d}:{i % 6}0 [metrics.py:120] SpecDecoding metrics: Mean acceptance "
            f"length: {1 + accepted.mean():.2f}, Accepted throughput: {total / 10:.2f} tokens/s, Drafted throughput: "
            f"{drafted / 10:.2f} tokens/s, Accepted: {total} tokens, Drafted: {drafted} tokens, Per-position acceptance "
            f"rate: {rates}, Avg Draft acceptance rate: {100 * total / drafted:.1f}%"
        )
    return "\n".join(lines) + "\n"


def replies(requests):
    """vLLM replies with detailed metrics: (accepted of each round, prompt tokens, token ids or None)."""
    lines = []
    for i, (accepted, prompt, ids) in enumerate(requests):
        told = {
            "mean_acceptance_length": 1 + float(np.mean(accepted)),
            "num_spec_tokens": K,
            "num_spec_steps": len(accepted),
            "num_accepted_draft_tokens": int(np.sum(accepted)),
            "num_draft_tokens": K * len(accepted),
            "per_step_accepted": [int(n) for n in accepted],
            "per_step_drafted": [K] * len(accepted),
        }
        choice = {"index": 0, "text": "..", "token_ids": ids}
        usage = {"prompt_tokens": prompt, "completion_tokens": int(np.sum(accepted)) + len(accepted)}
        lines.append({"id": f"r{i}", "choices": [choice], "usage": usage, "metrics": {"speculative_decoding": told}})
    return "\n".join(map(json.dumps, lines)) + "\n"


@pytest.fixture
def judged(tmp_path):
    """Text of a log -> the diagnosis of a run that has nothing else."""

    def judge(text, name="server.log"):
        path = tmp_path / name
        path.write_text(text)
        kind = logs.sniff(path.read_bytes()[:65536], name)
        assert kind is not None
        record = logs.parse([path], kind).log
        return diagnose(Evidence(record.steps or K, logs=(Import("log", name, "0" * 64, (), record),)))

    return judge


def found(document):
    return [finding["id"] for finding in document["findings"]]


def gaps(document):
    return {gap["id"]: gap["needs"] for gap in document["could_not_check"]}


WAVE = [2.31, 2.25, 2.38, 2.29, 2.34, 2.22, 2.36, 2.27, 2.33, 2.30, 2.26, 2.35]


def test_an_even_healthy_log_shows_nothing(judged):
    assert found(judged(sglang(WAVE * 3))) == []
    parts = np.array_split(rounds_of(0.7, 0.6, 6000, 1), 20)
    assert found(judged(vllm(parts))) == []


def test_graphs_load_and_cached_prompts_are_told_apart(judged):
    low = [length - 0.9 for length in WAVE]
    mixed = [x for pair in zip(WAVE, low, strict=True) for x in pair]
    flags = [False, True] * 12
    document = judged(sglang(mixed, graph=flags))
    assert found(document)[0] == "graph-loss"
    assert "with CUDA graphs, 2.30 without" in document["findings"][0]["title"]
    assert "speed-not-acceptance" in found(document)
    document = judged(sglang(mixed, running=[2, 24] * 12))
    assert found(document) == ["load-loss"]
    assert "one at a time" in document["findings"][0]["fix"]
    document = judged(sglang(mixed, prefills=[(900, 0), (10, 900)] * 12))
    assert found(document) == ["cache-loss"]
    assert "prefix cache off" in document["findings"][0]["fix"]


def test_a_fall_says_when_and_what_else_changed(judged):
    falling = [*WAVE, *[length - 0.7 for length in WAVE]]
    document = judged(sglang(falling, running=[4] * 12 + [16] * 12))
    trend = next(f for f in document["findings"] if f["id"] == "acceptance-trend")
    assert trend["evidence"]["falls_at_line"] == 13
    assert trend["evidence"]["running_requests"] == [4.0, 16.0]
    assert trend["evidence"]["share_of_variance"] > 0.9


def test_a_short_log_says_that_it_is_short(judged):
    document = judged(sglang(WAVE[:4]))
    assert found(document) == []
    assert "12 windows" in gaps(document)["acceptance-trend"]
    assert "several data-parallel ranks" in gaps(document)["ranks-differ"]
    assert "prefill lines" in gaps(document)["cache-loss"]


def test_one_rank_of_two_is_slow_and_copies_of_a_rank_are_not_ranks(judged):
    slow = sglang([length - 0.8 for length in WAVE], rank="DP1 TP1")
    assert "ranks-differ" in found(judged(sglang(WAVE, rank="DP0 TP0") + slow))
    assert "ranks-differ" in gaps(judged(sglang(WAVE, rank="TP0") + sglang(WAVE, rank="TP1")))


def test_dead_pinned_constant_and_simulated(judged):
    dead = np.array_split(rounds_of(0.05, 0.1, 6000, 2), 20)
    assert found(judged(vllm(dead)))[0] == "dead-acceptance"
    assert found(judged(sglang([1.0] * 20)))[0] == "pinned-acceptance"
    document = judged(sglang([2.5] * 20))
    assert found(document) == ["pinned-acceptance"]
    assert document["findings"][0]["severity"] == "warning"
    document = judged("SGLANG_SIMULATE_ACC_LEN=2.5\n" + sglang(WAVE))
    assert "simulates" in document["findings"][0]["title"]


def test_only_the_first_token_is_accepted(judged):
    document = judged(vllm(np.array_split(rounds_of(0.7, 0.1, 6000, 3), 20)))
    assert found(document) == ["position-cliff"]
    assert "Only the first drafted token" in document["findings"][0]["title"]
    assert "a replay shows" in document["findings"][0]["fix"]


def test_long_prompts_and_first_rounds(judged):
    good, bad = (lambda i: rounds_of(0.7, 0.6, 60, i)), (lambda i: rounds_of(0.2, 0.2, 60, i))
    requests = [(good(i), 100 + i, None) for i in range(15)] + [(bad(i), 3000 + i, None) for i in range(15)]
    assert found(judged(replies(requests), "replies.jsonl")) == ["length-loss"]
    first = [(np.concatenate([[0], good(i)]), 100, None) for i in range(40)]
    assert found(judged(replies(first), "replies.jsonl")) == ["first-round-loss"]
    assert found(judged(replies([(good(i), 100, None) for i in range(40)]), "replies.jsonl")) == []


def test_answers_that_loop_are_what_is_accepted(judged):
    loop, text = [7, 8, 9, 10] * 60, np.random.default_rng(5).integers(0, 9000, 240).tolist()
    requests = [(np.full(60, K), 100, loop) for _ in range(8)]
    requests += [(rounds_of(0.4, 0.3, 60, i), 100, text) for i in range(8)]
    document = judged(replies(requests), "replies.jsonl")
    told = next(f for f in document["findings"] if f["id"] == "too-good-acceptance")
    assert told["evidence"]["answers_that_repeat"] == 8
    assert "repeat themselves" in told["title"]


def test_a_rate_that_changes_its_meaning_within_the_log(judged):
    old = sglang(WAVE)
    for length in WAVE:
        new = f"{length:.2f}, accept rate: "
        old = old.replace(f"{new}{(length - 1) / K:.2f}", f"{new}{length / (K + 1):.2f}")
    document = judged(old + sglang(WAVE, minute=5))
    told = next(f for f in document["findings"] if f["id"] == "metric-definition")
    assert "line 13" in told["evidence"]["definitions"]["changes"]


def test_what_could_not_be_checked_says_what_there_is(judged):
    short = gaps(judged(sglang(WAVE[:9])))
    assert short["acceptance-trend"] == "add a longer log: 12 windows or more over time (here 9)"
    assert "(here 9)" in short["load-loss"] and "15 or more windows that state the running requests" in short["load-loss"]
    assert "(here 9 with and 0 without; serve once with them off)" in short["graph-loss"]
    even = gaps(judged(sglang(WAVE * 2)))
    assert "of the 24 here a third has up to 8, a third 8 or more running requests: too much alike" in even["load-loss"]
    alike = gaps(judged(replies([(rounds_of(0.05, 0.05, 60, i), 40 + i % 2, None) for i in range(50)]), "replies.jsonl"))
    assert "of the 50 here a third has up to 40, a third 41 or more tokens: too much alike" in alike["length-loss"]
    assert alike["first-round-loss"].startswith("add more responses: the first rounds of these 50 should hold ")
    assert all(told.startswith("add ") for told in {**short, **even, **alike}.values())
