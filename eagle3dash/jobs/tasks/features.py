"""Features: every training state against every serving slot, over the tokens that both captures share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch

from eagle3dash.analysis.align import Pair, align, alignment
from eagle3dash.analysis.behind import behind
from eagle3dash.analysis.difference import Decode
from eagle3dash.analysis.features import compare
from eagle3dash.analysis.pairs import Aligned
from eagle3dash.analysis.texts import MOST_TEXTS, first_edge, mask_edges
from eagle3dash.jobs.answers import Answer
from eagle3dash.jobs.tasks.inputs import Inputs
from eagle3dash.jobs.tasks.masks import righted
from eagle3dash.records import Progress


def run(payload: dict[str, Any], progress: Progress, device: str) -> Answer:
    """The `features` document with an "alignment", and the frame feature_position."""
    args, inputs = payload["args"], Inputs(payload, device)
    progress(0, 0, "aligning the texts")
    training, serving = list(inputs.texts("training")), list(inputs.texts("serving"))
    ids = [[text.tokens.numpy() for text in texts] for texts in (training, serving)]
    pairs = align(*ids)
    total = sum(pair.tokens for pair in pairs)

    def aligned() -> Iterator[Aligned]:
        for pair in pairs:
            if pair.tokens:
                yield _aligned(pair, training[pair.training], serving[pair.serving], args)

    def told(done: float, _: float, message: str) -> None:
        progress(done, total, message)

    document, columns = compare(aligned, args["training_labels"], args["serving_labels"], told)
    vocabulary = inputs.vocabulary()
    masks, decode = [text.loss_mask for text in training], vocabulary.decode if vocabulary else None
    tails = (_tail(pair, training[pair.training], serving[pair.serving], args) for pair in pairs if pair.after)
    document["behind"] = behind(tails, args["training_labels"], args["serving_labels"])
    answers = righted(training)
    document["alignment"] = alignment(*ids, pairs, [answers.get(text.index) for text in training], decode)
    document["mask"] = _mask(ids[0], masks, decode)
    return Answer(payload["key"], "features", args, document, {"feature_position": pd.DataFrame(columns)})


def _tail(pair: Pair, training: Any, serving: Any, args: dict[str, Any]) -> Aligned:
    """The rows behind the difference, whose tokens are the same again."""
    every = _aligned(pair, training, serving, args)
    tails = ([state[-pair.after :] for state in states] for states in (every.training, every.serving))
    return Aligned(pair.serving, pair.after, *tails)


def _mask(ids: list[np.ndarray], masks: list[np.ndarray | None], decode: Decode | None) -> dict[str, Any] | None:
    """The edges of the training capture's loss masks (see `mask_edges`), with the first one to be read."""
    masked = [(tokens, mask) for tokens, mask in zip(ids, masks, strict=True) if mask is not None]
    return mask_edges(masked[:MOST_TEXTS]) | {"first": first_edge(masked, decode)} if masked else None


def _aligned(pair: Pair, training: Any, serving: Any, args: dict[str, Any]) -> Aligned:
    def states(text: Any, labels: Sequence[Any]) -> list[torch.Tensor]:
        return [text.state(slot) for slot in range(len(labels))]  # [S, Ht] each

    known = states(training, args["training_labels"]), states(serving, args["serving_labels"])
    return Aligned(pair.serving, pair.tokens, *known)
