"""Loss masks for a capture that has none: a server records no prompt boundary, the training capture of the same texts does.

Without it, replays on serving features would count prompt rows that the training number leaves out, and the two would
differ for no fault at all. Masks that are inverted beyond doubt (see `texts.mask_edges`) are turned around first: replays
count answers, as servers do.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from eagle3dash.analysis.align import align
from eagle3dash.analysis.texts import MOST_TEXTS, mask_edges
from eagle3dash.jobs.tasks.inputs import Inputs, Text


def masks(inputs: Inputs, role: str) -> tuple[dict[int, np.ndarray], str | None]:
    """Text index -> mask u8 [S], for the texts that have or can borrow one; and where they come from (own, training).

    A text that continues the same prompt differently borrows the mask as far as both agree, and 1 from there on if they
    part inside the answer. One that parts inside the prompt is another text, and borrows nothing.
    """
    own = righted(inputs.texts(role))
    if own or role == "training" or inputs.record("training") is None:
        return own, "own" if own else None
    served, trained = list(inputs.texts(role)), list(inputs.texts("training"))
    found, lent = {}, righted(trained)
    for pair in align([text.tokens.numpy() for text in trained], [text.tokens.numpy() for text in served]):
        mask, length = lent.get(pair.training), len(served[pair.serving].tokens)
        if mask is not None and pair.tokens and (pair.tokens == length or mask[pair.tokens - 1] == 1):
            rest = np.ones(length - pair.tokens, dtype=mask.dtype)
            found[pair.serving] = np.concatenate([mask[: pair.tokens], rest])
    return found, "training" if found else None


def righted(texts: Iterable[Text]) -> dict[int, np.ndarray]:
    """Text index -> mask, of the texts that have one; all turned around where they are inverted."""
    masked = [(text.index, text.tokens.numpy(), text.loss_mask) for text in texts if text.loss_mask is not None]
    if mask_edges([(tokens, mask) for _, tokens, mask in masked[:MOST_TEXTS]])["inverted"]:
        return {index: (mask != 1).astype(mask.dtype) for index, _, mask in masked}
    return {index: mask for index, _, mask in masked}
