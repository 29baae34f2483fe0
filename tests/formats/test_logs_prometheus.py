"""Snapshots of metrics endpoints: those of one server are subtracted, those of two are kept apart."""

import pytest

from eagle3dash.formats.logs import parse

SAMPLES = (
    'vllm:spec_decode_num_drafts_total{{engine="{engine}",model_name="{model}"}} {rounds}\n'
    'vllm:spec_decode_num_draft_tokens_total{{engine="{engine}",model_name="{model}"}} {drafted}\n'
    'vllm:spec_decode_num_accepted_tokens_total{{engine="{engine}",model_name="{model}"}} {accepted}\n'
)


def shot(rounds, accepted, engine=0, model="a"):
    return SAMPLES.format(engine=engine, model=model, rounds=rounds, drafted=4 * rounds, accepted=accepted)


def read(tmp_path, *texts):
    paths = [tmp_path / f"metrics_{i}.txt" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return parse(paths, "prometheus")


def test_two_snapshots_of_one_server_in_any_order(tmp_path):
    for texts in ((shot(100, 50), shot(300, 250)), (shot(300, 250), shot(100, 50))):
        log, _, problems = read(tmp_path, *texts)
        assert [(w.rounds, w.accepted, w.accept_length, w.cumulative) for w in log.windows] == [(200, 200, 2.0, False)]
        assert not problems


@pytest.mark.parametrize("other", [{"model": "b"}, {"engine": 1}], ids=["model", "engine"])
def test_two_servers_are_not_subtracted(tmp_path, other):
    log, _, problems = read(tmp_path, shot(100, 50), shot(300, 250, **other))
    assert sorted((w.rounds, w.accepted, w.cumulative) for w in log.windows) == [(100, 50, True), (300, 250, True)]
    assert len({w.rank for w in log.windows}) == 2
    assert any("2 servers" in problem for problem in problems)


def test_two_snapshots_of_each_of_two_servers(tmp_path):
    texts = (shot(100, 50), shot(110, 99, model="b"), shot(300, 250), shot(210, 109, model="b"))
    log, _, problems = read(tmp_path, *texts)
    assert sorted((w.rounds, w.accepted, w.cumulative) for w in log.windows) == [(100, 10, False), (200, 200, False)]
    assert any("2 servers" in problem for problem in problems)


def test_two_engines_of_one_server_in_both_snapshots(tmp_path):
    before, after = shot(10, 5) + shot(20, 5, engine=1), shot(30, 25) + shot(60, 25, engine=1)
    log, _, problems = read(tmp_path, before, after)
    assert [(w.rank, w.rounds, w.accepted) for w in log.windows] == [("Engine 000", 20, 20), ("Engine 001", 40, 20)]
    assert not problems


def test_counters_that_do_not_only_grow_are_not_subtracted(tmp_path):
    log, _, problems = read(tmp_path, shot(100, 250), shot(300, 60))
    assert [(w.rounds, w.accepted) for w in log.windows] == [(300, 60)]
    assert any("smaller in the later snapshot" in problem and "two servers" in problem for problem in problems)
