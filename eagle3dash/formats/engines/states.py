"""What a layer id means on each engine, as HF[k], and the setting that makes an engine feed given states.

Two conventions exist: "output of layer L" (HF[L+1]) and "boundary" (HF[L]; 0 = embedding output). The same list can mean
different states on different servers. Read in: vllm model_executor/models/interfaces.py and v1/worker (0.32), sglang
srt/models/*.py set_eagle3_layers_to_capture (0.5.9 to 0.5.23, pull requests 25454 and 32334), TensorRT-LLM's capture,
SpecForge, AngelSlim, NeMo Automodel, ModelOpt, speculators 0.3 to 0.9, llama.cpp's extract_layers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

KEY = "eagle_aux_hidden_state_layer_ids"
NESTED = f"eagle_config.{KEY}"
BOUNDARY = {"vllm", "llama.cpp", "safeai", "eagle"}
OUTPUT = {"tensorrt-llm", "specforge", "angelslim", "nemo", "modelopt", "torchspec"}
NAMES = {"trt": "tensorrt-llm", "trtllm": "tensorrt-llm", "trt-llm": "tensorrt-llm", "tensorrt_llm": "tensorrt-llm"}
GPT_OSS = (24, 36)  # layers of the two targets of that name
REORDER = "; it captures in ascending order, so reorder the blocks of fc.weight too"
SHOWN = {"sglang": "SGLang", "vllm": "vLLM", "tensorrt-llm": "TensorRT-LLM", "llama.cpp": "llama.cpp"}


def engine_name(engine: str | None) -> str | None:
    """One spelling for one engine."""
    if engine is None:
        return None
    name = engine.strip().lower()
    return NAMES.get(name, name)


def version_of(text: str | None) -> tuple[int, ...] | None:
    """Leading numbers of a version, for comparing: "0.5.15.post1" -> (0, 5, 15)."""
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text or "")
    return tuple(int(part or 0) for part in match.groups()) if match else None


def default_states(layers: int) -> tuple[int, int, int]:
    """The states that every tool takes when a config names none, for a target of N layers."""
    return 2, layers // 2, layers - 3


def likely(slots: int, claimed: Sequence[int] | None, layers: int | None) -> list[tuple[tuple[int, ...], str]]:
    """Which states the slots of a capture may hold that does not say it: HF[k] and why, the likeliest first.

    claimed: what the drafter's config says, as HF[k]. layers: N of the target, where it is known.
    """
    triples = [(tuple(claimed), "the drafter's config says so")] if claimed else []
    if layers:
        low, middle, high = default_states(layers)
        triples += [
            ((low, middle, high), "the default of every tool"),
            ((low + 1, middle + 1, high + 1), "the default of speculators 0.3 and 0.4, whose dumps are layer outputs"),
            ((low - 1, middle - 1, high - 1), "the default of ModelOpt's dumps through vLLM"),
        ]
    found: dict[tuple[int, ...], str] = {}
    for states, why in triples:
        if len(states) == slots:
            found.setdefault(states, why)
        elif layers and len(states) + 1 == slots:
            found.setdefault((*states, layers), f"{why}; the last state after them")
    return list(found.items())


def states_of(
    ids: Sequence[int] | None,
    engine: str,
    version: str | None = None,
    *,
    nested: bool = False,
    family: str | None = None,
    layers: int | None = None,
    runner: str | None = None,
) -> tuple[int, ...] | None:
    """The states that an engine feeds to fc for a config's ids, in its order; None where it can't be told.

    nested: the ids stand in `eagle_config`, not at top level. family: the target's kind ("deepseek", "kimi", "gpt_oss").
    layers: N of the target, for defaults. runner: of vLLM, V1 or V2; both read a top-level list alike. The engines capture
    while the layers run, so whatever the list's order, fc gets the states ascending and each once.
    """
    name, at = engine_name(engine), version_of(version)
    default = default_states(layers) if layers else None
    if not ids:
        return default
    if name == "vllm":
        if nested and runner is None and (at is None or at >= (0, 19)):
            return None  # the V1 runner takes the nested list, the V2 runner doesn't
        if nested and (runner != "V1" or (at is not None and at < (0, 19))):
            return default
        return _ascending(ids, 0)
    if name == "sglang":
        return _ascending(ids, _sglang_shift(ids, at, family, layers)) if nested else default
    if name == "tensorrt-llm":
        return _ascending(ids, 1)
    if name == "speculators":
        return tuple(layer + (1 if at is not None and at < (0, 5) else 0) for layer in ids)
    if name in OUTPUT:
        return tuple(layer + 1 for layer in ids)
    return tuple(ids) if name in BOUNDARY else None


def _ascending(ids: Sequence[int], shift: int) -> tuple[int, ...]:
    return tuple(sorted({layer + shift for layer in ids}))


def _sglang_shift(ids: Sequence[int], at: tuple[int, ...] | None, family: str | None, layers: int | None) -> int:
    kind = (family or "").lower()
    if "deepseek" in kind or "kimi" in kind:
        return 1 if (at is not None and at < (0, 5, 15)) or ids[0] == 1 else 0
    if "gpt_oss" in kind or "gpt-oss" in kind:
        boundary = max(ids) in ((layers,) if layers else GPT_OSS) and (at is None or at >= (0, 5, 18))
        return 0 if boundary else 1
    return 1


def setting(states: Sequence[int], engine: str) -> str:
    """What to write into the drafter's config.json so that this engine feeds these states: one sentence."""
    name, wanted = engine_name(engine), list(states)
    ascending = wanted == sorted(set(wanted))
    ids = [state - 1 for state in wanted]
    if name == "vllm":
        text = f'vLLM: "{KEY}": {wanted} at the top level of config.json (an id is HF[id]; 0 = embedding output)'
        return text if ascending else text + REORDER
    if name == "sglang":
        text = f'SGLang: "eagle_config": {{"{KEY}": {ids}}} (an id counts layer outputs, HF[id + 1])'
        if min(wanted) < 1:
            text = (
                f"SGLang: ids count layer outputs, HF[id + 1], so HF[0] (embedding output) has no documented id; "
                f'"eagle_config": {{"{KEY}": {ids}}} asks for the input of layer 0: check it with a new serving capture'
            )
        text += f"; for DeepSeek and Kimi targets from 0.5.15 write {wanted} (HF[id] unless the first id is 1)"
        return text if ascending else text + REORDER
    if name == "tensorrt-llm":
        if min(wanted) < 1:
            return "TensorRT-LLM: captures layer outputs only, so HF[0] cannot be fed; train on HF[1] or later instead"
        text = f"TensorRT-LLM: eagle3_layers_to_capture: {ids} in the server's speculative config (an id is HF[id + 1])"
        return text if ascending else text + REORDER
    return f"{SHOWN.get(name or '', engine)}: feed HF{wanted} to fc, in this order"


def settings(states: Sequence[int], engine: str | None) -> str:
    """`setting` for the run's engine first, then for the others."""
    first = engine_name(engine)
    engines = [*([first] if first in SHOWN else []), *(e for e in ("sglang", "vllm", "tensorrt-llm") if e != first)]
    return ". ".join(setting(states, e) for e in engines) + "."
