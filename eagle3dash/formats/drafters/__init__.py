"""EAGLE-3 drafter checkpoints of every maker -> one record and canonical tensors.

Works on plain mappings: which files they came from, and where the result goes, is the caller's business. Everything in
them is untrusted. Facts about the flavours stand in the modules that use them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from eagle3dash.errors import BadInput
from eagle3dash.formats.drafters import layers, readings, rope, sizes, vocabulary, weights
from eagle3dash.formats.drafters.checkpoint import Checkpoint, Stored
from eagle3dash.formats.drafters.flavours import recognise
from eagle3dash.records import Drafter, DrafterSpec, Inferred

__all__ = ["Converted", "Stored", "convert", "recognise"]
ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu": "gelu", "gelu_pytorch_tanh": "gelu_pytorch_tanh", "relu": "relu"}


@dataclass(frozen=True)
class Converted:
    """`record.tensors` is empty: only who writes `tensors` knows their name. `tensors`: canonical name -> the object that
    the given mapping held (still lazy), but d2t int64 [DV] and t2d bool [V], which are read."""

    record: Drafter
    tensors: dict[str, Any]
    inferred: tuple[Inferred, ...] = ()
    problems: tuple[str, ...] = ()


def convert(config: dict[str, Any] | None, tensors: Mapping[str, Stored]) -> Converted:
    """Understand a drafter. `tensors`: name -> torch.Tensor, or an object with shape, dtype and `tensor()` that reads it.

    BadInput for another kind of drafter, missing weights, or a config that can't belong to these weights. What can be
    settled by the tensors is settled and noted in `problems`.
    """
    flavour = recognise(config, tensors)
    if flavour is None:
        raise BadInput("These weights hold no EAGLE-3 drafter: no fc.weight and no first layer that reads 2 * hidden values.")
    checkpoint = Checkpoint.of(flavour, config, tensors)
    found, path = layers.ids(checkpoint)
    spec = _spec(checkpoint, found)
    weights.check(checkpoint, spec)
    layers.check(checkpoint, found, path, spec.num_aux)
    missing = _missing(checkpoint, spec)
    result = _tensors(checkpoint, spec)
    name, default, every = readings.all_of(checkpoint, spec)
    record = Drafter(
        flavour=flavour,
        spec=default,
        tensors="",
        reading=name,
        readings=every,
        layer_ids=found,
        layer_ids_at=path,
        states=layers.states(checkpoint, found, path, spec.vocab),
        steps=_steps(checkpoint),
        target_name=checkpoint.fields.text("speculators_config.verifier.name_or_path", "target_model_name_or_path"),
        has_embedding="embed_tokens.weight" in result,
        has_head="lm_head.weight" in result,
        fields=checkpoint.fields.listed(),
        tensor_list=weights.listed(checkpoint, missing),
    )
    return Converted(record, result, tuple(checkpoint.inferred), tuple(checkpoint.problems))


def _spec(checkpoint: Checkpoint, found: tuple[int, ...] | None) -> DrafterSpec:
    """Sizes, and the switches that tensors show. Those without a trace in the weights are left to the readings."""
    fields, hidden = checkpoint.fields, sizes.hidden(checkpoint)
    if not fields.given:
        checkpoint.infer("config", "absent", "no config.json: switches without weights, RoPE and epsilon have their defaults")
    heads = sizes.attention(checkpoint, hidden)
    vocab, draft_vocab = sizes.vocabulary(checkpoint)
    num_aux, target_hidden = sizes.aux(checkpoint, hidden, len(found) if found else None)
    epsilon = fields.number(f"{fields.block}rms_norm_eps", low=0.0, high=0.1)
    if epsilon is None:
        checkpoint.infer("rms_eps", 1e-6, "the config has no rms_norm_eps; transformers' default")
    spec = DrafterSpec(
        hidden=hidden, target_hidden=target_hidden, num_aux=num_aux, intermediate=sizes.intermediate(checkpoint),
        heads=heads.heads, kv_heads=heads.kv_heads, head_dim=heads.head_dim, mla=heads.mla, vocab=vocab, draft_vocab=draft_vocab,
        depth=sizes.depth(checkpoint), rms_eps=1e-6 if epsilon is None else epsilon, rope=rope.parse(fields, heads.mla is not None),
        activation=_activation(checkpoint),
        input_norm=checkpoint.has("input_norm.weight"),
        fc_norm=checkpoint.has("fc_norm.0.weight"),
        head_norm=checkpoint.has("norm.weight"),
        qk_norm=weights.has_any(checkpoint, ".q_norm.weight"),
        attention_bias=weights.has_any(checkpoint, *(f"self_attn.{x}_proj.bias" for x in ("q", "k", "v", "o"))),
        mlp_bias=weights.has_any(checkpoint, *(f"mlp.{x}_proj.bias" for x in ("gate", "up", "down"))),
        fc_bias=checkpoint.has("fc.bias"),
    )
    _check_flags(checkpoint, spec)
    return spec


def _check_flags(checkpoint: Checkpoint, spec: DrafterSpec) -> None:
    """The tensors win over flags that should agree with them."""
    block = checkpoint.fields.block
    pairs = (("norm_before_fc", spec.input_norm, "input_norm.weight"), ("eagle_config.norm_before_fc", spec.input_norm, "input_norm.weight"),
             ("fc_norm", spec.fc_norm, "fc_norm weights"), ("use_aux_norm", spec.fc_norm, "fc_norm weights"),
             (f"{block}attention_bias", spec.attention_bias, "attention biases"), (f"{block}mlp_bias", spec.mlp_bias, "MLP biases"),
             ("eagle_config.use_last_layernorm", spec.head_norm, "norm.weight"))
    for path, found, what in pairs:
        said = checkpoint.fields.flag(path)
        if said is not None and said != found:
            checkpoint.contradict(path, f"config.json says {path} {str(said).lower()}, but the file has {'' if found else 'no '}{what}.")


def _activation(checkpoint: Checkpoint) -> str:
    said = checkpoint.fields.text(f"{checkpoint.fields.block}hidden_act") or "silu"
    if said not in ACTIVATIONS:
        raise BadInput(f"config.json: hidden_act is {said!r}; supported are {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[said]


def _steps(checkpoint: Checkpoint) -> int | None:
    methods, _ = checkpoint.fields.find("speculators_config.proposal_methods")
    first = methods[0] if isinstance(methods, list) and methods and isinstance(methods[0], dict) else {}
    steps = first.get("speculative_tokens")
    return steps if type(steps) is int and 1 <= steps <= 64 else None


def _missing(checkpoint: Checkpoint, spec: DrafterSpec) -> list[str]:
    """Weights that engines or the replay must then get elsewhere; noted where nobody else has them."""
    missing = []
    if not checkpoint.has("embed_tokens.weight"):
        missing.append("embed_tokens.weight")
    if not checkpoint.has("lm_head.weight"):
        missing.append("lm_head.weight")
    if not checkpoint.has("d2t") and spec.draft_vocab < spec.vocab:
        missing.append("d2t")
        checkpoint.problem(
            f"The file has no d2t although it drafts {spec.draft_vocab} of {spec.vocab} tokens; engines then take the first "
            f"{spec.draft_vocab} ids. Take d2t from the trainer's own checkpoint."
        )
    if not spec.head_norm:
        missing.append("norm.weight")
    return missing


def _tensors(checkpoint: Checkpoint, spec: DrafterSpec) -> dict[str, Any]:
    result: dict[str, Any] = {new: checkpoint.tensors[old] for new, old in checkpoint.names.items()}
    if "d2t" in result:
        result["d2t"] = read(result["d2t"]).to(torch.int64)
    if "t2d" in result:
        result["t2d"] = read(result["t2d"]).to(torch.bool)
    vocabulary.check(checkpoint, result.get("d2t"), result.get("t2d"), spec.vocab)
    return result


def read(stored: Any) -> torch.Tensor:
    """The tensor itself."""
    return stored if isinstance(stored, torch.Tensor) else stored.tensor()
