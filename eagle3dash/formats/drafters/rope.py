"""Rotary embedding of a drafter's config, as each public implementation reads it.

Facts: transformers `modeling_rope_utils.py`; SpecForge `modeling/draft/llama3_eagle.py`; SafeAILab `eagle/model/cnets.py`
(scaled kinds drop rope_theta); vLLM `model_executor/layers/rotary_embedding` (yarn takes its attention factor from the
factor alone, dynamic is fixed at factor * max length). The target's theta is never taken: an absent theta is 10000.
"""

from __future__ import annotations

import math
from dataclasses import replace

from eagle3dash.errors import BadInput
from eagle3dash.formats.drafters.fields import Fields
from eagle3dash.records import Rope

KINDS = {
    "default": "default",
    "linear": "linear",
    "llama3": "llama3",
    "yarn": "yarn",
    "deepseek_yarn": "yarn",
    "dynamic": "dynamic",
    "mrope": "default",  # text has one position for all three axes
}
PLACES = ("rope_parameters.full_attention.", "rope_parameters.", "rope_scaling.")
BASE = 10000.0


def parse(fields: Fields, latent: bool) -> Rope:
    """RoPE as transformers (and speculators) read it. BadInput for a kind that can't be replayed. latent: MLA."""
    places = [f"{fields.block}{place}" for place in PLACES]
    kind = _kind(fields, places)

    def number(key: str, low: float = 0.0, high: float = 1e9) -> float | None:
        return fields.number(*[place + key for place in places], low=low, high=high)

    if number("partial_rotary_factor") not in (None, 1.0):
        raise BadInput("config.json: partial_rotary_factor isn't 1; only drafters that rotate whole heads are supported.")
    rope = Rope(
        kind=kind,
        theta=_theta(fields),
        factor=number("factor", low=1e-3) or 1.0,
        low_freq_factor=number("low_freq_factor", low=1e-6) or 1.0,
        high_freq_factor=number("high_freq_factor", low=1e-6) or 4.0,
        original_max_position=_original(fields, places, kind),
        beta_fast=number("beta_fast", low=1e-6) or 32.0,
        beta_slow=number("beta_slow", low=1e-6) or 1.0,
        mscale=number("mscale"),
        mscale_all_dim=number("mscale_all_dim"),
        attention_factor=number("attention_factor", low=1e-6),
        interleaved=latent and fields.flag(f"{fields.block}rope_interleave") is not False,
    )
    return _with_attention_factor(rope) if kind == "yarn" else rope


def _kind(fields: Fields, places: list[str]) -> str:
    said, path = fields.find(*[place + key for place in places for key in ("rope_type", "type")])
    kind = KINDS.get(said) if isinstance(said, str) else None
    if path is not None and kind is None:
        raise BadInput(f"config.json: {path} is {str(said)[:40]!r}; supported are {', '.join(KINDS)}.")
    return kind or "default"


def _theta(fields: Fields) -> float:
    """transformers 5 keeps the base with the scaling, older files at the top; a second, other value contradicts."""
    paths = [f"{fields.block}{place}rope_theta" for place in (*PLACES, "")]
    value = fields.number(*paths, low=1.0, high=1e15)
    if value is None:
        return BASE
    for path in paths:
        other = fields.leaves.get(path)
        if other is not None and other != value:
            fields.contradict(path, f"another place of the config says {value:g}, which is taken")
    return value


def _original(fields: Fields, places: list[str], kind: str) -> int:
    """The context that a scaling starts from. 0 where there is none."""
    longest = fields.integer(f"{fields.block}max_position_embeddings", high=1 << 40) or 2048
    original = fields.integer(*[place + "original_max_position_embeddings" for place in places], high=1 << 40)
    if kind == "dynamic":
        return longest
    return (original or longest) if kind in ("llama3", "yarn") else 0


def _mscale(factor: float, scale: float = 1.0) -> float:
    return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0


def _with_attention_factor(rope: Rope) -> Rope:
    """The factor on cos and sin written out, as transformers and SpecForge compute it."""
    if rope.attention_factor is not None:
        return rope
    if rope.mscale and rope.mscale_all_dim:
        return replace(rope, attention_factor=_mscale(rope.factor, rope.mscale) / _mscale(rope.factor, rope.mscale_all_dim))
    return replace(rope, attention_factor=_mscale(rope.factor))


def as_served(rope: Rope, head_dim: int, latent: bool) -> Rope:
    """As vLLM and SGLang build it: yarn ignores mscale outside MLA, dynamic is fixed at its longest."""
    if rope.kind == "dynamic":
        return _fixed(rope, head_dim, rope.factor * rope.original_max_position)
    if rope.kind != "yarn":
        return rope
    if not latent:
        return replace(rope, attention_factor=_mscale(rope.factor))
    over, under = 1.0 if rope.mscale is None else rope.mscale, rope.mscale_all_dim or 0.0
    return replace(rope, attention_factor=_mscale(rope.factor, over) / _mscale(rope.factor, under))


def as_specforge(rope: Rope, head_dim: int) -> Rope:
    """As SpecForge trains: dynamic builds its table once, for max_position_embeddings + 20 positions."""
    return _fixed(rope, head_dim, rope.original_max_position + 20) if rope.kind == "dynamic" else rope


def as_safeai(rope: Rope) -> Rope:
    """As SafeAILab and AngelSlim run it: the scaled kinds that they have drop rope_theta."""
    return replace(rope, theta=BASE) if rope.kind in ("linear", "dynamic") else rope


def _fixed(rope: Rope, head_dim: int, length: float) -> Rope:
    """Dynamic scaling for one length is the default kind with another base."""
    stretch = rope.factor * length / rope.original_max_position - (rope.factor - 1)
    exponent = head_dim / (head_dim - 2) if head_dim > 2 else 1.0
    return Rope(theta=rope.theta * max(stretch, 1.0) ** exponent, interleaved=rope.interleaved)
