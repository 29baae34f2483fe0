"""Logs that are too long, torn, binary or made to hang: bounded memory and time, and what was left out is said."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eagle3dash.errors import BadInput
from eagle3dash.formats.logs import parse, sniff, text
from eagle3dash.formats.logs.lines import CAP, LABEL, NUMBER
from eagle3dash.records import to_json

LINE = (
    b"[2026-01-01 10:00:0%d TP0] Decode batch, #running-req: 4, accept len: 2.83, accept rate: 0.61, "
    b"gen throughput (token/s): 9.5\n"
)
ROOT = Path(__file__).parents[2]


def read(tmp_path, raw, form="text", name="a.log"):
    path = tmp_path / name
    path.write_bytes(raw)
    return parse([path], form)


def grown(path, form):
    """MiB by which reading `path` raises the peak memory of a process of its own, and seconds."""
    code = (
        "import resource, sys, time; from pathlib import Path; from eagle3dash.formats.logs import parse\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "start, began = peak(), time.process_time(); log = parse([Path(sys.argv[1])], sys.argv[2]).log\n"
        "print(peak() - start, time.process_time() - began, len(log.windows))"
    )
    command = [sys.executable, "-c", code, str(path), form]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [float(part) for part in done.stdout.split()]


@pytest.mark.parametrize("form", ["text", "responses"])
def test_a_line_of_300_mb_costs_no_memory(tmp_path, form):
    path = tmp_path / "long.log"
    reply = b'{"speculative_decoding": {"num_spec_steps": 2, "num_accepted_draft_tokens": 1, "num_draft_tokens": 6}}\n'
    good = LINE % 1 if form == "text" else reply
    with path.open("wb") as file:
        file.write(good)
        for _ in range(300):
            file.write(b"accept len: 2.0, " + b"x" * ((1 << 20) - 17))
        file.write(b"\n" + good)
    memory, _, windows = grown(path, form)
    assert memory <= 64
    assert windows == 2


def test_many_windows_are_thinned_within_memory(tmp_path):
    path = tmp_path / "busy.log"
    path.write_bytes(b"".join(LINE % (i % 10) for i in range(50_000)))
    memory, _, windows = grown(path, "text")
    assert memory <= 96
    assert 10_000 < windows <= 40_000


def test_uninteresting_lines_go_by_at_20_mb_a_second(tmp_path):
    path = tmp_path / "access.log"
    path.write_bytes(b'INFO:     127.0.0.1:40604 - "POST /v1/completions HTTP/1.1" 200 OK\n' * 600_000 + LINE % 1)
    memory, seconds, windows = grown(path, "text")
    assert windows == 1
    assert memory <= 64
    assert path.stat().st_size / 1e6 / seconds >= 20


def test_long_lines_are_counted_and_numbers_stay_right(tmp_path):
    parsed = read(tmp_path, b"x" * (CAP + 1) + b"\n" + LINE % 1 + b"accept len: 2.0" * 9000 + b"\n\n" + LINE % 2)
    assert [w.line for w in parsed.log.windows] == [2, 5]
    assert parsed.problems[0].startswith("2 lines above the length limit")


def test_torn_bytes(tmp_path):
    torn = LINE.replace(b"Decode", b"\x00Decode\x00") % 1 + b"\x1b]0;title\x07\x1b[1m" + LINE % 2
    parsed = read(tmp_path, b"first\n\xff\xfe\x00 junk \x00\x00\n" + torn)
    assert [w.accept_length for w in parsed.log.windows] == [2.83, 2.83]


def test_utf16_as_powershell_writes_it(tmp_path):
    raw = (LINE % 1).decode().encode("utf-16")
    assert sniff(raw, "a.log") == "text"
    assert read(tmp_path, raw).log.windows[0].accept_length == 2.83


def test_carriage_returns_and_glued_ranks(tmp_path):
    other = (LINE % 2).replace(b"TP0", b"DP1 TP1")
    bar = b"Loading: 10%|#   |\rLoading: 100%|####|\r"
    windows = read(tmp_path, bar + (LINE % 1).strip() + other).log.windows
    assert [w.rank for w in windows] == ["TP0", "DP1 TP1"]


def test_truncated_json_lines(tmp_path):
    good = b'{"id": "a", "speculative_decoding": {"num_spec_steps": 2, "per_step_accepted": [1, 0]}}\n'
    parsed = read(tmp_path, good + good[:70], "responses", "r.jsonl")
    assert len(parsed.log.requests) == 1
    assert any("not whole JSON" in problem for problem in parsed.problems)


def test_deep_json_does_not_recurse(tmp_path):
    good = b'{"id": "a", "speculative_decoding": {"num_spec_steps": 1, "per_step_accepted": [1]}}\n'
    parsed = read(tmp_path, good + b"[" * 200_000 + b"]" * 200_000 + b"\n", "responses", "r.jsonl")
    assert len(parsed.log.requests) == 1


def test_numbers_that_cannot_be(tmp_path):
    raw = b'{"speculative_decoding": {"num_spec_steps": -3, "per_step_accepted": [1, -1], "mean_acceptance_length": 1e999}}'
    parsed = read(tmp_path, raw, "responses", "r.jsonl")
    assert all(w.accept_length is None and w.rounds is None for w in parsed.log.windows)
    assert parsed.log.requests == ()


TRAPS = [b"a " * 30_000, b"a" * 60_000, b"a:" * 30_000, b"(" * 60_000, b"accept len " * 5000, b"\x1b[" * 30_000]
HEADS = [b"Decode batch", b"SpecDecoding metrics: ", b"ServerArgs(", b"draft acceptance", b"temperature", b"acc_length"]


@pytest.mark.parametrize("trap", TRAPS)
def test_no_pattern_hangs(tmp_path, trap):
    began = time.process_time()
    for head in HEADS:
        path = tmp_path / "trap.log"
        path.write_bytes(head + trap + b"\n")
        sniff(head + trap, "trap.log")
        try:
            parse([path], "text")
        except BadInput as error:
            assert "trap.log" in str(error)
    assert time.process_time() - began < 6


def test_a_rate_above_one_is_left_out_and_said(tmp_path):
    raw = b"num_drafts: 675\nnum_draft_tokens: 20\nnum_accepted_tokens: 1722\nmean acceptance length: 3.55\n"
    parsed = read(tmp_path, raw)
    assert (parsed.log.windows[0].acceptance_rate, parsed.log.windows[0].accepted) == (None, 1722)
    assert any("more tokens accepted than drafted" in problem for problem in parsed.problems)


DAMAGE = (b"", b",", b":", b"nan", b"1e999", b"\n", b"\r", b"\x00", b"\xff")


@pytest.mark.parametrize("seed", range(3))
def test_damaged_lines_never_raise_or_lie(tmp_path, seed):
    """Bytes deleted, changed and put in at random: a window is possible or absent, and the record is valid JSON."""
    rng = random.Random(seed)
    raw = (Path(__file__).parent / "loglines.txt").read_bytes().splitlines(keepends=True)
    raw = [line for line in raw if not line.startswith(b"#@")]
    for _ in range(150):
        data = bytearray(b"".join(rng.sample(raw, 5)))
        for _ in range(4):
            at = rng.randrange(len(data))
            data[at : at + rng.choice((0, 1, 30))] = rng.choice(DAMAGE)
        try:
            log = read(tmp_path, bytes(data)).log
        except BadInput:
            continue
        json.dumps(to_json(log), allow_nan=False)
        assert all(w.accept_length is None or w.accept_length >= 1 for w in log.windows)
        assert all(w.acceptance_rate is None or 0 <= w.acceptance_rate <= 1 for w in log.windows)


def test_every_mark_is_found_by_the_prefilter():
    assert [mark for mark, _ in text.MARKS if not any(core in mark for core in text.CORES)] == []


OTHERS = [b"\x80\x02}q\x00." * 50, b"GGUF\x03\x00\x00\x00" + bytes(range(256)) * 8, b"# notes\nall is well\n", b""]


@pytest.mark.parametrize("raw", OTHERS)
def test_other_files_are_no_logs(raw):
    assert sniff(raw, "notes.md") is None


def test_text_without_a_known_word_is_refused(tmp_path):
    with pytest.raises(BadInput, match="a.log"):
        read(tmp_path, b"hello\nworld\n")


def test_patterns_are_linear():
    assert LABEL.findall("a " * 2000) == []
    assert NUMBER.match("9" * 100_000).end() <= 41
