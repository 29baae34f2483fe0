"""What token ids alone tell: whether a loss mask is off by one, and whether two sets of texts are of one kind.

Arrays in, numbers out; no tokenizer. A chat template puts the same tokens before every answer, while answers differ: so the
mask's edge stands where constant tokens end. Two sets of texts are compared by how often each token occurs in them
(Jensen-Shannon divergence, bits), against what chance does: the same texts dealt into two sets at random, many times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from eagle3dash.analysis.difference import Decode, readable

SPANS = 8  # masked spans from which the tokens around their edges tell something
CONSTANT, VARIED = 0.95, 0.6  # share of the most frequent token at one place
TEXTS, MOST_TEXTS = 8, 200  # of each set
DEALS = 199
AROUND = 6  # tokens shown on each side of an edge
APART = 0.05  # bits beyond chance
CERTAIN = 0.01


def mask_edges(texts: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, Any]:
    """(token ids [S], loss mask [S]) of texts -> spans, shift (+1: the mask starts one token late, -1: early, 0: right,
    None: the tokens don't tell), at each place around the edges the share of its most frequent token; and inverted: the
    numbers of the opposite mask, where its edges are right and those of the mask itself are not, else None."""
    found = _edges(texts)
    turned = None
    if found["shift"] is None:
        turned = _edges([(tokens, 1 - (mask == 1).astype(np.uint8)) for tokens, mask in texts])
    return found | {"inverted": turned if turned and turned["shift"] == 0 else None}


def _edges(texts: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, Any]:
    starts: dict[int, list[int]] = {at: [] for at in (-2, -1, 0, 1)}
    ends: dict[int, list[int]] = {at: [] for at in (0, 1)}
    spans = 0
    for tokens, mask in texts:
        for start, end in _answers(mask):
            spans += 1
            for at, found in starts.items():
                found.append(int(tokens[start + at]))
            for at, found in ends.items():
                if end - 1 + at < len(tokens):
                    found.append(int(tokens[end - 1 + at]))
    shares = {f"start {at:+d}": _share(found) for at, found in starts.items()}
    shares |= {f"end {at:+d}": _share(found) for at, found in ends.items()}
    return {"spans": spans, "shift": _shift(spans, shares, len(ends[1])), "shares": shares}


def _answers(mask: np.ndarray) -> list[tuple[int, int]]:
    """[start, end) of the masked spans that are long enough to be answers, behind something."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (mask == 1).astype(np.int8), [0]])))
    return [(start, end) for start, end in edges.reshape(-1, 2).tolist() if start >= 2 and end - start >= 3]


def first_edge(texts: Sequence[tuple[np.ndarray, np.ndarray]], decode: Decode | None) -> dict[str, Any] | None:
    """Where the first masked span begins: `position`, the ids on both sides and, with `decode`, their text, for reading
    where the mask stands."""
    for tokens, mask in texts:
        for at, _ in _answers(mask):
            sides = {"out": tokens[max(0, at - AROUND) : at].tolist(), "in": tokens[at : at + AROUND].tolist()}
            text = {name: readable(decode(ids)) for name, ids in sides.items()} if decode else None
            return {"position": at, "ids": sides, "text": text}
    return None


def _shift(spans: int, shares: dict[str, float | None], followed: int) -> int | None:
    if spans < SPANS:
        return None
    same = {name: share is not None and share >= CONSTANT for name, share in shares.items()}
    other = {name: share is not None and share <= VARIED for name, share in shares.items()}
    if same["start -1"] and other["start +0"]:
        return 0
    if same["start -2"] and other["start -1"]:
        return 1
    left_out = other["end +1"] or (other["end +0"] and same["end +1"])  # the answer goes on, or the token that ends it
    if followed >= SPANS and same["start +0"] and other["start +1"] and left_out:
        return -1
    return None


def _share(found: Sequence[int]) -> float | None:
    return Counter(found).most_common(1)[0][1] / len(found) if found else None


def unlike(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> dict[str, Any] | None:
    """Two sets of texts (token ids) -> divergence in bits, what chance gives (mean), p, and whether they differ in kind.
    None with fewer than TEXTS in either. The deals are seeded, so the same texts give the same answer."""
    sets = [[text for text in texts if len(text)][:MOST_TEXTS] for texts in (first, second)]
    if min(map(len, sets)) < TEXTS:
        return None
    both = [*sets[0], *sets[1]]
    ids = np.unique(np.concatenate(both))
    counts = np.stack([np.bincount(np.searchsorted(ids, text), minlength=len(ids)) for text in both])  # [texts, ids]
    deal, n = np.random.default_rng(0), len(sets[0])
    found = _divergence(counts[:n].sum(0), counts[n:].sum(0))
    dealt = []
    for _ in range(DEALS):
        order = deal.permutation(len(both))
        dealt.append(_divergence(counts[order[:n]].sum(0), counts[order[n:]].sum(0)))
    p = (1 + sum(value >= found for value in dealt)) / (DEALS + 1)
    chance = float(np.mean(dealt))
    told = {"divergence_bits": found, "by_chance": chance, "p": p, "texts": [n, len(both) - n]}
    return told | {"differ": p <= CERTAIN and found - chance >= APART}


def _divergence(a: np.ndarray, b: np.ndarray) -> float:
    p, q = a / a.sum(), b / b.sum()
    m = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [np.where(x > 0, x * np.log2(x / m), 0.0).sum() for x in (p, q)]
    return float(sum(parts) / 2)
