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
from eagle3dash.formats.drafters import layers, readings, vocabulary, weights
from eagle3dash.formats.drafters.checkpoint import Checkpoint, Stored, read
from eagle3dash.formats.drafters.flavours import recognise
from eagle3dash.formats.drafters.spec import spec_of
from eagle3dash.records import Drafter, DrafterSpec, Inferred

__all__ = ["Converted", "Stored", "convert", "recognise"]

TELLING = ("architectures", "speculators_model_type", "speculators_version", "_torchspec_version")  # who wrote it


@dataclass(frozen=True)
class Converted:
    """`record.tensors` is empty: only who writes `tensors` knows their name. `tensors`: canonical name -> the object that
    the given mapping held (still lazy), but d2t int64 [DV] and t2d bool [V], which are read."""

    record: Drafter
    tensors: dict[str, Any]
    inferred: tuple[Inferred, ...] = ()
    problems: tuple[str, ...] = ()


def convert(config: dict[str, Any] | None, tensors: Mapping[str, Stored]) -> Converted:
    """Understand a drafter. `tensors`: name -> torch.Tensor, or an object with shape, dtype, `read()` and `rows(a, b)`.

    BadInput for another kind of drafter, missing weights, or a config that can't belong to these weights. What the tensors
    settle is settled and noted in `problems`.
    """
    flavour = recognise(config, tensors)
    if flavour is None:
        raise BadInput("These weights hold no EAGLE-3 drafter, which has fc.weight and a first layer that reads 2H values.")
    checkpoint = Checkpoint.of(flavour, config, tensors)
    for told in TELLING:
        checkpoint.fields.find(told)
    found, path = layers.ids(checkpoint)
    spec = spec_of(checkpoint, len(found) if found else None)
    weights.check(checkpoint, spec)
    layers.check(checkpoint, found, path, spec.num_aux)
    result = _tensors(checkpoint, spec)
    name, default, every = readings.all_of(checkpoint, spec)
    states = layers.states(checkpoint, found, path, spec)
    missing = weights.missing(checkpoint, spec, result)
    checks = vocabulary.checks(checkpoint, result, spec)
    record = Drafter(
        flavour=flavour,
        spec=default,
        tensors="",
        reading=name,
        readings=every,
        layer_ids=found,
        layer_ids_at=path,
        states=states,
        steps=_steps(checkpoint),
        target_name=checkpoint.fields.text("speculators_config.verifier.name_or_path", "target_model_name_or_path"),
        has_embedding="embed_tokens.weight" in result,
        has_head="lm_head.weight" in result,
        fields=checkpoint.fields.listed(),
        tensor_list=weights.listed(checkpoint, missing),
        map_checks=checks,
    )
    return Converted(record, result, tuple(checkpoint.inferred), tuple(checkpoint.problems))


def _steps(checkpoint: Checkpoint) -> int | None:
    methods, _ = checkpoint.fields.find("speculators_config.proposal_methods")
    first = methods[0] if isinstance(methods, list) and methods and isinstance(methods[0], dict) else {}
    steps = first.get("speculative_tokens")
    return steps if type(steps) is int and 1 <= steps <= 64 else None


def _tensors(checkpoint: Checkpoint, spec: DrafterSpec) -> dict[str, Any]:
    result: dict[str, Any] = {new: checkpoint.tensors[old] for new, old in checkpoint.names.items()}
    for name, kind in (("d2t", torch.int64), ("t2d", torch.bool)):
        if name in result:
            result[name] = read(result[name]).to(kind)
    _tie(checkpoint, spec, result)
    return result


def _tie(checkpoint: Checkpoint, spec: DrafterSpec, result: dict[str, Any]) -> None:
    path = "tie_word_embeddings"
    if not checkpoint.fields.flag(path):
        return
    if "lm_head.weight" in result:
        message = f"config.json says {path} true, but the file has an lm_head of its own; engines that tie ignore it."
        checkpoint.contradict(path, message)
    elif "embed_tokens.weight" in result and spec.draft_vocab == spec.vocab:
        result["lm_head.weight"] = result["embed_tokens.weight"]
        checkpoint.infer("lm_head", "embed_tokens", f"{path} is true and the file has no lm_head")
