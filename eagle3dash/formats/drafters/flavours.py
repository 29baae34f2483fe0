"""Which library wrote a drafter, from config fields and tensor names; drafters that aren't EAGLE-3 are declined by name.

Facts: speculators `models/*/config.py`, SafeAILab `eagle/traineagle3/config.json`, SpecForge
`modeling/draft/llama3_eagle.py`, ModelOpt `torch/export/plugins/hf_spec_export.py`, NeMo Automodel
`components/speculative/eagle/draft_llama.py`, TorchSpec `tools/convert_to_hf.py`, EAGLE-4 (eagle-harness), vLLM
`model_executor/models/llama_eagle3.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eagle3dash.errors import BadInput, Refused
from eagle3dash.formats.drafters.checkpoint import incomplete
from eagle3dash.formats.drafters.names import canonical, plain

WORDS = {  # in speculators_model_type or in the architecture -> what it is
    "peagle": "a P-EAGLE drafter (all K tokens in one pass)",
    "dflash": "a DFlash block drafter",
    "dspark": "a DSpark block drafter",
    "xpress": "an XPress block drafter",
    "eagle4": "an EAGLE-4 drafter",
    "medusa": "a set of Medusa heads",
    "mtp": "a multi-token-prediction (MTP) head",
    "gptossforcausallmeagle3": "an EAGLE-3 drafter with a mixture-of-experts block",
}
FIELDS = {"efficient_lm_head": "eagle4", "efficient_lm_head_config": "eagle4", "dflash_config": "dflash"}
EXPERTS = ("mlp.experts", "block_sparse_moe")  # targets have them too
PIECES = {  # of a tensor name
    "efficient_lm_head": WORDS["eagle4"],
    "mask_hidden": WORDS["peagle"],
    "eh_proj": WORDS["mtp"],
    "medusa_head": WORDS["medusa"],
    "mlp.experts": WORDS["gptossforcausallmeagle3"],
    "block_sparse_moe": WORDS["gptossforcausallmeagle3"],
}
NO_FC = "The drafter has no fc.weight: it isn't EAGLE-3 (no aux states), or the file is incomplete."
MOST_LAYERS = 8  # of a drafter; a tensor name with a higher layer number belongs to a target
MODELOPT_KEYS = ("use_input_layernorm_in_first_layer", "use_last_layernorm", "use_mtp_layernorm")


def recognise(config: Mapping[str, Any] | None, shapes: Mapping[str, Any]) -> str | None:
    """The flavour, or None where these tensors are no drafter. BadInput, with its name, for a drafter of another kind.

    shapes: tensor name -> anything with `.shape`, or a shape.
    """
    config = {} if config is None else config
    if not isinstance(config, Mapping):
        raise BadInput("config.json holds no object. Give the config.json that was written with the drafter.")
    names = {plain(name): name for name in shapes}
    if any(_layer_number(name) > MOST_LAYERS for name in names):
        return None
    _decline_others(config, names)
    width = _width(names, shapes)
    if "fc.weight" not in names:
        if "layers.0.hidden_norm.weight" in names and width:
            raise Refused(NO_FC, incomplete("fc.weight", canonical(shapes)).refusal)
        return None
    shape = _shape(shapes[names["fc.weight"]])
    if len(shape) != 2 or width is None:
        return None
    if width == shape[0]:
        raise BadInput(
            f"This is an EAGLE-1 or EAGLE-2 drafter: its first layer reads {width} values, the hidden size, where EAGLE-3 "
            f"reads {2 * width}. Only EAGLE-3 is supported."
        )
    _decline_blocks(config)
    return _maker(config, set(shapes), set(names))


def _decline_blocks(config: Mapping[str, Any]) -> None:
    block = config.get("transformer_layer_config")
    kind = str((block if isinstance(block, Mapping) else config).get("model_type") or "").lower()
    if kind.startswith("gemma"):
        raise BadInput(f"This EAGLE-3 drafter has a {kind[:20]} block (norms with 1 + weight), which isn't supported.")


def _layer_number(name: str) -> int:
    parts = name.split(".")
    return int(parts[1]) if len(parts) > 1 and parts[0] == "layers" and parts[1].isdecimal() and len(parts[1]) < 6 else 0


def _decline_others(config: Mapping[str, Any], names: Mapping[str, str]) -> None:
    kind = str(config.get("speculators_model_type") or "").lower()
    architecture = _architecture(config).lower()
    declined = [what for word, what in WORDS.items() if kind.startswith(word) or word in architecture]
    declined += [WORDS[word] for name, word in FIELDS.items() if config.get(name)]
    drafter = "fc.weight" in names or kind or "eagle" in architecture
    pieces = [piece for piece in PIECES if any(piece in name for name in names)]
    declined += [PIECES[piece] for piece in pieces if drafter or piece not in EXPERTS]
    if drafter and "block_size" in config and "mask_token_id" in config:
        declined.append(WORDS["dflash"])
    if declined:
        raise BadInput(f"This is {declined[0]}, which computes something else; only plain EAGLE-3 drafters are supported.")
    if kind and kind != "eagle3":
        raise BadInput(f"speculators_model_type is {kind[:40]!r}; only 'eagle3' is supported.")


def _width(names: Mapping[str, str], shapes: Mapping[str, Any]) -> int | None:
    """How many values the first layer's attention reads."""
    for projection in ("q_proj", "q_a_proj", "kv_a_proj_with_mqa", "k_proj", "v_proj"):
        name = names.get(f"layers.0.self_attn.{projection}.weight")
        if name is not None and len(_shape(shapes[name])) == 2:
            return _shape(shapes[name])[1]
    return None


def _shape(stored: Any) -> tuple[int, ...]:
    return tuple(getattr(stored, "shape", stored))


def _architecture(config: Mapping[str, Any]) -> str:
    listed = config.get("architectures")
    return str(listed[0]) if isinstance(listed, list) and listed else ""


def _maker(config: Mapping[str, Any], stored: set[str], names: set[str]) -> str:
    architecture, nested = _architecture(config), config.get("eagle_config")
    midlayer = any("midlayer." in name for name in stored)
    flat = any(key in config for key in ("norm_before_residual", "norm_before_fc")) or "input_norm.weight" in names
    if config.get("speculators_model_type"):
        return "speculators"
    if "_torchspec_version" in config:
        return "torchspec"
    if isinstance(nested, dict) and any(key in nested for key in MODELOPT_KEYS):
        return "modelopt"
    if any("aux_norm_" in name for name in stored) or "use_aux_norm" in config:
        return "sglang"
    if any(name.startswith(("model.layers.", "model.fc.")) for name in stored):
        return "nemo"
    if not midlayer or flat:
        return "vllm"
    if architecture == "Eagle3LlamaForCausalLM":
        return "angelslim"
    return "safeai" if architecture in ("LlamaForCausalLM", "") else "specforge"
