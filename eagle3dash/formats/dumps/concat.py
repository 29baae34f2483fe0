"""The plain layout that home-made scripts write: token ids [S] and one tensor of states [S, n*Ht] (or [1, S, n*Ht]).

Nothing in the file says how wide one state is, which states these are, or who wrote it: the width comes from the drafter,
the role from the user.
"""

from __future__ import annotations

from typing import Any

from eagle3dash.errors import BadInput
from eagle3dash.formats.dumps.dump import Beside, Dump, flat, is_states, loss_mask, required_tokens, split, token_ids

KEYS = (
    "hidden_states",
    "aux_hidden_states",
    "hidden_state",
    "aux_hidden_state",
    "features",
    "target_hidden_states",
    "states",
)


def read(tree: Any, beside: Beside) -> list[Dump] | None:
    """Dumps of this layout, else None."""
    if is_states(tree):
        raise BadInput(
            f"a bare tensor {list(tree.shape)} without token ids. Save {{'input_ids': [S], 'hidden_states': tensor}}."
        )
    key = _key(tree) if isinstance(tree, dict) else None
    if key is None:
        return None
    leaf, tokens = flat(tree[key], key), required_tokens(tree)
    slots, inferred = split(leaf, key, beside.width, "the drafter's target width")
    return [Dump("concatenation", tokens, slots, loss_mask(tree), tuple(range(len(slots))), inferred=inferred)]


def _key(tree: dict[Any, Any]) -> str | None:
    known = [key for key in KEYS if is_states(tree.get(key))]
    if known:
        return known[0]
    wide = [key for key, value in tree.items() if is_states(value)]
    return wide[0] if len(wide) == 1 and token_ids(tree) is not None else None
