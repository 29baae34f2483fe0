"""TensorRT-LLM SaveHiddenStates: a .pt with a list of requests, each {id, input_ids, hidden_state [S, Ht],
hidden_state_features [S, n*Ht]} (the latter only when more than one layer was captured). Whether the last state is normed
is not recorded.
"""

from __future__ import annotations

from typing import Any

from eagle3dash.errors import BadInput
from eagle3dash.formats.dumps.dump import Beside, Dump, Slot, flat, is_states, loss_mask, required_tokens, split


def read(tree: Any, beside: Beside) -> list[Dump] | None:
    """Dumps of this layout, else None."""
    requests = tree if isinstance(tree, list) else []
    if not requests or not all(isinstance(item, dict) and is_states(item.get("hidden_state")) for item in requests):
        return None
    return [_request(item, i) for i, item in enumerate(requests)]


def _request(item: dict[str, Any], index: int) -> Dump:
    last = flat(item["hidden_state"], "hidden_state")
    features = item.get("hidden_state_features")
    slots: tuple[Slot, ...] = ()
    if features is not None:
        if not is_states(features):
            raise BadInput(f"request {index}: hidden_state_features is no tensor [S, n*Ht].")
        slots, _ = split(
            flat(features, "hidden_state_features"), "hidden_state_features", last.shape[-1], "hidden_state's width"
        )
    aux = tuple(range(len(slots))) or None
    part = f"request {str(item.get('id', index))[:40]}"
    return Dump("tensorrt-llm", required_tokens(item), (*slots, Slot(last)), loss_mask(item), aux, "none", "training", part)
