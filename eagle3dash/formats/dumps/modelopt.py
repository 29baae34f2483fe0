"""NVIDIA ModelOpt dumps ({conversation_id}.pt): aux_hidden_states [S, A*Ht], hidden_states [S, Ht] = the last state only.

The last state is after the final norm on its Hugging Face path; its vLLM path sets `hidden_states_prenorm`
(`examples/speculative_decoding/collect_hidden_states`). The aux ids mean other layers on the two paths, so none are
assumed.
"""

from __future__ import annotations

from typing import Any

from eagle3dash.formats.dumps.dump import Beside, Dump, Slot, flat, is_states, loss_mask, required_tokens, split
from eagle3dash.records import Inferred


def read(tree: Any, beside: Beside) -> list[Dump] | None:
    """Dumps of this layout, else None."""
    if (
        not isinstance(tree, dict)
        or not is_states(tree.get("aux_hidden_states"))
        or not is_states(tree.get("hidden_states"))
    ):
        return None
    last = flat(tree["hidden_states"], "hidden_states")
    aux = flat(tree["aux_hidden_states"], "aux_hidden_states")
    slots, _ = split(aux, "aux_hidden_states", last.shape[-1], "the width of hidden_states")
    norm = "pre-norm" if tree.get("hidden_states_prenorm") is True else "post-norm"
    why = "hidden_states_prenorm is set" if norm == "pre-norm" else "hidden_states_prenorm is absent or false"
    picked, note = tuple(range(len(slots))), (Inferred("last", norm, why),)
    return [
        Dump(
            "modelopt",
            required_tokens(tree),
            (*slots, Slot(last)),
            loss_mask(tree),
            picked,
            norm,
            "training",
            inferred=note,
        )
    ]
