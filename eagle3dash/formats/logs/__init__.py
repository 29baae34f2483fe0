"""Acceptance logs -> records.Log: server logs, metrics endpoints, replies with acceptance, benchmark summaries.

`sniff` says what a file is from its first bytes, `parse` reads it. Neither keeps a line, a prompt or an answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eagle3dash.errors import BadInput
from eagle3dash.formats.logs import benches, prometheus, responses, startup, table, text
from eagle3dash.formats.logs.collect import Found, Parsed
from eagle3dash.formats.logs.lines import Tally
from eagle3dash.formats.logs.objects import KEYS
from eagle3dash.records import Log, Progress, Window, no_progress

__all__ = ["Parsed", "parse", "sniff"]

HEADS = re.compile(
    r"^\[\d{4}-\d\d-\d\d [\d:]{8}[^\]]{0,40}\] |ServerArgs\(|vllm serve|sglang\.launch_server|--speculative",
    re.MULTILINE,
)
SAMPLE = re.compile(r"^(?:# (?:HELP|TYPE) )?(?:vllm|sglang|llamacpp|python|process|http)[:_][\w:]{1,120}[ {]", re.MULTILINE)


def sniff(head: bytes, name: str) -> str | None:
    """`prometheus`, `responses` (JSON with acceptance), `acceptance-csv`, `text` (a server's log), or None.

    head: the first bytes of the file (64 KB or more is best). name: a label; only its ending counts, and only for text.
    """
    sample = _text(head)
    if sample is None:
        return None
    found = SAMPLE.findall(sample[:65536])
    if found and (
        sample.lstrip().startswith(("#", "vllm:", "sglang:", "llamacpp:", "python_", "process_")) or len(found) > 20
    ):
        return "prometheus"
    first = sample.split("\n", 1)[0]
    if "acceptance_length" in first and "num_draft_tokens" in first and "," in first and '"' not in first:
        return "acceptance-csv"
    if sample.lstrip().startswith(("{", "[", "data: {")) and _replies(sample):
        return "responses"
    marked = any(mark in sample for mark, _ in text.MARKS if mark not in text.GENERIC)
    if HEADS.search(sample) or any(form.search(sample) for _, form in text.FORMS) or (marked and not _json(sample)):
        return "text"
    return "text" if name.lower().endswith((".log", ".out", ".err")) and sample.strip() else None


def _text(head: bytes) -> str | None:
    """`head` as text, or None where it is binary. Stray NUL and bad bytes are allowed, as in a torn log."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return head[: len(head) // 2 * 2].decode("utf-16", "replace")
    odd = sum(head.count(bytes([code])) for code in (*range(7), *range(14, 27)))
    sample = head.decode("utf-8-sig", "replace")
    return None if odd + sample.count("\ufffd") > max(8, len(sample) // 20) else sample


def _replies(sample: str) -> bool:
    return any(f'"{key}"' in sample for key in KEYS - {"speculative_algorithm"}) or '"avg_spec_accept_length"' in sample


def _json(sample: str) -> bool:
    """Is this one whole JSON document (a config, say)? Then it is no log."""
    if sample.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(sample)
    except (ValueError, RecursionError):
        return False
    return True


def parse(paths: Sequence[Path], format: str, progress: Progress = no_progress) -> Parsed:
    """One log of one or more files: several only for `prometheus`, whose snapshots are subtracted.

    format: what `sniff` said. Raises BadInput when nothing of a server, a metric or a reply is in it.
    """
    found, tally = Found(), Tally()
    if format == "prometheus":
        prometheus.read(paths, found, tally, progress)
    elif format == "responses":
        for path in paths:
            responses.read(path, found, tally, progress)
        startup.finish(found)
        benches.finish(found)
    elif format == "acceptance-csv":
        for path in paths:
            table.read(path, found, tally, progress)
    else:
        for path in paths:
            text.read(path, found, tally, progress)
    if not found.engine and not found.server.kept and not found.settings:
        raise BadInput(
            f"{paths[0].name}: no line of SGLang, vLLM, TensorRT-LLM or llama.cpp, no metric and no reply "
            f"with acceptance in {tally.lines} lines. Give the server's log, its /metrics text, or replies as JSON lines."
        )
    return _parsed(found, tally)


def _possible(window: Window, found: Found) -> Window:
    """The window without a rate outside 0..1, which no count of accepted and drafted tokens gives."""
    rate = window.acceptance_rate
    if rate is None or 0.0 <= rate <= 1.0:
        return window
    found.problem(
        f"line {window.line}: inconsistent: acceptance rate {rate:g}, more tokens accepted than drafted. Left out."
    )
    return replace(window, acceptance_rate=None)


def _parsed(found: Found, tally: Tally) -> Parsed:
    windows = tuple(_possible(window, found) for window in found.server.kept)
    if tally.long:
        found.problems.insert(0, f"{tally.long} lines above the length limit were counted, not read.")
    if found.more_problems:
        found.problems.append(f"... and {found.more_problems} more.")
    if not found.server.accepting and not found.requests and found.kind != "training-log":
        found.problems.append(
            "No acceptance numbers here. Speculative decoding may be off, or the server logs them elsewhere."
        )
    log = Log(
        found.kind or f"{(found.engine or 'server').replace('.', '')}-log",
        found.engine,
        found.version,
        found.steps,
        windows,
        tuple(found.requests),
        found.settings,
        found.definitions,
    )
    return Parsed(log, tuple(found.inferred), tuple(found.problems))
