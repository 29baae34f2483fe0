"""An EAGLE-3 drafter in plain torch: fc over the aux states, decoder layers, head over the draft vocabulary.

It knows one row at a time; which rows see which is the business of `replay` and `sequential`.
Facts: EAGLE-3 (arXiv 2503.01840 section 3.1); switches as in SGLang, vLLM, speculators, SpecForge and ModelOpt, see
`records.DrafterSpec`. Embeddings keep their stored dtype and place: only the rows that a text needs are converted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch import Tensor

from eagle3dash.drafter.block import Layer
from eagle3dash.drafter.memory import rows_that_fit
from eagle3dash.drafter.norm import rms_norm
from eagle3dash.drafter.rope import Rotary
from eagle3dash.drafter.weights import Weights
from eagle3dash.errors import BadInput, Missing
from eagle3dash.records import Drafter, DrafterSpec, Target


class Model:
    """`embedding` [V, H] and `head` [DV, H] or [V, H] stand in for what the drafter's own tensors lack.

    target_ids [DV]: the target id of each draft id. Raises Missing or BadInput where tensors and spec do not fit.
    """

    def __init__(
        self,
        spec: DrafterSpec,
        tensors: Mapping[str, Tensor],
        *,
        embedding: Tensor | None = None,
        head: Tensor | None = None,
        device: str | torch.device = "cpu",
        dtype: torch.dtype = torch.float32,
    ):
        self.spec, self.device, self.dtype = spec, torch.device(device), dtype
        weights = Weights(tensors, self.device, dtype)
        self.fc = weights["fc.weight"]  # [H, A * Ht]
        self.fc_bias = weights["fc.bias"] if spec.fc_bias else None
        self.input_norm = weights["input_norm.weight"] if spec.input_norm else None  # [A * Ht]
        self.fc_norms = [weights[f"fc_norm.{i}.weight"] for i in range(spec.num_aux)] if spec.fc_norm else None
        self.layers = [Layer(spec, weights, index) for index in range(spec.depth)]
        self.norm = weights["norm.weight"] if spec.head_norm or spec.feedback_norm else None
        ids = torch.arange(spec.draft_vocab)
        self.target_ids = (ids + tensors["d2t"] if "d2t" in tensors else ids).to(self.device)
        self.draft_ids = torch.full((spec.vocab,), -1, device=self.device)  # [V]: the draft id of each target id, or -1
        self.draft_ids[self.target_ids[self._inside()]] = ids.to(self.device)[self._inside()]
        self.embedding = _embedding(spec, tensors.get("embed_tokens.weight"), embedding)
        self.head = self._head(tensors.get("lm_head.weight"), head)  # [DV, H]

    def _inside(self) -> Tensor:
        """bool [DV]: draft ids with a target id that exists. A broken map has others too, and those are never right."""
        return (self.target_ids >= 0) & (self.target_ids < self.spec.vocab)

    def _head(self, own: Tensor | None, borrowed: Tensor | None) -> Tensor:
        head = own if own is not None else borrowed
        if head is None:
            raise Missing(
                "The drafter has no lm_head.weight and no target was given. Add the target's weights.", needs="target"
            )
        if head.shape[0] != self.spec.draft_vocab:  # a head over the whole vocabulary: keep the drafted tokens' rows
            head = head[self.target_ids.clamp(0, len(head) - 1).to(head.device)]
        if head.shape[1] != self.spec.hidden:
            raise BadInput(f"The head is {head.shape[1]} wide, the drafter's state {self.spec.hidden}.")
        return head.to(self.device, self.dtype)

    def in_vocab(self, ids: Tensor) -> Tensor:
        """Target ids of any shape -> bool of that shape: can the drafter draft it?"""
        return self.draft_ids[ids.to(self.device)] >= 0

    def rotary(self, length: int) -> Rotary:
        attention = self.layers[0].attention
        return Rotary(self.spec.rope, attention.rotary_dim, length, self.device, self.dtype)

    def embed(self, ids: Tensor) -> Tensor:
        """Target ids [R] -> embeddings [R, H]."""
        return self.embedding[ids.to(self.embedding.device)].to(self.device, self.dtype)

    def parts(self, features: Sequence[Tensor]) -> list[Tensor]:
        """A aux states [R, Ht] -> what fc reads of each, before `input_norm`'s scale."""
        states = [x.to(self.device, self.dtype) for x in features]
        if self.fc_norms is not None:
            states = [rms_norm(x, w, self.spec.rms_eps) for x, w in zip(states, self.fc_norms, strict=True)]
        return states

    def fuse(self, features: Sequence[Tensor]) -> Tensor:
        """A aux states [R, Ht] -> the first step's state g [R, H]."""
        joined = torch.cat(self.parts(features), -1)  # [R, A * Ht]
        if self.input_norm is not None:
            joined = rms_norm(joined, self.input_norm, self.spec.rms_eps)
        return F.linear(joined, self.fc, self.fc_bias)

    def feedback(self, out: Tensor) -> Tensor:
        """The last layer's output [R, H] -> the state that the next step receives."""
        return rms_norm(out, self.norm, self.spec.rms_eps) if self.spec.feedback_norm else out

    def logits(self, out: Tensor) -> Tensor:
        """The last layer's output [R, H] -> logits [R, DV]."""
        normed = rms_norm(out, self.norm, self.spec.rms_eps) if self.spec.head_norm else out
        return F.linear(normed, self.head)

    def draft(self, out: Tensor, label: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The last layer's output [R, H] -> (drafted tokens [R], target ids; log-probability float32 [R] of the target ids
        `label` [R], NaN where the draft vocabulary lacks one). Holds only some rows' logits at once."""
        size = rows_that_fit(self.device, 2 * self.head.element_size() * self.head.shape[0])
        best, known = [self.target_ids[:0]], [torch.zeros(0, device=self.device)]
        for at, part in enumerate(out.split(size)):
            logits = self.logits(part)  # [R, DV]
            best.append(self.target_ids[logits.argmax(-1)])
            if label is not None:
                known.append(self._logprob(logits, label[at * size : at * size + len(part)]))
        return torch.cat(best), None if label is None else torch.cat(known)

    def _logprob(self, logits: Tensor, label: Tensor) -> Tensor:
        draft_id = self.draft_ids[label.clamp(min=0)]  # [R]
        known = logits.gather(-1, draft_id.clamp(min=0)[:, None])[:, 0].float() - logits.float().logsumexp(-1)
        return known.where((draft_id >= 0) & (label >= 0), torch.nan)


