"""The token ids of both captures: is the loss mask off by one, is the served text like the training text."""

from __future__ import annotations

from typing import Any

import numpy as np

from eagle3dash.analysis.texts import MOST_TEXTS, mask_edges, unlike
from eagle3dash.jobs.tasks.inputs import Inputs
from eagle3dash.jobs.tasks.masks import masks, righted


def texts(payload: dict[str, Any], device: str) -> dict[str, Any]:
    """{"mask": see `mask_edges`, "unlike": see `unlike`}, each None where the captures do not allow it."""
    inputs = Inputs(payload, device)
    found: dict[str, Any] = {"mask": None, "unlike": None}
    if inputs.record("training") is None:
        return found
    sample = range(min(len(inputs.record("training").sequences), MOST_TEXTS))
    sampled = list(inputs.texts("training", sample))
    masked = [(text.tokens.numpy(), text.loss_mask) for text in sampled if text.loss_mask is not None]
    answers = righted(sampled)
    trained = [(text.tokens.numpy(), answers.get(text.index)) for text in sampled]
    if masked:
        found["mask"] = mask_edges(masked)
    if inputs.record("serving") is not None:
        known, _ = masks(inputs, "serving")
        served = [(text.tokens.numpy(), known.get(text.index)) for text in inputs.texts("serving")]
        found["unlike"] = unlike([_answer(*text) for text in trained], [_answer(*text) for text in served])
    return found


def _answer(tokens: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    return tokens if mask is None else tokens[mask == 1]
