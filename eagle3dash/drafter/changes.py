"""The drafter with one thing changed: every way in which tools are known to read a file, or feed it, differently.

A change says what it does to the parts that a model is built of (switches, tensors, borrowed tables) or to the features
it reads. It runs nothing. Which switch is honoured where: SGLang and vLLM `llama_eagle3.py`, TensorRT-LLM
`modeling_speculative.py`, speculators, SpecForge and ModelOpt (see `records.DrafterSpec`). Faults seen in public: absolute
ids or zeros in d2t, maps made anew, embeddings replaced, heads at random, RoPE bases ignored, states one token off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from eagle3dash.drafter.model import Model
from eagle3dash.drafter.norm import rms_norm
from eagle3dash.records import DrafterSpec, Rope

Features = list[Tensor]  # A x [S, Ht]
THETAS = (1e4, 5e4, 1e5, 5e5, 1e6)
LAGS = (-2, -1, 1, 2)
STILL = 1e9  # linear scaling at which all tokens stand at one position; another start for all changes nothing in RoPE
LLAMA3 = {"kind": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position": 8192}
LARGEST = 448.0  # of float8 e4m3
WORDS = {  # switch -> what it is called when it is set
    "residual_norm": ("norm_before_residual on", "norm_before_residual off"),
    "feedback_norm": ("next step fed the normed state", "next step fed the state before the norm"),
    "double_norm": ("fc output normed twice", "fc output normed once"),
    "head_norm": ("norm before lm_head on", "norm before lm_head off"),
    "input_norm": ("norm_before_fc on", "norm_before_fc off"),
    "fc_norm": ("fc_norm on", "fc_norm off"),
    "qk_norm": ("q and k norms on", "q and k norms off"),
    "attention_bias": ("attention biases on", "attention biases off"),
    "mlp_bias": ("MLP biases on", "MLP biases off"),
    "fc_bias": ("fc bias on", "fc bias off"),
}


@dataclass(frozen=True)
class Parts:
    """What a model is built of. `embedding` [V, H] and `head` [V, H] are the target's, used where the drafter has none."""

    spec: DrafterSpec
    tensors: Mapping[str, Tensor]
    embedding: Tensor | None = None
    head: Tensor | None = None

    def model(self, device: str | torch.device = "cpu") -> Model:
        """Raises Missing or BadInput where parts and spec do not fit."""
        return Model(self.spec, self.tensors, embedding=self.embedding, head=self.head, device=device)


@dataclass(frozen=True)
class Surroundings:
    """What else is known. `norm`: the target's final norm [Ht]; `scales`: factor by which each fed state differs from
    training; `dtype`: of the stored features."""

    readings: Mapping[str, DrafterSpec] = field(default_factory=dict)
    norm: Tensor | None = None
    scales: tuple[float, ...] | None = None
    dtype: str = ""


def _same(x: Any) -> Any:
    return x


@dataclass(frozen=True)
class Change:
    """`sets`: what it sets, by name, for people and findings. `readings`: names of known readings that come to the same."""

    name: str
    family: str
    sets: dict[str, Any]
    parts: Callable[[Parts], Parts] = _same
    features: Callable[[Features], Features] = _same
    readings: tuple[str, ...] = ()


def changes(parts: Parts, around: Surroundings) -> list[Change]:
    """Every change that these parts allow, each different from `parts` as they are."""
    found = [*_norms(parts), *_rope(parts.spec), *_vocabulary(parts), *_tables(parts), *_fed(around)]
    for name, spec in around.readings.items():
        sets = difference(parts.spec, spec)
        if not sets:
            continue
        same = [at for at, change in enumerate(found) if change.sets == sets]
        if same:
            found[same[0]] = replace(found[same[0]], readings=(*found[same[0]].readings, name))
        else:
            found.append(replace(switched(sets), name=name, family="reading", readings=(name,)))
    return found


def difference(spec: DrafterSpec, other: DrafterSpec) -> dict[str, Any]:
    """Switch -> its value in `other`, where the two differ."""
    return {f.name: getattr(other, f.name) for f in fields(spec) if getattr(spec, f.name) != getattr(other, f.name)}


def switched(sets: dict[str, Any], name: str = "", family: str = "norms") -> Change:
    """A change of switches only."""
    words = name or " and ".join(WORDS[switch][not value] for switch, value in sets.items() if switch in WORDS)
    return Change(words, family, sets, parts=lambda parts: replace(parts, spec=replace(parts.spec, **sets)))


def _norms(parts: Parts) -> Iterator[Change]:
    spec, tensors = parts.spec, parts.tensors
    needs = {"feedback_norm": "norm.weight", "head_norm": "norm.weight", "input_norm": "input_norm.weight"}
    needs["fc_norm"] = f"fc_norm.{spec.num_aux - 1}.weight"
    free = [name for name in ("residual_norm", "feedback_norm", "double_norm") if needs.get(name, "fc.weight") in tensors]
    for size in range(1, len(free) + 1):
        for names in combinations(free, size):
            yield switched({name: not getattr(spec, name) for name in names})
    for name in ("head_norm", "input_norm", "fc_norm"):
        if getattr(spec, name) or needs[name] in tensors:
            yield switched({name: not getattr(spec, name)})
    for name in ("qk_norm", "attention_bias", "mlp_bias", "fc_bias"):  # switches that an engine may drop
        if getattr(spec, name):
            yield switched({name: False}, family="biases" if name.endswith("bias") else "norms")


