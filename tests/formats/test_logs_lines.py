"""Every line of loglines.txt parses to its expected values: alone, and all lines of an issue together."""

import json
from pathlib import Path

import pytest

from eagle3dash.formats.logs import parse, sniff
from eagle3dash.formats.logs.rates import NEW, OLD

FILE = Path(__file__).parent / "loglines.txt"
WORDS = {
    "accept_len/num_draft_tokens (bonus counted)": OLD,
    "(accept_len-1)/k (bonus not counted)": NEW,
    "neither definition fits an integer k": "unknown",
}
PLAIN = {  # expected key -> key of Window.extra
    key: key
    for key in (
        "queue", "tokens", "cuda_graph", "retracted", "transfer", "forward_ct", "spec_tokens", "spec_rounds", "questions",
        "latency_s", "engine_id", "waiting", "slot", "task", "iter", "rank", "num_generation_tokens", "elapsed_s",
        "num_scheduled_requests", "train_acc", "train_loss", "tau_sim", "step", "histogram", "accepted_throughput",
        "drafted_throughput", "emitted", "system_efficiency", "output_tokens", "generate_calls", "ranks",
    )
} | {"ts_outer": "time_outer"}  # fmt: skip
SELDOM = {"cached_tokens", "new_tokens", "engine_id_from_previous_line", "labels_used"}  # lines without a window; context


def entries():
    raw = FILE.read_bytes().split(b"\n")
    at = 0
    while at < len(raw):
        line, at = raw[at], at + 1
        if line.startswith(b"#@ "):
            entry = json.loads(line[3:])
            yield entry | {"raw": b"\n".join(raw[at : at + entry["lines"]]) + b"\n"}
            at += entry["lines"]


ENTRIES = list(entries())


def ident(entry):
    return f"{entry['engine']}-{entry['kind']}-{entry['source'][:30]}"


def read(tmp_path, raw, name="part.txt"):
    path = tmp_path / name
    path.write_bytes(raw)
    form = sniff(raw[:65536], name)
    assert form is not None, "not recognised"
    return parse([path], form)


def test_all_entries_are_there():
    assert len(ENTRIES) == 80


@pytest.mark.parametrize("entry", ENTRIES, ids=ident)
def test_every_expected_value(tmp_path, entry):
    parsed = read(tmp_path, entry["raw"])
    log, expect = parsed.log, dict(entry["expect"])
    assert log.engine == entry["engine"].removesuffix("-ascend").removesuffix("-jax")
    windows = log.windows
    if entry["kind"] in ("prefill", "noise", "evidence"):
        assert windows == ()
        if "finding" in expect:
            assert log.settings["tp_ranks_disagree_on_embed_sharing"]
        return
    if expect.pop("parse_warning", False):
        assert parsed.problems
        assert all(w.accept_length is None and w.running is None for w in windows)
        return
    assert len(windows) == 1
    for key in SELDOM & expect.keys():
        expect.pop(key)
    for key, value in expect.items():
        check(key, value, windows[0], log, parsed.problems, entry)


def check(key, value, window, log, problems, entry):
    got = {
        "ts": window.time,
        "accept_len": window.accept_length,
        "accepted": window.accepted,
        "drafted": window.drafted,
        "running": window.running,
        "gen_throughput": window.throughput,
        "per_position": None if window.survival is None else list(window.survival),
        "k": log.steps,
        "k_implied": log.steps,
        "num_draft_tokens_implied": None if log.steps is None else log.steps + 1,
        "drafts": window.rounds,
        "verify_steps": window.rounds,
        "cumulative": window.cumulative,
        "accept_rate": window.extra.get("accept_rate", window.acceptance_rate),
    }
    if key in got:
        derived = key == "accept_len" and entry["kind"] in ("spec_v0", "statistics")
        wanted, slack = value, 0.006 if derived else 6e-4
        if key == "per_position" and value is not None:  # no drafts: nothing; padding beyond K: not failures
            wanted = None if None in value else value[: log.steps]
        assert got[key] == (wanted if wanted is None or isinstance(wanted, str) else pytest.approx(wanted, abs=slack)), key
    elif key in PLAIN:
        assert window.extra.get(PLAIN[key], {} if key == "ranks" else None) == value, key
    elif key == "accept_rate_definition":
        assert log.definitions["accept_rate"] == WORDS[value]
    elif key == "accept_rate_derived":
        assert window.accepted / window.drafted == pytest.approx(value, abs=1e-4)
    elif key == "inconsistent":
        assert any("inconsistent" in problem for problem in problems)
    else:
        assert key == "duplicate_of_tp0", f"{key} of {entry['source']} is not tested"


@pytest.mark.parametrize("entry", [e for e in ENTRIES if "accept_rate_definition" in e["expect"]], ids=ident)
def test_acceptance_rate_is_accepted_over_drafted_under_both_definitions(tmp_path, entry):
    parsed = read(tmp_path, entry["raw"])
    window, kind = parsed.log.windows[0], WORDS[entry["expect"]["accept_rate_definition"]]
    if kind == "unknown":
        assert window.acceptance_rate is None
        assert any("inconsistent" in problem for problem in parsed.problems)
    else:
        assert window.acceptance_rate == pytest.approx((window.accept_length - 1) / parsed.log.steps, abs=0.0075)


PREFIXES = [b"sglang-1  | ", b"2026-07-30T13:35:13.123456789Z stderr F ", b"[pod/s-0/main] ", b"\x1b[32mX\x1b[0m "]
STAMPED = [entry for entry in ENTRIES if entry["kind"] in ("decode", "spec_v1") and entry["expect"].get("ts")]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("entry", STAMPED, ids=ident)
def test_prefixes_change_nothing(tmp_path, entry, prefix):
    bare = read(tmp_path, entry["raw"]).log.windows
    wrapped = read(tmp_path, b"".join(prefix + line + b"\n" for line in entry["raw"].splitlines())).log.windows
    for a, b in zip(bare, wrapped, strict=True):
        assert (a.time, a.rank, a.accept_length, a.acceptance_rate, a.survival, a.running) == (
            b.time, b.rank, b.accept_length, b.acceptance_rate, b.survival, b.running)  # fmt: skip
