"""Sweep: every ordered choice of A states of a capture, each fed to the drafter; on a large capture first on a sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from eagle3dash.analysis import sweep as ranking
from eagle3dash.analysis.acceptance import Tally, countable
from eagle3dash.drafter.sweep import Sweep
from eagle3dash.jobs.answers import Answer
from eagle3dash.jobs.tasks.inputs import Inputs
from eagle3dash.jobs.tasks.masks import masks
from eagle3dash.records import Progress

Choice = tuple[int, ...]


class Sweeping:
    """The drafter, a capture, and how far the whole question is (unit: text times choice)."""

    def __init__(self, payload: dict[str, Any], progress: Progress, device: str):
        self.args, self.inputs, self.progress = payload["args"], Inputs(payload, device), progress
        self.model = self.inputs.model()
        self.done, self.total = 0, 0

    def tallies(self, choices: Sequence[Choice], texts: Sequence[int]) -> dict[Choice, Tally]:
        """Counts of every choice over the named texts. Every text is read once."""
        found = {choice: Tally(self.args["steps"]) for choice in choices}
        used = sorted({slot for choice in choices for slot in choice})
        known, _ = masks(self.inputs, self.args["capture"])
        for text in self.inputs.texts(self.args["capture"], texts):
            counted = countable(len(text.tokens), self.args["steps"], known.get(text.index))
            rows = torch.from_numpy(np.flatnonzero(counted))
            states = [text.state(slot) for slot in used]  # [S, Ht] each
            sweep = Sweep(self.model, states, text.tokens, self.args["steps"])
            in_vocab = self.model.in_vocab(text.tokens).cpu().numpy()
            for choice in choices:
                self.progress(self.done, self.total, f"text {text.index + 1}, {len(choices)} combinations")
                made = sweep.drafts([used.index(slot) for slot in choice], rows, leading=True)
                found[choice].add(made.right, counted, in_vocab, made.logprob)
                self.done += 1
        return found


def run(payload: dict[str, Any], progress: Progress, device: str) -> Answer:
    """The `sweep` document."""
    sweeping = Sweeping(payload, progress, device)
    args, sequences = payload["args"], sweeping.inputs.record(payload["args"]["capture"]).sequences
    choices = ranking.combinations(len(args["labels"]), sweeping.model.spec.num_aux)
    texts = ranking.sample([sequence.tokens for sequence in sequences])
    everything = len(texts) == len(sequences)
    sweeping.total = len(choices) * len(texts)
    tallies, exact = sweeping.tallies(choices, texts), set(choices)
    if not everything:
        exact = set(ranking.contenders(tallies, [tuple(slots) for slots in args["always"]]))
        sweeping.total += len(exact) * len(sequences)
        tallies |= sweeping.tallies(sorted(exact), range(len(sequences)))
    progress(sweeping.total, sweeping.total, "combinations ranked")
    document = ranking.document(args["capture"], args["labels"], tallies, exact, args["steps"])
    document["reading"] = sweeping.inputs.record("drafter").reading
    return Answer(payload["key"], "sweep", args, document)
