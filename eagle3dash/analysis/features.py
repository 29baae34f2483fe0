"""Do the serving features equal the training features: every training state against every serving slot.

Per token: cosine, relative error ||s - t|| / ||t|| and norm ratio ||s|| / ||t|| (s served, t training, float32); a cell is
their mean over all aligned tokens. Position 0 is kept: its norm is often hundreds of times larger, but each of these values
is relative to its own token, so it weighs as one token like any other. The best state of a slot is the one of lowest
relative error, not of highest cosine: neighbouring layers of a residual stream are nearly parallel.
Lag L means: serving row t + L holds what training has at row t. It is tested on a sample, by the rows that fit best, since
other rows may be torn. Streams pair by pair; holds sums, and the values by position of a bounded number of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from eagle3dash.analysis import forensics
from eagle3dash.analysis.channels import ratios
from eagle3dash.analysis.matches import CLEAR, MATCH, NOISE, best_of
from eagle3dash.records import Progress, no_progress

LAGS = (-2, -1, 0, 1, 2)
LAG_TOKENS, SAMPLE_TOKENS = 2048, 4096  # looked at for lags, and for forensics
SAMPLE_BYTES = 1 << 26  # of one state in that sample
LAG_QUANTILE = 0.25  # of the rows: those that tell the lag
FIRST, ENOUGH = 4, 16  # first row looked at for lags and forensics; rows below which nothing is said
CHANNELS = ("match", "scaled", "normed", "channel")  # explanations in which a channel of a slot is one of a state
FRAME_ROWS = 400_000
CHUNK = 4096  # rows compared at a time


@dataclass(frozen=True)
class Aligned:
    """Tensors of one pair of sequences: N training states and M serving slots, each [>= tokens, Ht]."""

    sequence: int
    tokens: int
    training: Sequence[torch.Tensor]
    serving: Sequence[torch.Tensor]


Pairs = Callable[[], Iterable[Aligned]]
Values = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def compare(
    pairs: Pairs, training_labels: Sequence[Any], serving_labels: Sequence[Any], progress: Progress = no_progress
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """`pairs` is called once for each pass. -> (the `features` document, columns of the feature_position frame)."""
    shape = len(training_labels), len(serving_labels)
    lags = _lag_errors(_sample(pairs(), LAG_TOKENS), shape)
    lag, slot_lags = choose_lag(lags)
    sums, frame = Sums(shape), Frame()
    for pair in pairs():
        for n, m in np.ndindex(shape):
            values = _values(pair.training[n], pair.serving[m], pair.tokens, slot_lags[m])
            sums.add(n, m, values)
            frame.add(n, m, pair.sequence, max(0, -slot_lags[m]), values)
        sums.aligned += pair.tokens
        sums.repeated = [a + b for a, b in zip(sums.repeated, _repeated(pair, slot_lags), strict=True)]
        progress(sums.aligned, 0, f"{sums.aligned} aligned tokens compared")
    columns = frame.columns()
    document = _document(sums, lags, lag, slot_lags, training_labels, serving_labels)
    if sums.aligned:
        found = [_examined(pairs, m, lag, sums.aligned) for m, lag in enumerate(slot_lags)]
        document["tests"] = [{"serving_slot": m, **tests} for m, (_, tests) in enumerate(found)]
        document["forensics"] = [{"serving_slot": m, **each} for m, (each, _) in enumerate(found)]
        document["worst"] = [_worst(columns, each, m) for m, (each, _) in enumerate(found)]
    return document, columns


def _repeated(pair: Aligned, slot_lags: Sequence[int]) -> list[int]:
    """See `forensics.repeated_rows`; a slot that is shifted repeats its rows where training does, as many tokens later."""
    found = [0] * len(slot_lags)
    for lag in set(slot_lags):
        mine = [m for m, each in enumerate(slot_lags) if each == lag]
        t = [lagged(state, state, pair.tokens, lag)[0] for state in pair.training]
        s = [lagged(pair.serving[m], pair.serving[m], pair.tokens, lag)[1] for m in mine]
        for m, count in zip(mine, forensics.repeated_rows(t, s, min(map(len, (t + s)))), strict=True):
            found[m] = count
    return found


def choose_lag(errors: dict[int, np.ndarray]) -> tuple[int, list[int]]:
    """{lag: lowest error of each serving slot [M]} -> (the lag that all slots have, else 0; lag of each slot).

    Another lag than 0 must halve the error at least: repeated tokens make neighbours alike."""

    def pick(values: dict[int, float]) -> int | None:
        """None: the slot is like no state at any lag."""
        known = {lag: value for lag, value in values.items() if np.isfinite(value)}
        best = min(known, key=lambda lag: (known[lag], abs(lag)), default=0)
        if not known or known[best] >= MATCH:
            return None
        return best if known[best] * CLEAR < known.get(0, np.inf) else 0

    picked = [pick({lag: float(values[m]) for lag, values in errors.items()}) for m in range(len(errors[0]))]
    told = {lag for lag in picked if lag is not None}
    shared = told.pop() if len(told) == 1 else 0
    return shared, [shared if lag is None else lag for lag in picked]


class Sums:
    """(sum, count) of each cell."""

    def __init__(self, shape: tuple[int, int]):
        self.total = np.zeros((*shape, 4))  # [N, M, (cosine, relative error, norm ratio, is at noise)]
        self.count = np.zeros(shape)
        self.aligned = 0
        self.repeated = [0] * shape[1]

    def add(self, n: int, m: int, values: Values) -> None:
        """Adds the values of some tokens to cell (n, m)."""
        self.total[n, m] += [float(v.double().sum()) for v in (*values, values[1] < NOISE)]
        self.count[n, m] += len(values[0])

    def means(self) -> np.ndarray:
        """[N, M, 4]; NaN where no token was compared."""
        return self.total / np.where(self.count > 0, self.count, np.nan)[:, :, None]


class Frame:
    """Values by position, until FRAME_ROWS rows are full."""

    def __init__(self) -> None:
        self.rows = 0
        self.parts: list[tuple[int, int, int, int, Values]] = []

    def add(self, n: int, m: int, sequence: int, start: int, values: Values) -> None:
        """`start`: the training position of the first value."""
        if self.rows + len(values[0]) <= FRAME_ROWS:
            self.rows += len(values[0])
            self.parts.append((n, m, sequence, start, values))

    def columns(self) -> dict[str, np.ndarray]:
        """Columns of one length: training_slot, serving_slot, sequence, position, cosine, relative_error, norm_ratio."""
        sizes = [len(values[0]) for *_, values in self.parts]
        keys = np.array([part[:3] for part in self.parts], dtype=np.int64).reshape(-1, 3)
        out = dict(zip(("training_slot", "serving_slot", "sequence"), np.repeat(keys, sizes, axis=0).T, strict=True))
        positions = [np.arange(start, start + size) for (*_, start, _), size in zip(self.parts, sizes, strict=True)]
        out["position"] = np.concatenate(positions) if positions else np.zeros(0, dtype=np.int64)
        for index, name in enumerate(("cosine", "relative_error", "norm_ratio")):
            found = [part[4][index].numpy() for part in self.parts]
            out[name] = np.concatenate(found) if found else np.zeros(0, dtype=np.float32)
        return out


# ---- passes --------------------------------------------------------------------------------------------------------


def per_token(s: torch.Tensor, t: torch.Tensor) -> Values:
    """s, t [n, Ht] of any float dtype -> cosine, relative error, norm ratio, each float32 [n]."""
    parts = []
    for start in range(0, len(t), CHUNK):
        a, b = s[start : start + CHUNK].float(), t[start : start + CHUNK].float()  # [chunk, Ht]
        size_a, size_b = a.norm(dim=-1), b.norm(dim=-1).clamp_min(1e-30)  # [chunk]
        cosine = (a * b).sum(-1) / (size_a.clamp_min(1e-30) * size_b)
        parts.append((cosine.clamp(-1, 1), (a - b).norm(dim=-1) / size_b, size_a / size_b))
    if not parts:
        return torch.zeros(0), torch.zeros(0), torch.zeros(0)
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))  # type: ignore[return-value]


def lagged(t: torch.Tensor, s: torch.Tensor, tokens: int, lag: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of t and s that belong together under a lag."""
    low, high = max(0, -lag), max(max(0, -lag), min(tokens, tokens - lag))
    return t[low:high], s[low + lag : high + lag]


