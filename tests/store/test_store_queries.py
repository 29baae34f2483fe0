"""The named queries against the same numbers worked out by hand or in numpy."""

import numpy
import pytest
from pandas import DataFrame
from store_samples import add, drafter, log, request, windows

from eagle3dash.records import Window
from eagle3dash.store.queries import QUERIES


def logged(store, *args):
    return add(store, "r", lambda s: log(1, *args))[0].sha256


def test_windows_are_weighed_by_rounds(store):
    key = logged(store, [Window(1, "a", accept_length=2.0, rounds=30), Window(2, "b", accept_length=4.0, rounds=10)])
    [row] = store.frame("log_windows", log=key, max_points=1).to_dict("records")
    assert row["accept_length"] == pytest.approx((2 * 30 + 4 * 10) / 40)
    assert (row["accept_length_low"], row["accept_length_high"], row["rounds"], row["windows"]) == (2, 4, 40, 2)
    assert (row["line"], row["line_end"], row["time"], row["time_end"]) == (1, 2, "a", "b")


def test_windows_are_weighed_by_drafted_tokens_and_else_alike(store):
    some = [Window(1, accept_length=2.0, drafted=90, acceptance_rate=0.2), Window(2, accept_length=4.0, drafted=10)]
    drafted = store.frame("log_windows", log=logged(store, some), max_points=1)
    assert drafted.accept_length.tolist() == pytest.approx([2.2]) and drafted.acceptance_rate.tolist() == pytest.approx(
        [0.2]
    )
    neither = add(store, "r", lambda s: log(2, [*some, Window(3, accept_length=6.0)]))[0].sha256
    assert store.frame("log_windows", log=neither, max_points=1).accept_length.tolist() == pytest.approx([4.0])


def test_an_acceptance_rate_is_accepted_over_drafted_tokens(store):
    some = [
        Window(1, rounds=10, accepted=5, drafted=50, acceptance_rate=0.1),
        Window(2, rounds=10, accepted=27, drafted=30, acceptance_rate=0.9),
    ]
    frame = store.frame("log_windows", log=logged(store, some), max_points=1)
    assert frame.acceptance_rate.tolist() == pytest.approx([32 / 80])


def test_totals_since_the_start_are_not_averaged(store):
    some = [Window(n, accept_length=1.0 + n, rounds=100 * n, cumulative=True) for n in (1, 2, 3)]
    [row] = store.frame("log_windows", log=logged(store, some), max_points=1).to_dict("records")
    assert (row["accept_length"], row["rounds"], row["accept_length_low"]) == (4, 300, 2)


def test_a_window_without_a_number_is_not_a_zero(store):
    key = logged(store, [Window(1, accept_length=3.0, rounds=5), Window(2, rounds=50), Window(3, rounds=0)])
    assert store.frame("log_windows", log=key, max_points=1).accept_length.tolist() == [3.0]
    empty = add(store, "r", lambda s: log(2, [Window(1, throughput=9.0), Window(2)]))[0].sha256
    frame = store.frame("log_windows", log=empty, max_points=1)
    assert frame.accept_length.isna().all() and frame.throughput.tolist() == [9.0]


def test_ranks_warm_up_and_totals_are_not_mixed(store):
    some = [
        *(Window(1, rank="DP0", accept_length=2.0), Window(2, rank="DP1", accept_length=3.0)),
        *(Window(3, rank="DP0", accept_length=9.0, warmup=True), Window(4, rank="DP1", accept_length=8.0, cumulative=True)),
    ]
    frame = store.frame("log_windows", log=logged(store, some), max_points=1)
    assert frame[["rank", "warmup", "cumulative", "accept_length"]].values.tolist() == [
        ["DP0", False, False, 2.0],
        ["DP1", False, False, 3.0],
        ["DP0", True, False, 9.0],
        ["DP1", False, True, 8.0],
    ]


@pytest.mark.parametrize("most", [1, 7, 500, 10**9])
def test_a_long_log_comes_in_few_points_that_cover_it(store, most):
    key = logged(store, windows(5003))
    frame = store.frame("log_windows", log=key, max_points=most)
    assert len(frame) == min(most, 2000)
    assert frame.windows.sum() == 5003 and frame.windows.max() - frame.windows.min() <= 1
    assert frame.line.is_monotonic_increasing and frame.line.iloc[0] == 1 and frame.line_end.iloc[-1] == 5003
    mean = (frame.accept_length * frame.windows).sum() / 5003
    assert mean == pytest.approx(numpy.mean([2.0 + i % 5 / 10 for i in range(5003)]))


