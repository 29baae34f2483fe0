"""Tencent/AngelSlim dumps (.ckpt): `hidden_states` is the aux concatenation [1, S, A*Ht], `target_hiddens` [1, S, Ht] the
last state after the final norm (its trainer applies lm_head to it directly).
"""

from __future__ import annotations

from typing import Any

from eagle3dash.formats.dumps.dump import Beside, Dump, Slot, flat, is_states, loss_mask, required_tokens, split


def read(tree: Any, beside: Beside) -> list[Dump] | None:
    """Dumps of this layout, else None."""
    if not isinstance(tree, dict) or not is_states(tree.get("target_hiddens")) or not is_states(tree.get("hidden_states")):
        return None
    last = flat(tree["target_hiddens"], "target_hiddens")
    slots, _ = split(
        flat(tree["hidden_states"], "hidden_states"), "hidden_states", last.shape[-1], "the width of target_hiddens"
    )
    aux = tuple(range(len(slots)))
    return [Dump("angelslim", required_tokens(tree), (*slots, Slot(last)), loss_mask(tree), aux, "post-norm", "training")]
