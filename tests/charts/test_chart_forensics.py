"""The pictures of the tests on each slot: the lag, the channels; captions that say what is there."""

import pytest

from eagle3dash.analysis.held import Held
from eagle3dash.charts.forensics import channels, lags


def slot(m, state, how="match", lag=0):
    return Held(m, state, m, state, state, how, lag, 0, {"error": 0.01})


def test_lag_curve_names_the_lag_or_says_there_is_none():
    found = [{"lag": lag, "relative_error": [abs(lag - 1) * 0.5, abs(lag) * 0.5]} for lag in (-2, -1, 0, 1, 2)]
    chart = lags({"lags": found}, [slot(0, 2, lag=1), slot(1, 15)])
    assert list(chart.figure.data[0].y) == [1.5, 1.0, 0.5, 0.0, 0.5]
    assert chart.caption.startswith("The lowest point is not at 0: slot 0 at +1.")
    assert len(chart.rows) == 10
    assert "nothing is shifted" in lags({"lags": found}, [slot(1, 15)]).caption


@pytest.mark.parametrize(
    "curve, how, of, told",
    [
        ([1.0] * 101, "match", "serving / training", "Slot 0: all channels at 1, no weight stands between."),
        ([3.0] * 101, "scaled", "serving / training", "Slot 0: all channels at 3, one scale for all."),
        (
            [0.1 + i / 100 for i in range(101)],
            "normed",
            "weight of a norm",
            "Slot 0: the weights of a norm show themselves, 90 % of them from 0.15 to 1.05.",
        ),
    ],
)
def test_channels_say_whether_a_norm_or_a_scale_stands_between(curve, how, of, told):
    tests = [{"serving_slot": 0, "channels": {"of": of, "channels": 576, "percentiles": curve}, "left": {}}]
    chart = channels({"tests": tests}, [slot(0, 2, how)])
    assert chart.caption == told and list(chart.figure.data[0].y) == curve


def test_a_slot_that_is_no_state_channel_by_channel_has_no_curve():
    chart = channels({"tests": [{"serving_slot": 0, "channels": None, "left": {}}]}, [slot(0, 2, "blocks")])
    assert not chart.rows and chart.figure.layout.annotations[0].text == "no data"
