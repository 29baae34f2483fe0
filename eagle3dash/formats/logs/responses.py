"""Replies with acceptance, JSON or JSON lines: vLLM's `speculative_decoding`, SGLang's `spec_*`, llama.cpp's `timings`,
TensorRT-LLM's `specDecodingStats`, and the summaries of benchmark clients. Where rounds are listed they become requests.

A document is walked, bounded; prompts and answers are never kept. Facts: vllm#48915; sgl-project/sglang#18332, #33518;
ggml-org/llama.cpp tools/server (timings); NVIDIA/TensorRT-LLM (IterationStats); vllm bench serve; sglang bench_serving.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eagle3dash.errors import BadInput
from eagle3dash.formats.logs.collect import Found
from eagle3dash.formats.logs.lines import Tally
from eagle3dash.formats.logs.objects import KEYS, take
from eagle3dash.records import Progress

LINE_CAP = 2 << 20
DOCUMENT_CAP = 16 << 20
MOST_NODES = 200_000
RUN = 8  # tokens: so many in the same order twice are no accident
MOST_IDS = 200_000


def read(path: Path, found: Found, tally: Tally, progress: Progress) -> None:
    """A JSON document, or JSON lines. A line that is cut or too long is counted, not kept."""
    found.kind = "responses"
    if not _is_lines(path):
        document = _whole(path)
        if document is not None:
            _walk(document, 1, path.name, found)
            return
    total, done, bad = path.stat().st_size, 0, 0
    with path.open("rb") as file:
        while raw := file.readline(LINE_CAP):
            done += len(raw)
            tally.lines += 1
            if not raw.endswith(b"\n") and len(raw) == LINE_CAP:
                tally.long += 1
                done += _skip_line(file)
                continue
            if tally.lines % 256 == 1:
                progress(done, total, f"reading {path.name}")
            if raw.strip():
                bad += not _line(raw, tally.lines, found)
    if bad:
        found.problem(f"{bad} lines are not whole JSON (cut off?) and were left out.")


def _skip_line(file: Any) -> int:
    skipped = 0
    while raw := file.readline(1 << 16):
        skipped += len(raw)
        if raw.endswith(b"\n"):
            break
    return skipped


def _line(raw: bytes, at: int, found: Found) -> bool:
    try:
        entry = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    _walk(entry, at, f"line {at}", found)
    return True


def _is_lines(path: Path) -> bool:
    """Does the first line hold a whole JSON value, and is there more?"""
    with path.open("rb") as file:
        first = file.readline(LINE_CAP)
        try:
            json.loads(first)
        except (ValueError, RecursionError):
            return path.stat().st_size > DOCUMENT_CAP
        return bool(file.read(1))


def _whole(path: Path) -> Any:
    if path.stat().st_size > DOCUMENT_CAP:
        raise BadInput(
            f"{path.name} is one JSON document above {DOCUMENT_CAP >> 20} MB. Save one reply a line (JSON lines) instead."
        )
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def _walk(entry: Any, line: int, name: str, found: Found) -> None:
    """Every object below `entry` that holds acceptance is taken, with the nearest request id and usage above it."""
    for obj, context in _objects(entry):
        if KEYS & obj.keys():
            take(obj, context, line, name, found)


def _objects(entry: Any) -> Iterator[tuple[dict, dict]]:
    stack: list[tuple[Any, dict]] = [(entry, {})]
    visited = 0
    while stack and visited < MOST_NODES:
        value, context = stack.pop()
        visited += 1
        if isinstance(value, dict):
            context = context | _context(value)
            yield value, context
            stack += [(v, context) for v in reversed(value.values()) if isinstance(v, (dict, list))]
        elif isinstance(value, list) and value and isinstance(value[0], (dict, list)):
            stack += [(v, context) for v in reversed(value)]


def _repeated(obj: dict) -> float | None:
    """Share of the answer's runs of RUN tokens that stood in it before: near 1 for loops. The ids are not kept."""
    choices = obj.get("choices")
    holder = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else obj
    ids = next((holder[key] for key in ("token_ids", "output_ids") if isinstance(holder.get(key), list)), None)
    if ids is None or not 2 * RUN <= len(ids) <= MOST_IDS or not all(type(token) is int for token in ids):
        return None
    runs = [tuple(ids[at : at + RUN]) for at in range(len(ids) - RUN + 1)]
    return 1.0 - len(set(runs)) / len(runs)


def _context(obj: dict) -> dict:
    """What a reply says about the request around the acceptance object."""
    usage = obj.get("usage") if isinstance(obj.get("usage"), dict) else {}
    names = ("id", "rid", "request_id", "created", "model", "prompt_tokens", "completion_tokens", "system_fingerprint")
    found = {key: obj[key] for key in names if isinstance(obj.get(key), (str, int))}
    if (repeated := _repeated(obj)) is not None:
        found["repeated"] = repeated
    return found | {k: usage[k] for k in ("prompt_tokens", "completion_tokens") if isinstance(usage.get(k), int)}
