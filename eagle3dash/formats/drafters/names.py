"""Tensor names of every drafter flavour -> one canonical name (the list in `CANONICAL`).

Facts: SafeAILab `eagle/model/cnets.py` and SpecForge (`midlayer.`), speculators, vLLM and ModelOpt (`layers.0.`), NeMo
Automodel (`model.` prefixes), SGLang (`aux_norm_low/mid/high` = one norm per aux state), TensorRT-LLM (`midlayer.0.`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

PREFIXES = ("draft_model.", "eagle_module.", "module.", "_orig_mod.", "model.")
RENAMED = (
    (re.compile(r"^midlayer\.(?:(\d{1,3})\.)?"), lambda m: f"layers.{m.group(1) or 0}."),
    (re.compile(r"^aux_norm_(low|mid|high)\."), lambda m: f"fc_norm.{('low', 'mid', 'high').index(m.group(1))}."),
    (re.compile(r"^draft_id_to_target_id$"), lambda m: "d2t"),
)
ATTENTION = r"(?:[qkvo]_proj\.(?:weight|bias)|[qk]_norm\.weight)"
LATENT = r"(?:(?:q_a_proj|q_b_proj|kv_a_proj_with_mqa|kv_b_proj)\.(?:weight|bias)|(?:q_a|kv_a)_layernorm\.weight)"
LAYER = (
    rf"(?:self_attn\.(?:{ATTENTION}|{LATENT})|mlp\.(?:gate|up|down)_proj\.(?:weight|bias)"
    r"|(?:input_layernorm|post_attention_layernorm)\.weight)"
)
CANONICAL = re.compile(
    rf"^(?:fc\.(?:weight|bias)|layers\.\d{{1,3}}\.{LAYER}|layers\.0\.hidden_norm\.weight|norm\.weight|lm_head\.weight"
    r"|embed_tokens\.weight|d2t|t2d|input_norm\.weight|fc_norm\.\d{1,2}\.weight)$"
)
LATER_NORM = re.compile(r"^layers\.([1-9]\d{0,2})\.hidden_norm\.weight$")


def plain(name: str) -> str:
    """The name without wrappers' prefixes, in the `layers.{i}.` style. Not necessarily a name we know."""
    stripped = True
    while stripped:
        stripped = False
        for prefix in PREFIXES:
            if name.startswith(prefix):
                name, stripped = name[len(prefix) :], True
    for pattern, new in RENAMED:
        name = pattern.sub(new, name)
    return name


def canonical(names: Iterable[str]) -> dict[str, str]:
    """Canonical name -> name in the file, for all tensors the forward pass can use.

    Layers after the first have one plain norm before attention; SGLang and TensorRT-LLM store it as `hidden_norm`, the
    others as `input_layernorm`. It becomes `input_layernorm`, which wins where a file has both.
    """
    known: dict[str, str] = {}
    later: dict[str, str] = {}
    for name in sorted(names, key=lambda n: (n != plain(n), n)):  # an unprefixed name wins over a prefixed twin
        new = plain(name)
        if match := LATER_NORM.match(new):
            later.setdefault(f"layers.{match.group(1)}.input_layernorm.weight", name)
        elif CANONICAL.match(new):
            known.setdefault(new, name)
    return {**later, **known}
