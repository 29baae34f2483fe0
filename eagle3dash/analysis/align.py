"""Which training sequence is the same text as which serving sequence, and how far: by token ids alone.

A state depends on the tokens up to its own, so two captures may be compared on the common prefix of a pair and nowhere
else. Sequences of equal ids are paired first; the others by the longest common prefix, each used once.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CONTEXT = 6  # tokens shown on each side of the first difference
END = 16  # last tokens that two texts share when only their prompts differ


@dataclass(frozen=True)
class Pair:
    """training[i] and serving[j] agree on their first `tokens` ids. `same`: to the end of the shorter one."""

    training: int
    serving: int
    tokens: int
    same: bool


def align(training: Sequence[np.ndarray], serving: Sequence[np.ndarray]) -> list[Pair]:
    """Pairs in the order of the serving sequences. A sequence that shares not even its first token stays alone."""
    training = [np.ascontiguousarray(ids, dtype=np.int64) for ids in training]
    serving = [np.ascontiguousarray(ids, dtype=np.int64) for ids in serving]
    pairs = _equal(training, serving)
    taken, done = {p.training for p in pairs}, {p.serving for p in pairs}
    pairs += _longest(training, serving, set(range(len(training))) - taken, set(range(len(serving))) - done)
    return sorted(pairs, key=lambda pair: pair.serving)


def common_prefix(a: np.ndarray, b: np.ndarray) -> int:
    """Number of leading ids that agree."""
    n = min(len(a), len(b))
    differ = np.flatnonzero(np.asarray(a)[:n] != np.asarray(b)[:n])
    return int(differ[0]) if differ.size else n


def alignment(
    training: Sequence[np.ndarray],
    serving: Sequence[np.ndarray],
    pairs: Sequence[Pair],
    masks: Sequence[np.ndarray | None] = (),
    text: Sequence[str] | None = None,
) -> dict[str, Any]:
    """A summary for people: how much is aligned, and where the first difference of the first differing pair stands.

    masks: loss mask of each training sequence where there is one: tells a different prompt from a different answer.
    text: the text of each token id, for reading the difference.
    """
    differing = [p for p in pairs if not p.same]
    unpaired = sorted(set(range(len(serving))) - {p.serving for p in pairs})
    in_prompt = [_in_prompt(p, masks) for p in differing]
    shortest = sum(min(len(training[p.training]), len(serving[p.serving])) for p in pairs)
    return {
        "pairs": len(pairs),
        "training_sequences": len(training),
        "serving_sequences": len(serving),
        "aligned_tokens": sum(p.tokens for p in pairs),
        "compared_tokens": shortest,  # what would be aligned if no pair differed
        "serving_tokens": sum(len(ids) for ids in serving),
        "differing_pairs": len(differing),
        "differ_in_prompt": sum(1 for known in in_prompt if known),
        "prompt_known": bool(in_prompt) and None not in in_prompt,
        "unpaired_serving": unpaired,
        "same_ends": _same_ends(training, serving, [p.serving for p in differing] + unpaired),
        "first_difference": _difference(training, serving, differing, unpaired, text),
    }


def _equal(training: list[np.ndarray], serving: list[np.ndarray]) -> list[Pair]:
    by_hash: dict[str, list[int]] = {}
    for index, ids in enumerate(training):
        by_hash.setdefault(_hash(ids), []).append(index)
    pairs = []
    for index, ids in enumerate(serving):
        twins = by_hash.get(_hash(ids))
        if twins and len(ids):
            pairs.append(Pair(twins.pop(0), index, len(ids), True))
    return pairs


def _longest(training: list[np.ndarray], serving: list[np.ndarray], free: set[int], wanting: set[int]) -> list[Pair]:
    """Greedy: the longest prefix first. In sorted order the best partner of a sequence is one of its neighbours."""
    order = sorted((training[i].tolist(), i) for i in free)
    pairs, waiting = [], sorted(wanting)
    while waiting and order:
        claimed: dict[int, Pair] = {}
        for j in waiting:
            length, i = _neighbour(serving[j], order)
            if length and (i not in claimed or claimed[i].tokens < length):
                claimed[i] = Pair(i, j, length, length == min(len(training[i]), len(serving[j])))
        if not claimed:
            break
        pairs += claimed.values()
        order = [entry for entry in order if entry[1] not in claimed]
        waiting = sorted(set(waiting) - {p.serving for p in claimed.values()})
    return pairs


def _neighbour(ids: np.ndarray, order: list[tuple[list[int], int]]) -> tuple[int, int]:
    place = bisect_left(order, (ids.tolist(), -1))
    return max((common_prefix(np.array(key), ids), i) for key, i in order[max(0, place - 1) : place + 1])


def _hash(ids: np.ndarray) -> str:
    return hashlib.sha256(ids.tobytes()).hexdigest()


def _same_ends(training: Sequence[np.ndarray], serving: Sequence[np.ndarray], which: Sequence[int]) -> int:
    """How many of these serving texts end as some training text does: the same answer behind another prompt."""
    ends = {tuple(int(i) for i in ids[-END:]) for ids in training if len(ids) >= END}
    return sum(tuple(int(i) for i in serving[j][-END:]) in ends for j in which)


def _in_prompt(pair: Pair, masks: Sequence[np.ndarray | None]) -> bool | None:
    mask = masks[pair.training] if pair.training < len(masks) else None
    if mask is None:
        return None
    answer = np.flatnonzero(np.asarray(mask) == 1)
    return bool(answer.size) and pair.tokens < int(answer[0])


def _difference(
    training: Sequence[np.ndarray],
    serving: Sequence[np.ndarray],
    differing: Sequence[Pair],
    unpaired: Sequence[int],
    text: Sequence[str] | None,
) -> dict[str, Any] | None:
    if differing:
        pair = min(differing, key=lambda p: p.tokens)
    elif unpaired and len(training):
        last = np.asarray(serving[unpaired[0]])[::-1]  # the partner is the text that ends alike
        ends = [common_prefix(np.asarray(ids)[::-1], last) for ids in training]
        pair = Pair(int(np.argmax(ends)), unpaired[0], 0, False)
    else:
        return None
    at, pairs = pair.tokens, (np.asarray(training[pair.training]), np.asarray(serving[pair.serving]))
    shared = min(common_prefix(pairs[0][::-1], pairs[1][::-1]), *(len(ids) - at for ids in pairs))
    spans = {f"{role}_span": [at, len(ids) - shared] for role, ids in zip(("training", "serving"), pairs, strict=True)}
    found: dict[str, Any] = spans | {"training_sequence": pair.training, "serving_sequence": pair.serving, "position": at}
    for role, ids in (("training", training[pair.training]), ("serving", serving[pair.serving])):
        shown = [int(i) for i in ids[max(0, at - CONTEXT) : at + CONTEXT]]
        found[f"{role}_ids"] = shown
        if text is not None:
            found[f"{role}_text"] = "".join(text[i] if 0 <= i < len(text) else f"<{i}>" for i in shown)
    return found
