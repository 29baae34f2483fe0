"""Values that are cut off, and first rows that are not training's."""

import torch

from eagle3dash.analysis.outliers import outliers
from eagle3dash.analysis.pairs import Aligned

ROWS, WIDTH = 40, 24


def told(change, lag=0):
    torch.manual_seed(0)
    training = [torch.randn(ROWS, WIDTH) for _ in range(3)]
    for t in training:
        t[0, :3] = torch.tensor([5000.0, -900.0, 600.0])  # the first token's outliers
    pairs = [Aligned(at, ROWS, [t], [change(t.clone())]) for at, t in enumerate(training)]
    return outliers(lambda: pairs, 0, 0, lag)


def scaled_first(s, by):
    s[0] *= by
    return s


def test_values_cut_off_are_told_with_their_height():
    found = told(lambda s: s.clamp(-448, 448))
    assert found["clipped"] == {"at": 448.0, "entries": 9, "channels": 3}
    assert told(lambda s: s.clamp(-2, 2))["clipped"]["at"] == 2.0


def test_the_same_values_and_a_smaller_first_row_are_not_cut_off():
    assert told(lambda s: s)["clipped"] is None
    assert told(lambda s: scaled_first(s, 0.8))["clipped"] is None
    assert told(lambda s: s * 0)["clipped"] is None


def test_first_rows_are_compared_on_their_own():
    assert told(lambda s: s)["first_row"] == {"relative_error": 0.0, "texts": 3}
    assert abs(told(lambda s: scaled_first(s, 0.8))["first_row"]["relative_error"] - 0.2) < 1e-3
    assert told(lambda s: s.roll(-1, 0))["first_row"]["relative_error"] > 0.9
    assert told(lambda s: s.roll(1, 0), lag=1)["first_row"] is None  # a shifted slot is told as shifted
