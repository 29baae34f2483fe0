"""vllm-project/speculators `.pt` dumps.

v1 (0.3 to 0.5): data_{i}.pt = input_ids [S], loss_mask [S], hidden_states = list of A+1 tensors [S, Ht]: aux, then the last
state before the final norm (`scripts/data_generation_offline.py`). v0: hidden_state [S, A*Ht], target [S, Ht]; whether
`target` is normed is not known. `data_config.json` beside them names the layers: see `layers`.
"""

from __future__ import annotations

from typing import Any

from eagle3dash.formats.dumps.dump import Beside, Dump, Slot, flat, is_states, loss_mask, required_tokens, split
from eagle3dash.records import Inferred


def read(tree: Any, beside: Beside) -> list[Dump] | None:
    """Dumps of this layout, else None."""
    if not isinstance(tree, dict):
        return None
    states = tree.get("hidden_states")
    if isinstance(states, list) and states and all(is_states(state) for state in states):
        return [_list(tree, states)]
    if is_states(tree.get("hidden_state")) and is_states(tree.get("target")):
        return [_pair(tree)]
    return None


def _list(tree: dict[str, Any], states: list[Any]) -> Dump:
    slots = tuple(Slot(flat(state, f"hidden_states[{i}]")) for i, state in enumerate(states))
    aux, last = tuple(range(len(slots) - 1)), "pre-norm"
    if len(slots) == 1:
        aux, last = (0,), "none"
    why = f"speculators lists hold {len(aux)} aux states, then the last state before the final norm"
    inferred = (Inferred("aux", ", ".join(f"s{i}" for i in aux), why),)
    return Dump(
        "speculators v1 data_N.pt", required_tokens(tree), slots, loss_mask(tree), aux, last, "training", inferred=inferred
    )


def _pair(tree: dict[str, Any]) -> Dump:
    target = flat(tree["target"], "target")
    slots, _ = split(flat(tree["hidden_state"], "hidden_state"), "hidden_state", target.shape[-1], "the width of `target`")
    inferred = (Inferred("last", "none", "speculators v0 does not say whether `target` is before or after the final norm"),)
    tokens, aux = required_tokens(tree), tuple(range(len(slots)))
    return Dump(
        "speculators v0 .pt", tokens, (*slots, Slot(target)), loss_mask(tree), aux, "none", "training", inferred=inferred
    )


def layers(config: dict[str, Any]) -> tuple[tuple[int, ...] | None, str]:
    """States as HF[k] that a data_config.json names, and why.

    `layers` lists HF[k] itself. `hidden_states.layer_ids` (written by `data_generation/config_generator.py`) counts decoder
    layers whose output was taken, HF[L+1], up to speculators 0.4; from 0.5 on vLLM takes them, HF[L].
    """
    if _ids(config.get("layers")):
        return tuple(config["layers"]), "data_config.json lists the states in `layers`"
    section = config.get("hidden_states")
    ids = section.get("layer_ids") if isinstance(section, dict) else None
    if not _ids(ids):
        return None, ""
    version = str(config.get("speculators_version", ""))
    if _at_least_0_5(version):
        return tuple(ids), f"data_config.json: layer_ids {ids}, taken before that layer by speculators {version[:20]}"
    return tuple(i + 1 for i in ids), f"data_config.json: layer_ids {ids}, taken after that layer by speculators before 0.5"


def _ids(value: Any) -> bool:
    return isinstance(value, list) and 0 < len(value) <= 1024 and all(type(i) is int and 0 <= i < 10_000 for i in value)


def _at_least_0_5(version: str) -> bool:
    numbers = [int(part) for part in version.split(".")[:2] if part.isdecimal() and len(part) < 6]
    return len(numbers) == 2 and tuple(numbers) >= (0, 5)
