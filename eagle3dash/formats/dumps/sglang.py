"""SGLang replies with `return_hidden_states`: JSON, one reply, a list of replies, or one a line.

meta_info.hidden_states is a list: first the prompt's block [P][W], then one row [W] for each decoded token. Without
speculation a row is the last state after the final norm; with EAGLE-3 it is the aux concatenation in its place
(`managers/scheduler_output_processor_mixin.py`). Token ids come from the reply's own id fields or its logprob entries.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from eagle3dash.errors import BadInput
from eagle3dash.formats.containers import Leaf
from eagle3dash.formats.dumps.dump import Beside, Dump, Slot, split
from eagle3dash.records import Inferred

MAX_BYTES = 512 << 20
PROMPT = ("input_ids", "prompt_token_ids", "prompt_ids")
OUTPUT = ("output_ids", "output_token_ids")


def looks_so(head: bytes) -> bool:
    """Do these first bytes promise such a reply?"""
    return head.lstrip()[:1] in (b"{", b"[") and b'"hidden_states"' in head and b'"meta_info"' in head


def open_json(path: str) -> list[dict[str, Any]]:
    """Each reply as {"sglang": meta_info, "hidden_states": Leaf [S, W], "tokens": Leaf}."""
    if Path(path).stat().st_size > MAX_BYTES:
        raise BadInput(f"more than {MAX_BYTES >> 20} MiB of JSON. Save the states as safetensors instead.")
    text = Path(path).read_text("utf-8")
    try:
        replies = json.loads(text)
    except ValueError:
        replies = [json.loads(line) for line in text.splitlines() if line.strip()]
    replies = replies if isinstance(replies, list) else [replies]
    return [_opened(reply, i) for i, reply in enumerate(replies)]


def _opened(reply: Any, index: int) -> dict[str, Any]:
    meta = reply.get("meta_info") if isinstance(reply, dict) else None
    blocks = meta.get("hidden_states") if isinstance(meta, dict) else None
    if not isinstance(blocks, list) or not blocks:
        raise BadInput(f"reply {index}: no meta_info.hidden_states. Ask the server with return_hidden_states.")
    rows = [row for block in blocks for row in (block if block and isinstance(block[0], list) else [block])]
    if len({len(row) for row in rows}) != 1:
        raise BadInput(f"reply {index}: rows of different widths {sorted({len(row) for row in rows})[:3]}.")
    states = torch.tensor(rows, dtype=torch.float32)  # [S, W]
    ids = torch.tensor(_ids(reply, meta, index)[: len(rows) + 1], dtype=torch.int64)
    facts = {key: value for key, value in meta.items() if key != "hidden_states"}
    return {"sglang": facts, "hidden_states": _leaf(states), "tokens": _leaf(ids)}


def _leaf(tensor: torch.Tensor) -> Leaf:
    return Leaf(tuple(tensor.shape), tensor.dtype, held=tensor)


def _ids(reply: dict[str, Any], meta: dict[str, Any], index: int) -> list[int]:
    parts = []
    for keys, logprobs in ((PROMPT, "input_token_logprobs"), (OUTPUT, "output_token_logprobs")):
        listed = next((source[key] for source in (reply, meta) for key in keys if isinstance(source.get(key), list)), None)
        if listed is None and isinstance(meta.get(logprobs), list):
            listed = [entry[1] for entry in meta[logprobs]]  # [logprob, id, text]
        parts.append(listed)
    if parts[0] is None:
        raise BadInput(f"reply {index}: no token ids of the prompt. Add input_ids, or ask with logprob_start_len=0.")
    return [int(i) for part in parts if part is not None for i in part]


def read(tree: Any, beside: Beside) -> list[Dump] | None:
    """Dumps of this layout, else None."""
    if not isinstance(tree, list) or not tree or not all(isinstance(item, dict) and "sglang" in item for item in tree):
        return None
    return [_reply(item, i, beside) for i, item in enumerate(tree)]


def _reply(item: dict[str, Any], index: int, beside: Beside) -> Dump:
    states, tokens, part = item["hidden_states"], item["tokens"], f"reply {index}"
    speculative = any(str(key).startswith("spec_") for key in item["sglang"])
    if states.shape[1] == beside.width or (beside.width is None and not speculative):
        note = (Inferred("last", "post-norm", "SGLang without speculation returns the last state after the final norm"),)
        return Dump("sglang", tokens, (Slot(states),), None, None, "post-norm", "serving", part, note)
    slots, note = split(states, "hidden_states", beside.width, "the drafter's target width")
    return Dump("sglang", tokens, slots, None, tuple(range(len(slots))), "none", "serving", part, note)