def _values(t: torch.Tensor, s: torch.Tensor, tokens: int, lag: int) -> Values:
    t, s = lagged(t, s, tokens, lag)
    return per_token(s, t)


def _sample(pairs: Iterable[Aligned], budget: int) -> Iterator[Aligned]:
    left = budget
    for pair in pairs:
        if left <= 0:
            return
        yield Aligned(pair.sequence, min(pair.tokens, left), pair.training, pair.serving)
        left -= pair.tokens


def _lag_errors(pairs: Iterable[Aligned], shape: tuple[int, int]) -> dict[int, np.ndarray]:
    """{lag: [M]}: what the best rows of each slot differ from their nearest state, by direction or as they are."""
    errors: dict[tuple[int, int, int], list[torch.Tensor]] = {}
    for pair in pairs:
        for lag in LAGS:
            for n, m in np.ndindex(shape):
                # without the first rows: few of them would decide a short sample
                t, s = lagged(pair.training[n][FIRST:], pair.serving[m][FIRST:], max(0, pair.tokens - FIRST), lag)
                cosine, error, _ = per_token(s, t)
                errors.setdefault((lag, n, m), []).append(torch.minimum(error, (1.0 - cosine.square()).clamp_min(0).sqrt()))
    out = {lag: np.full(shape[1], np.inf) for lag in LAGS}
    for (lag, _, m), parts in errors.items():
        values = torch.cat(parts)
        if len(values):
            out[lag][m] = min(out[lag][m], float(values.quantile(LAG_QUANTILE)))
    return out


