"""Start-up lines that explain lost acceptance: what the engine shared, dropped, could not load or switched off.

Only the fact is kept, in our words, with line and rank. A rule never names a cause. Facts: vllm#50158 (sharing decided per
rank), tokenspeed#1012 (no KV scales), vllm#31345 (draft tensor parallelism), vllm and sglang loaders.
"""

from __future__ import annotations

import re

from eagle3dash.formats.logs.collect import Found
from eagle3dash.formats.logs.lines import Line

WORKER = re.compile(r"\b(?:Worker|VllmWorker|EngineCore|Core)[_-]?((?:DP|TP|PP|EP)\d[\w]{0,20})")
RULES = (  # mark in the line, id, the fact
    ("without scaling factors", "no-kv-scales", "fp8 KV cache without scales (scale 1.0 is used)"),
    ("scaling factor 1.0", "no-kv-scales", "fp8 KV cache without scales (scale 1.0 is used)"),
    ("no scaling factors", "no-kv-scales", "fp8 KV cache without scales (scale 1.0 is used)"),
    ("weights are not initialized", "missing-weights", "some weights were not in the checkpoint"),
    ("weights were not initialized", "missing-weights", "some weights were not in the checkpoint"),
    ("not found in params_dict", "unused-weights", "a weight of the checkpoint has no place in the model"),
    ("logit_bias parameters won't work", "sampling-limits", "min_p and logit_bias do not work with speculative decoding"),
    ("Overriding draft model max model len", "draft-length", "the drafter's longest context was changed to the target's"),
    ("context length of the draft model", "draft-length", "the drafter's longest context differs from the target's"),
    ("SIMULATE_ACC", "simulated-acceptance", "acceptance is simulated, not measured"),
    ("synthetic acceptance", "simulated-acceptance", "acceptance is simulated, not measured"),
    ("peculative decoding is disabled", "speculation-off", "the engine switched speculative decoding off"),
    ("peculative decoding is not supported", "speculation-off", "the engine does not support speculative decoding here"),
    ("disabling speculative", "speculation-off", "the engine switched speculative decoding off"),
    ("draft_tensor_parallel_size", "draft-tensor-parallel", "a tensor-parallel size of its own was asked for the drafter"),
    ("set after CUDA graph", "captured-late", "capture layers were set after the CUDA graphs"),
)  # fmt: skip
MARKS = (*(mark for mark, _, _ in RULES), "Detected EAGLE")


def read(line: Line, found: Found) -> None:
    rank = match.group(1) if (match := WORKER.search(line.text)) else None
    for mark, name, fact in RULES:
        if mark in line.text and not (name == "draft-tensor-parallel" and re.search(mark + r"['\"]?[=:] ?None", line.text)):
            found.warn(name, line.number, fact, rank)
    if "Detected EAGLE" in line.text:
        _sharing(line, rank, found)


def _sharing(line: Line, rank: str | None, found: Found) -> None:
    """vLLM says for each rank whether the drafter keeps its own embedding and head or takes the target's."""
    text = line.text[line.text.find("Detected EAGLE") :]
    part = "lm_head" if "lm_head" in text[:120] else "embed_tokens"
    choice = "own" if "Keeping separate" in text else "shared with the target"
    found.set(part, choice)
    known = found.state.setdefault("sharing", {}).setdefault(part, {})
    if len(known) < 10_000:
        known[rank] = choice
    if len(set(known.values())) > 1:
        told = ", ".join(f"{name or 'a rank'}: {what}" for name, what in sorted(known.items(), key=str)[:8])
        short = "embed" if part == "embed_tokens" else "head"
        found.settings[f"tp_ranks_disagree_on_{short}_sharing"] = told
        found.warn("ranks-disagree", line.number, f"tensor-parallel ranks disagree on {part} ({told})")