def test_survival_by_position(store):
    some = [
        *(Window(1, survival=(0.8, 0.4), rounds=30), Window(2, survival=(0.4, 0.2, 0.1), rounds=10)),
        *(Window(3, survival=(0.0,), rounds=99, warmup=True), Window(4, rounds=5)),
    ]
    frame = store.frame("log_survival", log=logged(store, some))
    assert frame.position.tolist() == [0, 1, 2] and frame.windows.tolist() == [2, 2, 1]
    assert frame.survival.tolist() == pytest.approx([0.7, 0.35, 0.1])


def test_rounds_of_requests(store):
    key = logged(store, (), [request(0, 3, 3), request(1), request(), request(2, 2)])
    histogram = store.frame("rounds_histogram", log=key)
    assert dict(zip(histogram.num_accepted, histogram.rounds, strict=True)) == {0: 1, 1: 1, 2: 2, 3: 2}
    requests = store.frame("log_requests", log=key)
    assert requests.request.tolist() == [0, 1, 3] and requests.accept_length.tolist() == pytest.approx([3, 2, 3])
    [both] = store.frame("log_requests", log=key, buckets=1).to_dict("records")
    assert both["accept_length"] == pytest.approx(1 + 11 / 6) and both["rounds"] == 6
    assert (both["accept_length_low"], both["accept_length_high"]) == (2, 3)
    rounds = store.frame("log_rounds", log=key)
    assert rounds.rounds.tolist() == [3, 2, 1] and rounds.accept_length.tolist() == pytest.approx([2, 3.5, 4])


def test_features_by_position_leave_out_what_is_no_number(store):
    cosine = numpy.linspace(0, 1, 1000)
    cosine[10] = numpy.nan
    error = numpy.full(1000, 0.5)
    error[20] = numpy.inf
    frame = DataFrame({"training_slot": 1, "serving_slot": 2, "sequence": 0, "position": range(1000), "cosine": cosine})
    store.add_result("k", "features", None, {}, {"feature_position": frame.assign(relative_error=error, norm_ratio=2.0)})
    means = store.frame("feature_position_mean", result_key="k", training_slot=1, serving_slot=2, buckets=4)
    assert means.position.tolist() == [0, 250, 500, 750] and means.position_end.tolist() == [249, 499, 749, 999]
    assert means.tokens.tolist() == [250] * 4
    assert means.cosine.tolist() == pytest.approx([numpy.nanmean(part) for part in cosine.reshape(4, 250)])
    assert means.cosine_low.tolist() == pytest.approx([0, *cosine[[250, 500, 750]]])
    assert means.relative_error.tolist() == [0.5] * 4 and means.norm_ratio.tolist() == [2.0] * 4
    assert store.frame("feature_position_mean", result_key="k", training_slot=2, serving_slot=1).empty


def test_replay_by_position(store):
    accepted = numpy.arange(300) % 4
    frame = DataFrame({"sequence": 0, "row": range(300), "num_accepted": accepted, "visited": accepted == 3})
    store.add_result("k", "replay", None, {}, {"replay_row": frame})
    means = store.frame("replay_position", result_key="k", buckets=3)
    assert means["rows"].tolist() == [100] * 3 and means.rounds.tolist() == [25] * 3
    assert means.row_accept_length.tolist() == pytest.approx([2.5] * 3) and means.accept_length.tolist() == [4.0] * 3


def test_long_texts_come_in_at_most_2000_points(store):
    frame = DataFrame({"sequence": 0, "row": range(50_000), "num_accepted": 1, "visited": False})
    store.add_result("k", "replay", None, {}, {"replay_row": frame})
    means = store.frame("replay_position", result_key="k", buckets=10**6)
    assert len(means) == 2000 and means["rows"].sum() == 50_000
    assert means.accept_length.isna().all()


def test_runs_at_a_glance(store):
    add(store, "a", lambda s: drafter(s, 1), lambda s: log(2))
    add(store, "b", lambda s: log(2))
    frame = store.frame("runs").set_index("name")
    assert frame.loc["a", ["drafters", "captures", "logs", "targets", "bytes"]].tolist() == [1, 0, 1, 0, 5000]
    assert frame.loc["b", ["drafters", "logs", "bytes"]].tolist() == [0, 1, 0]


def test_an_unknown_query_is_a_mistake_of_ours(store):
    with pytest.raises(KeyError):
        store.frame("SELECT 1")
    assert all("$" in sql for sql in QUERIES.values())
