"""Which library wrote a drafter, from config fields and tensor names; drafters that aren't EAGLE-3 are declined by name.

Facts: speculators `models/*/config.py`, SafeAILab `eagle/traineagle3/config.json`, SpecForge `modeling/draft/llama3_eagle.py`,
ModelOpt `torch/export/plugins/hf_spec_export.py`, NeMo Automodel `components/speculative/eagle/draft_llama.py`, TorchSpec
`tools/convert_to_hf.py`, EAGLE-4 (eagle-harness), vLLM `model_executor/models/*eagle3.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eagle3dash.errors import BadInput
from eagle3dash.formats.drafters.names import plain

OTHERS = {  # speculators_model_type or a word of the architecture -> what it is
    "peagle": "a P-EAGLE drafter (all K tokens in one pass)",
    "dflash": "a DFlash block drafter",
    "dspark": "a DSpark block drafter",
    "xpress": "an XPress block drafter",
    "mtp": "a multi-token-prediction (MTP) head",
    "eagle4": "an EAGLE-4 drafter",
    "medusa": "Medusa heads",
    "mlp_speculator": "an MLP speculator",
}
SIGNS = {  # a config field or a piece of a tensor name -> what it is
    "efficient_lm_head": OTHERS["eagle4"],
    "dflash_config": OTHERS["dflash"],
    "mask_hidden": OTHERS["peagle"],
    "eh_proj": OTHERS["mtp"],
    "enorm": OTHERS["mtp"],
    "medusa_head": OTHERS["medusa"],
    "mlp.experts": "an EAGLE-3 drafter with a mixture-of-experts block",
    "block_sparse_moe": "an EAGLE-3 drafter with a mixture-of-experts block",
}
MODELOPT_KEYS = ("use_input_layernorm_in_first_layer", "use_last_layernorm", "use_mtp_layernorm")


def recognise(config: Mapping[str, Any] | None, shapes: Mapping[str, Any]) -> str | None:
    """The flavour, or None where these tensors are no drafter at all. BadInput, with the name, for a drafter of another kind.

    shapes: tensor name -> anything with `.shape`, or a shape.
    """
    config = config or {}
    names = {plain(name): name for name in shapes}
    _decline_others(config, names)
    width = _first_input(names, shapes)
    if "fc.weight" not in names and not ("layers.0.hidden_norm.weight" in names and width):
        return None
    if "fc.weight" not in names:
        raise BadInput("The drafter has no fc.weight: it reads no auxiliary states as EAGLE-3 does, or the file is incomplete.")
    hidden = _shape(shapes[names["fc.weight"]])[0]
    if width == hidden:
        raise BadInput(
            f"This is an EAGLE-1 or EAGLE-2 drafter: its first layer reads {width} values, the hidden size, where EAGLE-3 reads "
            f"{2 * hidden}. Only EAGLE-3 is supported."
        )
    return _maker(config, set(shapes), set(names))


def _decline_others(config: Mapping[str, Any], names: Mapping[str, str]) -> None:
    kind = str(config.get("speculators_model_type") or "").lower()
    architectures = config.get("architectures")
    first = str(architectures[0]).lower() if isinstance(architectures, list) and architectures else ""
    declined = next((what for word, what in OTHERS.items() if kind.startswith(word) or word in first), None)
    signs = [sign for sign in SIGNS if sign in config or any(sign in name for name in names)]
    if "block_size" in config and "mask_token_id" in config:
        declined = declined or OTHERS["dflash"]
    declined = declined or (SIGNS[signs[0]] if signs else None)
    if declined:
        raise BadInput(f"This is {declined}, not a plain EAGLE-3 drafter; its forward pass is another one and is not supported.")
    if kind and kind != "eagle3":
        raise BadInput(f"speculators_model_type is {kind[:40]!r}; only 'eagle3' is supported.")


def _first_input(names: Mapping[str, str], shapes: Mapping[str, Any]) -> int | None:
    for projection in ("q_proj", "q_a_proj"):
        name = names.get(f"layers.0.self_attn.{projection}.weight")
        if name is not None and len(_shape(shapes[name])) == 2:
            return _shape(shapes[name])[1]
    return None


def _shape(stored: Any) -> tuple[int, ...]:
    return tuple(getattr(stored, "shape", stored))


def _maker(config: Mapping[str, Any], stored: set[str], names: set[str]) -> str:
    architectures = config.get("architectures")
    architecture = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    nested = config.get("eagle_config")
    midlayer = any(".midlayer." in f".{name}" for name in stored)
    if config.get("speculators_model_type"):
        return "speculators"
    if "_torchspec_version" in config:
        return "torchspec"
    if isinstance(nested, dict) and any(key in nested for key in MODELOPT_KEYS):
        return "modelopt"
    if architecture == "Eagle3LlamaForCausalLM" and midlayer:
        return "angelslim"
    if any("aux_norm_" in name for name in stored) or "use_aux_norm" in config:
        return "sglang"
    if any(name.startswith(("model.layers.", "model.fc.")) for name in stored):
        return "nemo"
    if midlayer and ("norm_before_residual" in config or "norm_before_fc" in config or "input_norm.weight" in names):
        return "vllm"
    if midlayer:
        return "safeai" if architecture in ("LlamaForCausalLM", "") else "specforge"
    return "vllm"
