"""Which training sequence is the same text as which serving sequence, and how far: by token ids alone.

A state depends on the tokens up to its own, so two captures may be compared on the common prefix of a pair and nowhere
else: rows behind a difference rest on another prefix, even where their tokens are the same again. Equal sequences are
paired first; the others, each used once, by the runs of GRAM tokens that they share and few other texts hold (so a prompt
that all share pairs nobody), then by their common beginning and end.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Any

import numpy as np

from eagle3dash.analysis.difference import Decode, first_difference

END = 16  # last tokens that two texts share when only their prompts differ
GRAM = 8  # tokens in a row that are no accident
MOST = 8  # partners tried by shared grams
MULTIPLIERS = np.random.default_rng(0).integers(1, 1 << 62, GRAM, dtype=np.uint64) | np.uint64(1)  # of their hash


@dataclass(frozen=True)
class Pair:
    """training[i] and serving[j] agree on their first `tokens` ids, and on their last `after` ones behind a difference.
    `same`: to the end of the shorter one."""

    training: int
    serving: int
    tokens: int
    same: bool
    after: int = 0


def align(training: Sequence[np.ndarray], serving: Sequence[np.ndarray]) -> list[Pair]:
    """Pairs in the order of the serving sequences. A sequence that shares neither beginning nor end stays alone."""
    training = [np.ascontiguousarray(ids, dtype=np.int64) for ids in training]
    serving = [np.ascontiguousarray(ids, dtype=np.int64) for ids in serving]
    pairs = _equal(training, serving)
    taken, done = {p.training for p in pairs}, {p.serving for p in pairs}
    pairs += _alike(training, serving, set(range(len(training))) - taken, set(range(len(serving))) - done)
    return sorted(pairs, key=lambda pair: pair.serving)


def common_prefix(a: np.ndarray, b: np.ndarray) -> int:
    """Number of leading ids that agree."""
    n = min(len(a), len(b))
    differ = np.flatnonzero(np.asarray(a)[:n] != np.asarray(b)[:n])
    return int(differ[0]) if differ.size else n


def pair_of(training: Sequence[np.ndarray], serving: Sequence[np.ndarray], i: int, j: int) -> Pair:
    """How far two texts agree, from the front and from the back."""
    a, b = training[i], serving[j]
    tokens, shorter = common_prefix(a, b), min(len(a), len(b))
    return Pair(i, j, tokens, tokens == shorter, min(common_prefix(a[::-1], b[::-1]), shorter - tokens))


def alignment(
    training: Sequence[np.ndarray],
    serving: Sequence[np.ndarray],
    pairs: Sequence[Pair],
    masks: Sequence[np.ndarray | None] = (),
    decode: Decode | None = None,
) -> dict[str, Any]:
    """A summary for people: how much is aligned, and what differs first in the pair that parts first.

    masks: loss mask of each training sequence where there is one: tells a different prompt from a different answer.
    decode: token ids to text, for reading the difference.
    """
    differing = [p for p in pairs if not p.same]
    unpaired = sorted(set(range(len(serving))) - {p.serving for p in pairs})
    in_prompt = [_in_prompt(p, masks) for p in differing]
    shortest = sum(min(len(training[p.training]), len(serving[p.serving])) for p in pairs)
    shown = min(differing, key=lambda p: (p.tokens, -p.after), default=None)
    if shown is None and unpaired and len(training):
        shown = Pair(0, unpaired[0], 0, False)
    mask = masks[shown.training] if shown is not None and shown.training < len(masks) else None
    return {
        "pairs": len(pairs),
        "training_sequences": len(training),
        "serving_sequences": len(serving),
        "aligned_tokens": sum(p.tokens for p in pairs),
        "compared_tokens": shortest,  # what would be aligned if no pair differed
        "tokens_behind": sum(p.after for p in differing),  # the same again, on another prefix: not to be compared
        "serving_tokens": sum(len(ids) for ids in serving),
        "differing_pairs": len(differing),
        "differ_in_prompt": sum(1 for known in in_prompt if known),
        "prompt_known": bool(in_prompt) and None not in in_prompt,
        "unpaired_serving": unpaired,
        "same_ends": sum(
            p.after >= END and known is not False for p, known in zip(differing, in_prompt, strict=True)
        ),  # the same answer behind another prompt
        "first_difference": None
        if shown is None
        else {"training_sequence": shown.training, "serving_sequence": shown.serving}
        | first_difference(training[shown.training], serving[shown.serving], shown.tokens, mask, decode),
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


def _alike(training: list[np.ndarray], serving: list[np.ndarray], free: set[int], wanting: set[int]) -> list[Pair]:
    """Greedy: the most alike first. Beginning and end are looked for among the neighbours in two sorted orders."""
    orders = [sorted((training[i][::way].tolist(), i) for i in free) for way in (1, -1)]
    shared = _shared(training, serving, free, wanting)
    pairs, waiting = [], sorted(wanting)
    while waiting and free:
        claimed: dict[int, tuple[Any, Pair]] = {}
        for j in waiting:
            near = {i for order, way in zip(orders, (1, -1), strict=True) for i in _neighbours(serving[j][::way], order)}
            best = nlargest(MOST, shared[j].keys() & free, key=shared[j].__getitem__)
            made = [pair_of(training, serving, i, j) for i in near.union(best)]
            found = max(((_likeness(pair, shared), pair) for pair in made), key=lambda each: each[0])
            if any(found[0]) and (found[1].training not in claimed or claimed[found[1].training][0] < found[0]):
                claimed[found[1].training] = found
        if not claimed:
            break
        pairs += [pair for _, pair in claimed.values()]
        free -= claimed.keys()
        orders = [[entry for entry in order if entry[1] not in claimed] for order in orders]
        waiting = sorted(set(waiting) - {pair.serving for _, pair in claimed.values()})
    return pairs


def _likeness(pair: Pair, shared: dict[int, dict[int, float]]) -> tuple[float, int]:
    return shared[pair.serving].get(pair.training, 0.0), pair.tokens + pair.after


def _shared(
    training: list[np.ndarray], serving: list[np.ndarray], free: set[int], wanting: set[int]
) -> dict[int, dict[int, float]]:
    """{serving: {training: grams they share}} of the most alike; a gram that n training texts hold counts 1/n."""
    grams = [(_grams(training[i]), i) for i in sorted(free)]
    if not grams or not wanting:
        return {j: {} for j in wanting}
    every, owner = (np.concatenate(x) for x in zip(*((g, np.full(len(g), i)) for g, i in grams), strict=True))
    order = np.argsort(every, kind="stable")
    every, owner = every[order], owner[order]
    found = {}
    for j in wanting:
        mine = _grams(serving[j])
        low, high = np.searchsorted(every, mine, "left"), np.searchsorted(every, mine, "right")
        rare = (high > low) & (high - low <= max(1, len(grams) // 4))
        votes: dict[int, float] = {}
        for a, b in zip(low[rare].tolist(), high[rare].tolist(), strict=True):
            for i in owner[a:b].tolist():
                votes[i] = votes.get(i, 0.0) + 1.0 / (b - a)
        found[j] = votes
    return found


def _grams(ids: np.ndarray) -> np.ndarray:
    """Hashes of the runs of GRAM tokens of a text, each once."""
    if len(ids) < GRAM:
        return np.zeros(0, dtype=np.uint64)
    windows = np.lib.stride_tricks.sliding_window_view(ids.astype(np.uint64), GRAM)  # [S - GRAM + 1, GRAM]
    return np.unique((windows * MULTIPLIERS).sum(axis=1, dtype=np.uint64))


def _neighbours(ids: np.ndarray, order: list[tuple[list[int], int]]) -> list[int]:
    place = bisect_left(order, (ids.tolist(), -1))
    return [i for _, i in order[max(0, place - 1) : place + 1]]


def _hash(ids: np.ndarray) -> str:
    return hashlib.sha256(ids.tobytes()).hexdigest()


def _in_prompt(pair: Pair, masks: Sequence[np.ndarray | None]) -> bool | None:
    mask = masks[pair.training] if pair.training < len(masks) else None
    if mask is None:
        return None
    answer = np.flatnonzero(np.asarray(mask) == 1)
    return bool(answer.size) and pair.tokens < int(answer[0])
