"""What the token ids of the captures show about training: a loss mask off by one, served text unlike the training text."""

from __future__ import annotations

from typing import Any

from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.told import accept_lengths
from eagle3dash.analysis.texts import SPANS, TEXTS
from eagle3dash.records import Finding, Gap

MASK_FIX = (
    "Compare the mask with the answers of a few training texts, token by token: the token at t counts when it belongs to "
    "an answer. A mask made for shifted labels must be shifted back before it is stored; train again with the right one."
)
INVERTED_FIX = (
    "Swap the mask: 1 where the token at t belongs to an answer, 0 on prompts, templates and padding (a mask of what to "
    "ignore must be turned around before it is stored). Train again with the right one."
)
TEXT_FIX = (
    "Train on texts like those served: answers of this very target to prompts like your traffic, with the same chat "
    "template and thinking mode."
)


def loss_mask_shifted(e: Evidence) -> list[Finding | Gap]:
    """The mask's edges stand one token beside those of the answers."""
    found = e.texts.get("mask")
    if found is None:
        return [Gap("loss-mask-shifted", "add a training capture with loss masks")]
    if found["inverted"]:
        return [_inverted(found["inverted"])]
    if found["shift"] is None:
        needs = f"add texts: {SPANS} or more masked answers, begun differently after one template (here {found['spans']})"
        return [Gap("loss-mask-shifted", needs)]
    if found["shift"] == 0:
        return []
    way = "late" if found["shift"] > 0 else "early"
    title = f"The loss mask of the training capture begins one token {way} in its {found['spans']} answers"
    evidence = {"spans": found["spans"], "share_of_the_most_frequent_token": found["shares"]}
    return [Finding("loss-mask-shifted", "warning", title, evidence, MASK_FIX)]


def _inverted(found: dict[str, Any]) -> Finding:
    """The mask covers what stands between the answers."""
    title = (
        "The loss mask of the training capture is inverted: it covers prompts and leaves answers out "
        f"({found['spans']} answers begin where it ends)"
    )
    evidence = {
        "answers_left_out": found["spans"],
        "replays_count": "the answers, with the mask turned around",
        "share_of_the_most_frequent_token": found["shares"],
    }
    return Finding("loss-mask-shifted", "warning", title, evidence, INVERTED_FIX)


def off_distribution(e: Evidence) -> list[Finding | Gap]:
    """Served text is unlike the training text by how often its tokens occur."""
    found = e.texts.get("unlike")
    if found is None:
        return [Gap("off-distribution", f"add captures of {TEXTS} texts or more each")]
    if not found["differ"]:
        return []
    title = (
        f"Served text is unlike the training text: {found['divergence_bits']:.2f} bits apart in their tokens, where chance "
        f"gives {found['by_chance']:.2f}"
    )
    return [Finding("off-distribution", "warning", title, {**found, **accept_lengths(e)}, TEXT_FIX)]
