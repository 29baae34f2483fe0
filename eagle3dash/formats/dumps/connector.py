"""Stacks [S, n, Ht] written by vLLM: its ExampleHiddenStatesConnector, and speculators 0.5+ which trains from the same
files.

Both have hidden_states [S, n, Ht] and token_ids [S] and no metadata. speculators keeps them as hs_{i}.safetensors beside an
Arrow data set, and its last slice is the last state before the final norm (`data/`: `[:, :-1]` aux, `[:, -1]` last). The
connector names files by request and stacks just the layers that were asked for.
"""

from __future__ import annotations

import re
from typing import Any

from eagle3dash.formats.dumps.dump import Beside, Dump, Slot, is_states, loss_mask, required_tokens
from eagle3dash.records import Inferred

HS_NAME = re.compile(r"(^|/)hs_\d+\.(safetensors|pt)$")


def read(tree: Any, beside: Beside) -> list[Dump] | None:
    """Dumps of this layout, else None."""
    if not isinstance(tree, dict) or not is_states(tree.get("hidden_states"), (3,)):
        return None
    states = tree["hidden_states"]
    tokens = required_tokens(tree)
    if states.shape[0] == 1 and tokens.shape[0] > 2:
        return None  # [1, S, n*Ht]: a batch of one
    count = states.shape[1]
    slots = tuple(Slot(states, index=i) for i in range(count))
    if count > 1 and (HS_NAME.search(beside.name) or beside.dataset):
        why = "hs_N files hold the aux states, then the last state before the final norm"
        inferred = (Inferred("aux", ", ".join(f"s{i}" for i in range(count - 1)), why),)
        aux = tuple(range(count - 1))
        return [Dump("speculators hs_N", tokens, slots, loss_mask(tree), aux, "pre-norm", "training", inferred=inferred)]
    inferred = (Inferred("aux", "all", "the vLLM connector stores the layers that it was asked for, in order"),)
    return [
        Dump("vllm connector", tokens, slots, loss_mask(tree), tuple(range(count)), "none", "serving", inferred=inferred)
    ]
