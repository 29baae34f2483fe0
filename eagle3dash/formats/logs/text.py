"""A server's log: every line goes to the readers whose marks it holds; at the end each settles what all lines tell.

It knows no engine's words, only who reads which marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from eagle3dash.formats.logs import benches, fragments, llamacpp, sglang, startup, tensorrt, vllm, warnings
from eagle3dash.formats.logs.collect import Found, one_tensor_rank
from eagle3dash.formats.logs.lines import Line, Tally, lines
from eagle3dash.records import Progress

Reader = Callable[[Line, Found], None]
READERS = (sglang, vllm, llamacpp, tensorrt, benches, fragments, startup, warnings)
MARKS = tuple((mark, module.read) for module in READERS for mark in module.MARKS)
CORES = (  # every mark holds one of these: few, so that scanning a large log stays cheap
    "ccept", "Decode batch", "Prefill batch", "peculative", "SpecDecoding", "generation throughput", "utput throughput",
    "TRT-LLM", "draft", "Draft", "eval time", "n_predict", "atency:", "#questions", "tau_sim", "erver_args", "ServerArgs",
    "non-default args",
    "args: Namespace", "Initializing a V", "LLM engine (v", "  version ", "server version", "LLM version", "LLM Version",
    "lang version", "SGLang version", "auxiliary", "ttention backend", "attention_backend", "build: ", "temperature",
    "FLASH_ATTN", "FlashInfer", "decoding_type", "SIMULATE_ACC", "Detected EAGLE", "caling factor", "weights", "logit_bias",
    "CUDA graph", "predicted_", "spec_", "ecodedTokens", "ecoded_tokens", "Position ", "acc_length", "num_output_tokens",
    "not found in params", "] AVERAGE",
)  # fmt: skip
GENERIC = {
    "temperature",
    "attention_backend",
    "build: ",
    "Position ",
    "  version ",
    "n_predict",
    "Latency:",
    "max_draft_len",
}
GENERIC |= {
    "speculative_config",
    "decoding_type",
    "Output throughput",
    "draft_tensor_parallel_size",
}  # found in other files too
FORMS = (  # how a server writes any line, for logs without a word of acceptance
    (
        "vllm",
        re.compile(r"\b(?:INFO|WARNING|ERROR) \d\d-\d\d [\d:]{8} |\((?:APIServer|EngineCore|Worker)\w{0,20} pid=\d{1,9}\)"),
    ),
    ("sglang", re.compile(r"\] (?:Prefill|Decode) batch|server_args=")),
    ("llama.cpp", re.compile(r"llama_model_load|print_timing|llama-server")),
    ("trtllm", re.compile(r"\[TRT-LLM\]")),
)


def read(path: Path, found: Found, tally: Tally, progress: Progress) -> None:
    wanted = [core.encode() for core in CORES]
    for line in lines(path, wanted, tally, progress):
        for reader in _readers(line.text):
            reader(line, found)
    found.engine = found.engine or found.state.get("bench engine") or _engine_by_form(path)
    fragments.finish(found)
    startup.finish(found)
    for module in (sglang, vllm, llamacpp, benches):
        module.finish(found)
    if not found.server.kept:
        found.server.kept = found.plain.kept
    found.server.kept, repeated = one_tensor_rank(found.server.kept)
    if repeated:
        found.infer("windows", f"without {repeated} lines of other tensor-parallel ranks", "they repeat the same rounds")
    if found.server.lines > len(found.server.kept) + repeated and any("merged" in w.extra for w in found.server.kept):
        found.infer(
            "windows", f"{len(found.server.kept)} averages of {found.server.lines} lines", "more lines than are kept"
        )


def _readers(text: str) -> Iterable[Reader]:
    """Who reads this line. The two lines that fill a log have one reader each."""
    if "Decode batch" in text:
        return (sglang.read,)
    if "SpecDecoding metrics:" in text:
        return (vllm.read,)
    return dict.fromkeys(reader for mark, reader in MARKS if mark in text)


def _engine_by_form(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(1 << 16).decode("utf-8", "replace")
    return next((engine for engine, form in FORMS if form.search(head)), None)
