"""A training capture of other features than those the drafter was trained on: what serving features give proves it."""

import pytest

from eagle3dash.analysis.findings import Evidence
from eagle3dash.analysis.findings.misread import trained_with
from eagle3dash.analysis.findings.origin import foreign
from eagle3dash.analysis.findings.training import drafter_weak

SAME = {"alignment": {"aligned_tokens": 950, "serving_tokens": 1000}, "aligned_tokens": 950}
MOVED = {**SAME, "lag": 1, "slot_lags": []}
OTHER = {**SAME, "alignment": {"aligned_tokens": 0, "serving_tokens": 1000}}


def replay(length, low, high):
    return {"row_accept_length": length, "row_low": low, "row_high": high, "rows": 900, "states": [0, 2, 15]}


def evidence(best, served, features=SAME, corrected=None):
    """best, served, corrected: accept length per row with its interval."""
    row = dict(zip(("row_accept_length", "low", "high"), best, strict=True)) | {"states": [2, 15, 27], "slots": [0, 1, 2]}
    row |= dict.fromkeys(("log_likelihood", "less_likely"), None) | {"behind": {"mean": 0.0, "low": 0.0, "high": 0.0}}
    changes = {}
    if corrected:
        found = dict(zip(("row_accept_length", "low", "high"), corrected, strict=True))
        changes = {
            "training": {"best": {**found, "changes": ["RoPE theta 10"], "states": [0, 2, 15]}, "rows": [], "stacked": []}
        }
    return Evidence(4, replays={"serving": replay(*served), "training": replay(*best)}, sweep={"rows": [row]},
                    features=features, changes=changes)  # fmt: skip


@pytest.mark.parametrize(
    ("best", "served", "features", "told"),
    [
        ((1.16, 1.10, 1.21), (2.6, 2.0, 3.2), SAME, True),
        ((1.16, 1.10, 1.21), (1.25, 1.22, 1.3), SAME, False),  # half of little is chance
        ((1.30, 1.20, 1.40), (1.5, 1.35, 1.6), SAME, False),  # within chance
        ((2.42, 2.3, 2.5), (2.7, 2.6, 2.8), SAME, False),  # a layer beside it
        ((1.7, 1.6, 1.8), (2.8, 2.5, 3.1), OTHER, False),  # other texts may be easier
        ((1.16, 1.10, 1.21), (2.6, 2.0, 3.2), OTHER, True),
        ((1.7, 1.5, 1.9), (2.0, 1.8, 2.2), MOVED, True),
        ((2.0, 1.8, 2.2), (1.7, 1.5, 1.9), MOVED, False),
    ],
)
def test_serving_features_must_be_far_better(best, served, features, told):
    e = evidence(best, served, features)
    assert foreign(e) is told


def test_nothing_is_told_from_such_a_capture():
    e = evidence((1.16, 1.10, 1.21), (2.6, 2.0, 3.2), corrected=(1.17, 1.1, 1.22))
    assert e.wiring.trained is None and e.correction is None and trained_with(e) == []
    (found,) = drafter_weak(e)
    assert (found.id, found.severity) == ("drafter-weak", "warning")
    assert "2.60" in found.title and "1.17 at best" in found.title and "not of what it was trained on" in found.title


def test_a_reading_that_puts_training_features_right_keeps_them():
    e = evidence((1.16, 1.10, 1.21), (2.6, 2.0, 3.2), corrected=(2.6, 2.1, 3.1))
    assert not foreign(e) and e.correction["states"] == [0, 2, 15]