def _rope(spec: DrafterSpec) -> Iterator[Change]:
    own = spec.rope
    for theta in THETAS:
        if theta != own.theta:
            yield switched({"rope": replace(own, theta=theta)}, f"RoPE theta {theta:,.0f}", "rope")
    if own.kind != "default":
        plain = Rope(theta=own.theta, interleaved=own.interleaved)
        yield switched({"rope": plain}, "RoPE without scaling", "rope")
    else:
        yield switched({"rope": replace(own, **LLAMA3)}, "RoPE scaled as in Llama 3.1", "rope")
    still = Rope(kind="linear", theta=own.theta, factor=STILL, interleaved=own.interleaved)
    yield switched({"rope": still}, "RoPE without positions, as where they stand still", "rope")
    pairs = "RoPE on halves, as in Llama" if own.interleaved else "RoPE on neighbouring pairs, as in GPT-J"
    yield switched({"rope": replace(own, interleaved=not own.interleaved)}, pairs, "rope")


# ---- vocabulary map, embeddings, head ------------------------------------------------------------------------------


def _vocabulary(parts: Parts) -> Iterator[Change]:
    size, tensors = parts.spec.draft_vocab, parts.tensors
    ids = torch.arange(size)
    own = ids + tensors["d2t"] if "d2t" in tensors else ids  # [DV]
    maps = {}
    if "d2t" in tensors:
        maps["d2t read as absolute ids"] = "absolute", tensors["d2t"]
        maps[f"no d2t: the first {size:,} target ids"] = "first", ids
    kept = tensors["t2d"].nonzero().flatten() if "t2d" in tensors else ids[:0]
    if len(kept) == size:
        maps["map made from t2d, ascending"] = "t2d", kept
    for name, (kind, target) in maps.items():
        if not torch.equal(target, own):
            yield _mapped(name, kind, target)


def _mapped(name: str, kind: str, target: Tensor) -> Change:
    offset = target - torch.arange(len(target))
    return Change(name, "vocabulary", {"d2t": kind}, parts=lambda parts: _with(parts, {"d2t": offset}))


def _tables(parts: Parts) -> Iterator[Change]:
    hidden = parts.spec.hidden
    for name, table, what in (
        ("embed_tokens.weight", parts.embedding, "embedding"),
        ("lm_head.weight", parts.head, "head"),
    ):
        own = parts.tensors.get(name)
        if own is None or table is None or table.shape[1] != hidden or table.shape[0] < parts.spec.vocab:
            continue
        if own.shape != table.shape or not torch.equal(own.float(), table.float()):
            words = "the target's embeddings" if what == "embedding" else "the target's rows as lm_head"
            yield Change(words, what, {what: "target"}, parts=lambda parts, name=name: _with(parts, {name: None}))


def _with(parts: Parts, tensors: dict[str, Tensor | None]) -> Parts:
    """Tensors replaced, or taken out where None."""
    return replace(parts, tensors={name: x for name, x in {**parts.tensors, **tensors}.items() if x is not None})


# ---- features ------------------------------------------------------------------------------------------------------


def _fed(around: Surroundings) -> Iterator[Change]:
    for lag in LAGS:
        word = f"features {abs(lag)} token{'s' * (abs(lag) > 1)} {'later' if lag > 0 else 'earlier'}"
        yield _read(word, "lag", {"lag": lag}, lambda states, lag=lag: [_shifted(x, lag) for x in states])
    if around.dtype != "bfloat16":
        yield _read("features in bf16", "precision", {"dtype": "bfloat16"}, lambda states: [x.bfloat16() for x in states])
    yield _read("features in fp8 (e4m3)", "precision", {"dtype": "float8_e4m3"}, lambda states: [_fp8(x) for x in states])
    if around.scales is not None:
        yield _read("features at training's scale", "scale", {"scales": list(around.scales)}, _rescaled(around.scales))
    if around.norm is not None:
        yield _read("last state after the target's norm", "post-norm", {"normed": "last"}, _normed(around.norm, last=True))
        yield _read("all states after the target's norm", "post-norm", {"normed": "all"}, _normed(around.norm, last=False))


def _read(name: str, family: str, sets: dict[str, Any], features: Callable[[Features], Features]) -> Change:
    return Change(name, family, sets, features=features)


def _shifted(x: Tensor, lag: int) -> Tensor:
    """Row t reads the state of t + lag; the ends repeat."""
    return x[(torch.arange(len(x)) + lag).clamp(0, len(x) - 1)]


def _fp8(x: Tensor) -> Tensor:
    scale = x.float().abs().amax().clamp(min=1e-12) / LARGEST
    return ((x.float() / scale).to(torch.float8_e4m3fn).float() * scale).to(x.dtype)


def _rescaled(scales: tuple[float, ...]) -> Callable[[Features], Features]:
    return lambda states: [x.float() / scale for x, scale in zip(states, scales, strict=True)]


def _normed(weight: Tensor, last: bool) -> Callable[[Features], Features]:
    def changed(states: Features) -> Features:
        first = len(states) - 1 if last else 0
        return [x if at < first else rms_norm(x.float(), weight, 1e-6) for at, x in enumerate(states)]

    return changed
