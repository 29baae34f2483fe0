"""SafeAILab/EAGLE `ge_data` (EAGLE-1 and -2): data_{i}.ckpt with input_ids [S], hidden_state [S, Ht], loss_mask [S].

The one state is Hugging Face's `hidden_states[-1]`, after the final norm; no aux states. A width that a drafter shows to be
several states is left to `concat`.
"""

from __future__ import annotations

from typing import Any

from eagle3dash.formats.dumps.dump import Beside, Dump, Slot, flat, is_states, loss_mask, required_tokens

KEYS = {"input_ids", "hidden_state", "loss_mask"}


def read(tree: Any, beside: Beside) -> list[Dump] | None:
    """Dumps of this layout, else None."""
    if not isinstance(tree, dict) or not is_states(tree.get("hidden_state")) or not set(tree) <= KEYS:
        return None
    state = flat(tree["hidden_state"], "hidden_state")
    if beside.width is not None and state.shape[-1] != beside.width:
        return None
    return [Dump("ge_data", required_tokens(tree), (Slot(state),), loss_mask(tree), None, "post-norm", "training")]
