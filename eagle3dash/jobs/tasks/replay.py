"""Replay: the drafter run over a capture with one combination of states, and how many of its tokens are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from eagle3dash.analysis.acceptance import Tally, countable
from eagle3dash.drafter.replay import drafts
from eagle3dash.jobs.answers import Answer
from eagle3dash.jobs.tasks.inputs import Inputs
from eagle3dash.jobs.tasks.masks import masks
from eagle3dash.records import Progress


def run(payload: dict[str, Any], progress: Progress, device: str) -> Answer:
    """The `replay` document and a frame replay_row: one line for every counted row."""
    args, inputs = payload["args"], Inputs(payload, device)
    model, tally, frames = inputs.model(), Tally(args["steps"]), []
    known, origin = masks(inputs, args["capture"])
    total, done = sum(sequence.tokens for sequence in inputs.record(args["capture"]).sequences), 0
    for text in inputs.texts(args["capture"]):
        progress(done, total, f"replaying text {text.index + 1}, tokens")
        states = [text.state(slot) for slot in args["slots"]]  # A x [S, Ht]
        counted = countable(len(text.tokens), args["steps"], known.get(text.index))
        rows = torch.from_numpy(np.flatnonzero(counted))
        found = drafts(model, states, text.tokens, args["steps"], rows)
        in_vocab = model.in_vocab(text.tokens).cpu().numpy()
        visited, accepted = tally.add(found.right, counted, in_vocab, found.logprob)
        frames.append(_rows(text.index, counted, visited, accepted))
        done += len(text.tokens)
    progress(total, total, "tokens replayed")
    told = {"capture": args["capture"], "reading": inputs.record("drafter").reading, "slots": args["slots"]}
    told |= {"loss_mask": origin, "masked_texts": len(known)}
    document = {**told, "texts": tally.sequences, **tally.document(args["states"])}
    return Answer(payload["key"], "replay", args, document, {"replay_row": pd.concat(frames, ignore_index=True)})


def _rows(index: int, counted: np.ndarray, visited: np.ndarray, accepted: np.ndarray) -> pd.DataFrame:
    rows = np.flatnonzero(counted)
    return pd.DataFrame({"sequence": index, "row": rows, "num_accepted": accepted[rows], "visited": visited[rows]})
