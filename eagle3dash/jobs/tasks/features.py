"""Features: every training state against every serving slot, over the tokens that both captures share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import torch

from eagle3dash.analysis.align import Pair, align, alignment
from eagle3dash.analysis.features import Aligned, compare
from eagle3dash.jobs.answers import Answer
from eagle3dash.jobs.tasks.inputs import Inputs
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
    document["alignment"] = alignment(*ids, pairs, [text.loss_mask for text in training], inputs.vocabulary())
    return Answer(payload["key"], "features", args, document, {"feature_position": pd.DataFrame(columns)})


def _aligned(pair: Pair, training: Any, serving: Any, args: dict[str, Any]) -> Aligned:
    def states(text: Any, labels: Sequence[Any]) -> list[torch.Tensor]:
        return [text.state(slot) for slot in range(len(labels))]  # [S, Ht] each

    known = states(training, args["training_labels"]), states(serving, args["serving_labels"])
    return Aligned(pair.serving, pair.tokens, *known)
