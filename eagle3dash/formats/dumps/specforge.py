"""sgl-project/SpecForge offline dumps: data_{i}.ckpt or .ckpt.gz (`scripts/prepare_hidden_states.py`).

input_ids [S], loss_mask [S], aux_hidden_state [1, S, A*Ht] and hidden_state [1, S, Ht]: the last state after the final
norm.
"""

from __future__ import annotations

from typing import Any

from eagle3dash.formats.dumps.dump import Beside, Dump, Slot, flat, is_states, loss_mask, required_tokens, split


def read(tree: Any, beside: Beside) -> list[Dump] | None:
    """Dumps of this layout, else None."""
    if not isinstance(tree, dict) or not is_states(tree.get("aux_hidden_state")) or not is_states(tree.get("hidden_state")):
        return None
    last = flat(tree["hidden_state"], "hidden_state")
    aux = flat(tree["aux_hidden_state"], "aux_hidden_state")
    slots, _ = split(aux, "aux_hidden_state", last.shape[-1], "the width of hidden_state")
    picked = tuple(range(len(slots)))
    return [
        Dump("specforge", required_tokens(tree), (*slots, Slot(last)), loss_mask(tree), picked, "post-norm", "training")
    ]
