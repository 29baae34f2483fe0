"""Do the serving features equal the training features: every training state against every serving slot.

Per token: cosine, relative error ||s - t|| / ||t|| and norm ratio ||s|| / ||t|| (s served, t training, float32); a cell is
their mean over all aligned tokens. Position 0 is kept: its norm is often hundreds of times larger, but each of these values
is relative to its own token, so it weighs as one token like any other. The best state of a slot is the one of lowest
relative error, not of highest cosine: neighbouring layers of a residual stream are nearly parallel.
Streams pair by pair; holds sums, and the values by position of a bounded number of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from eagle3dash.analysis import forensics
from eagle3dash.analysis.channels import ratios
from eagle3dash.analysis.matches import NOISE, best_of
from eagle3dash.analysis.outliers import outliers
from eagle3dash.analysis.pairs import FIRST, LAGS, Pairs, Values, choose_lag, lag_errors, lagged, per_token, unlike
from eagle3dash.records import Progress, no_progress

SAMPLE_TOKENS = 4096  # looked at for forensics
SAMPLE_BYTES = 1 << 26  # of one state in that sample
ENOUGH = 16  # rows below which nothing is said
CHANNELS = ("match", "scaled", "normed", "channel")  # explanations in which a channel of a slot is one of a state
EXPLAINED = 0.3  # error below which an explanation holds at a lag that no state showed
FRAME_ROWS = 400_000


def compare(
    pairs: Pairs, training_labels: Sequence[Any], serving_labels: Sequence[Any], progress: Progress = no_progress
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """`pairs` is called once for each pass. -> (the `features` document, columns of the feature_position frame)."""
    shape = len(training_labels), len(serving_labels)
    lags, aligned = lag_errors(pairs(), shape), sum(pair.tokens for pair in pairs())
    lag, slot_lags = choose_lag(lags)
    for m in unlike(lags) if aligned else ():
        slot_lags[m] = _explained_at(pairs, m, slot_lags[m], aligned)
    lag = slot_lags[0] if len(set(slot_lags)) == 1 else lag
    sums, frame = Sums(shape), Frame()
    for pair in pairs():
        for n, m in np.ndindex(shape):
            values = _values(pair.training[n], pair.serving[m], pair.tokens, slot_lags[m])
            sums.add(n, m, values)
            frame.add(n, m, pair.sequence, max(0, -slot_lags[m]), values)
        sums.aligned += pair.tokens
        repeats = forensics.repeated_rows(pair.training, pair.serving, pair.tokens)
        sums.repeated = [a + b for a, b in zip(sums.repeated, repeats, strict=True)]
        progress(sums.aligned, 0, f"{sums.aligned} aligned tokens compared")
    columns = frame.columns()
    document = _document(sums, lags, lag, slot_lags, training_labels, serving_labels)
    if sums.aligned:
        found = [_examined(pairs, m, lag, sums.aligned) for m, lag in enumerate(slot_lags)]
        orders = [each["order"] for each, _ in found if each.get("order")]
        for m in [m for m, (each, _) in enumerate(found) if orders and each["how"] == "unknown"]:
            found[m] = _examined(pairs, m, slot_lags[m], sums.aligned, orders)
        document["tests"] = [{"serving_slot": m, **tests} for m, (_, tests) in enumerate(found)]
        document["forensics"] = [{"serving_slot": m, **each} for m, (each, _) in enumerate(found)]
        for m, (each, _) in enumerate(found):
            if "training_slot" in each:
                document["forensics"][m] |= outliers(pairs, m, each["training_slot"], slot_lags[m])
        document["worst"] = [_worst(columns, each, m) for m, (each, _) in enumerate(found)]
    return document, columns


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


def _values(t: torch.Tensor, s: torch.Tensor, tokens: int, lag: int) -> Values:
    t, s = lagged(t, s, tokens, lag)
    return per_token(s, t)


def _explained_at(pairs: Pairs, slot: int, lag: int, aligned: int) -> int:
    """The lag at which a slot that is like no state is one all the same, after an explanation."""
    for tried in sorted(LAGS, key=lambda each: (each != lag, abs(each))):
        rows = _rows(pairs, slot, tried, aligned)
        error = forensics.examine(rows)["error"] if len(rows.s) >= ENOUGH else None
        if error is not None and error < EXPLAINED:
            return tried
    return lag


def _examined(
    pairs: Pairs, slot: int, lag: int, aligned: int, orders: Sequence[Sequence[int]] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What one serving slot is, on a sample of rows spread over all texts; and the tests that it went through: `left`, the
    error each explanation leaves, and `channels`, see `channels.ratios`."""
    rows = _rows(pairs, slot, lag, aligned)
    if len(rows.s) < ENOUGH:
        return {"how": "unknown", "rows": len(rows.s)}, {"left": {}, "channels": None}
    found = forensics.examine(rows, orders)
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