def _embedding(spec: DrafterSpec, own: Tensor | None, borrowed: Tensor | None) -> Tensor:
    table = own if own is not None else borrowed
    if table is None:
        raise Missing(
            "The drafter carries no embed_tokens.weight and no target was given. "
            "Add the target's embeddings (its weights, or a GGUF of it).",
            needs="target",
        )
    if table.shape[1] != spec.hidden:
        whose = "drafter" if own is not None else "target"
        raise BadInput(f"The {whose}'s embeddings are {table.shape[1]} wide, the drafter reads {spec.hidden}.")
    if table.shape[0] < spec.vocab:
        raise BadInput(f"The embeddings hold {table.shape[0]} tokens, the drafter's vocabulary {spec.vocab}.")
    return table


def spec_of(record: Drafter, reading: str | None) -> DrafterSpec:
    """The spec of a named reading; None: the default one."""
    if reading in (None, record.reading):
        return record.spec
    if reading not in record.readings:
        names = ", ".join(map(repr, dict.fromkeys((record.reading, *record.readings))))
        raise BadInput(f"This drafter has no reading {reading!r}; it has {names}.")
    return record.readings[reading]


def load(
    record: Drafter,
    path: Path,
    *,
    target: Target | None = None,
    target_path: Path | None = None,
    reading: str | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
) -> Model:
    """Canonical tensor file(s) -> Model. dtype None: float32. bfloat16 keeps softmax and norms in float32.

    Raises Missing(needs="target") when embeddings or head are to come from a target that was not given.
    """
    table, head = borrowed(target, target_path)
    spec = spec_of(record, reading)
    return Model(spec, tensors_of(path), embedding=table, head=head, device=device, dtype=dtype or torch.float32)


def borrowed(target: Target | None, path: Path | None) -> tuple[Tensor | None, Tensor | None]:
    """The target's embeddings [V, Ht] and head [V, Ht], where it has them."""
    tensors = tensors_of(path) if target is not None and path is not None else {}
    table = tensors.get("embed_tokens.weight")
    return table, tensors.get("lm_head.weight", table if target is not None and target.tied else None)


def tensors_of(path: Path) -> dict[str, Tensor]:
    """Every tensor of a canonical file by name, mapped."""
    with safe_open(path, "pt") as file:  # mapped: a tensor nobody touches is never read
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - safe_open has no iteration
