"""Rotary embedding of a drafter's config, as each public implementation reads it.

Facts: transformers `modeling_rope_utils.py`; SpecForge `modeling/draft/llama3_eagle.py`; SafeAILab `eagle/model/cnets.py`
(scaled kinds drop rope_theta); vLLM `model_executor/layers/rotary_embedding` (yarn takes its attention factor from the
factor alone, dynamic is fixed at factor * max length); ModelOpt `torch/speculative/config.py` (a yarn scaling is written
at export that training never saw). The target's theta is never taken: an absent theta is 10000.
"""

from __future__ import annotations

import dataclasses
import math

from eagle3dash.errors import BadInput
from eagle3dash.formats.drafters.fields import Fields
from eagle3dash.records import Rope

KINDS = {"default": "default", "linear": "linear", "llama3": "llama3", "yarn": "yarn", "deepseek_yarn": "yarn",
         "dynamic": "dynamic", "mrope": "default"}
PLACES = ("rope_parameters.full_attention.", "rope_parameters.", "rope_scaling.")


def parse(fields: Fields, latent: bool) -> Rope:
    """The embedding as transformers (and speculators) read the config. BadInput for a kind that can't be replayed."""
    places = [f"{fields.block}{place}" for place in PLACES]
    kind = _kind(fields, places)

    def number(key: str, low: float = 0.0, high: float = 1e9) -> float | None:
        return fields.number(*[place + key for place in places], low=low, high=high)

    longest = fields.integer(f"{fields.block}max_position_embeddings", high=1 << 40) or 2048
    original = fields.integer(*[place + "original_max_position_embeddings" for place in places], high=1 << 40)
    if (partial := number("partial_rotary_factor", high=1.0)) not in (None, 1.0):
        raise BadInput(f"config.json: partial_rotary_factor is {partial:g}; only drafters that rotate the whole head are supported.")
    rope = Rope(
        kind=kind,
        theta=theta(fields),
        factor=number("factor", low=1e-3) or 1.0,
        low_freq_factor=number("low_freq_factor", low=1e-6) or 1.0,
        high_freq_factor=number("high_freq_factor", low=1e-6) or 4.0,
        original_max_position=0 if kind in ("default", "linear") else original if original and kind != "dynamic" else longest,
        beta_fast=number("beta_fast", low=1e-6) or 32.0,
        beta_slow=number("beta_slow", low=1e-6) or 1.0,
        mscale=number("mscale"),
        mscale_all_dim=number("mscale_all_dim"),
        attention_factor=number("attention_factor", low=1e-6),
        interleaved=latent and fields.flag(f"{fields.block}rope_interleave") is not False,
    )
    return with_attention_factor(rope) if kind == "yarn" else rope


def theta(fields: Fields) -> float:
    """The base. transformers 5 keeps it with the scaling, older files at the top; a second, other value contradicts."""
    paths = [f"{fields.block}{place}rope_theta" for place in (*PLACES, "")]
    value = fields.number(*paths, low=1.0, high=1e15)
    if value is None:
        return 10000.0
    for path in paths:
        other = fields.leaves.get(path)
        if isinstance(other, int | float) and other != value:
            fields.contradict(path, f"another place of the config says {value:g}, which is taken")
    return value


def _kind(fields: Fields, places: list[str]) -> str:
    said = fields.text(*[place + key for place in places for key in ("rope_type", "type")]) or "default"
    if said not in KINDS:
        raise BadInput(f"config.json: rope type {said!r} is not supported; supported are {', '.join(sorted(KINDS))}.")
    return KINDS[said]


def mscale(factor: float, scale: float = 1.0) -> float:
    return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0


def with_attention_factor(rope: Rope) -> Rope:
    """yarn with the factor on cos and sin written out, as transformers and SpecForge compute it."""
    if rope.attention_factor is not None:
        return rope
    both = rope.mscale and rope.mscale_all_dim
    value = mscale(rope.factor, rope.mscale) / mscale(rope.factor, rope.mscale_all_dim) if both else mscale(rope.factor)
    return dataclasses.replace(rope, attention_factor=value)


def as_vllm(rope: Rope, head_dim: int, latent: bool) -> Rope:
    """As vLLM and SGLang build it: yarn's factor ignores mscale outside MLA; dynamic is fixed at its longest."""
    if rope.kind == "yarn" and latent:
        ratio = mscale(rope.factor, 1.0 if rope.mscale is None else rope.mscale) / mscale(rope.factor, rope.mscale_all_dim or 0.0)
        return dataclasses.replace(rope, attention_factor=ratio)
    if rope.kind == "yarn":
        return dataclasses.replace(rope, attention_factor=mscale(rope.factor))
    if rope.kind == "dynamic":
        return _fixed(rope, head_dim, rope.factor * rope.original_max_position)
    return rope


def as_specforge(rope: Rope, head_dim: int) -> Rope:
    """As SpecForge trains: dynamic builds its table once for max_position_embeddings + 20 positions."""
    return _fixed(rope, head_dim, rope.original_max_position + 20) if rope.kind == "dynamic" else rope


def as_safeai(rope: Rope) -> Rope:
    """As SafeAILab trains: the scaled kinds it has drop rope_theta."""
    return dataclasses.replace(rope, theta=10000.0) if rope.kind in ("linear", "dynamic") else rope


def _fixed(rope: Rope, head_dim: int, length: float) -> Rope:
    stretch = rope.factor * length / rope.original_max_position - (rope.factor - 1)
    return Rope(interleaved=rope.interleaved, theta=rope.theta * stretch ** (head_dim / (head_dim - 2)))