def _examined(pairs: Pairs, slot: int, lag: int, aligned: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """What one serving slot is, on a sample of rows spread over all texts; and the tests that it went through: `left`, the
    error each explanation leaves, and `channels`, see `channels.ratios`."""
    rows = _rows(pairs, slot, lag, aligned)
    if len(rows.s) < ENOUGH:
        return {"how": "unknown", "rows": len(rows.s)}, {"left": {}, "channels": None}
    found = forensics.examine(rows)
    left, known = found.pop("left"), found["how"] in CHANNELS
    t = rows.t[found["training_slot"]]
    return found, {"left": left, "channels": ratios(rows.s, t, found["how"] == "normed") if known else None}


def _worst(columns: dict[str, np.ndarray], found: dict[str, Any], slot: int) -> dict[str, Any]:
    """The position at which a slot is farthest from the state it is nearest to, on the mean over the texts."""
    mine = (columns["serving_slot"] == slot) & (columns["training_slot"] == found.get("training_slot", -1))
    out: dict[str, Any] = {"serving_slot": slot, "position": None, "relative_error": None, "texts": 0}
    position, error = columns["position"][mine], columns["relative_error"][mine]
    if not len(position):
        return out
    count = np.bincount(position)
    mean = np.bincount(position, weights=error) / np.maximum(count, 1)
    at = int(mean.argmax())
    return out | {"position": at, "relative_error": float(mean[at]), "texts": int(count[at])}


def _rows(pairs: Pairs, slot: int, lag: int, aligned: int) -> forensics.Rows:
    """A random sample of about SAMPLE_TOKENS rows, fewer where they are wide; always the same. From row FIRST on: the
    first rows are unlike all others, and the same in many texts."""
    pick, parts = torch.Generator().manual_seed(0), []
    for pair in pairs():
        budget = min(SAMPLE_TOKENS, SAMPLE_BYTES // (4 * pair.training[0].shape[-1]))
        low, high = max(FIRST, -lag), max(FIRST, -lag, min(pair.tokens, pair.tokens - lag))
        which = (torch.rand(pair.tokens, generator=pick)[low:high] < budget / aligned).nonzero()[:, 0] + low
        states = [pair.serving[slot][which + lag].float(), *(t[which].float() for t in pair.training)]  # [rows, Ht] each
        parts.append((which, torch.full_like(which, pair.sequence), states))
    position, sequence = (torch.cat([part[i] for part in parts]) for i in (0, 1))
    served, *known = (torch.cat(column) for column in zip(*(part[2] for part in parts), strict=True))
    return forensics.Rows(served, known, position, sequence)


def _document(
    sums: Sums,
    lags: dict[int, np.ndarray],
    lag: int,
    slot_lags: list[int],
    training_labels: Sequence[Any],
    serving_labels: Sequence[Any],
) -> dict[str, Any]:
    means = sums.means()
    cells = [_cell(means[n, m], n, m, training_labels[n]) for n, m in np.ndindex(means.shape[:2])]
    best_cells = [best_of([c for c in cells if c["serving_slot"] == m]) for m in range(len(serving_labels))]
    return {
        "cells": cells,
        "best": [cell["training_state"] if cell["matches"] else None for cell in best_cells],
        "best_cells": best_cells,
        "aligned_tokens": sums.aligned,
        "lag": lag,
        "lags": [{"lag": k, "relative_error": [_number(e) for e in errors]} for k, errors in lags.items()],
        "slot_lags": slot_lags,
        "training_states": list(training_labels),
        "serving_states": list(serving_labels),
        "repeated_rows": sums.repeated,
    }


def _cell(values: np.ndarray, n: int, m: int, training_label: Any) -> dict[str, Any]:
    cosine, error, ratio, share = (_number(v) for v in values)
    return {
        "training_state": training_label,
        "training_slot": n,
        "serving_slot": m,
        "cosine": cosine,
        "relative_error": error,
        "norm_ratio": ratio,
        "share_at_noise": share,
    }


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
