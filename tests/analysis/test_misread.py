"""Which rows of the `changes` document a finding is made of."""

from eagle3dash.analysis.findings import Evidence
from eagle3dash.analysis.findings.misread import steps, trained_with

WIDTH = {"low": 1.0, "high": 3.0, "rows": 300, "row_survival": [0.5]}


def row(change, length, difference, on=(), **sets):
    told = {"row_accept_length": length, "difference": difference, "difference_low": difference, "difference_high": 2.0}
    return {"change": change, "on": list(on), "sets": sets, "likelier": None, **told, **WIDTH}


def document(rows, stacked, *names):
    best = {"changes": list(names), "states": [2, 0, 15], "row_accept_length": 2.0}
    return {"baseline": {"row_accept_length": 1.02, **WIDTH}, "rows": rows, "stacked": stacked, "best": best}


def test_what_gains_on_other_states_is_told_with_the_numbers_of_those():
    """A drafter that nothing helps on the first choice of states: the same change is tried on others."""
    dead, alive = row("its map", 1.03, 0.01, d2t="absolute"), row("its map", 2.0, 0.95, d2t="absolute")
    found = document([dead], [alive], "its map")
    assert steps(found) == [alive]
    told = trained_with(Evidence(4, changes={"training": found}))[0]
    assert told.id == "wrong-vocab-map" and told.severity == "error"
    assert "1.05 tokens per row on training features with states 2, 0, 15, 2.00 with its map" in told.title
    assert told.evidence["before"] == {"row_accept_length": 2.0 - 0.95}


def test_what_gains_on_top_of_another_says_so():
    first = row("norm_before_residual on", 1.6, 0.58, residual_norm=True)
    second = row("RoPE theta 10,000", 2.0, 0.4, on=[first["change"]], rope="10,000")
    found = document([first], [second], first["change"], second["change"])
    assert steps(found) == [first, second]
    one, two = trained_with(Evidence(4, changes={"training": found}))
    assert "as its files say, 1.60" in one.title and one.evidence["before"]["row_accept_length"] == 1.02
    assert "1.60 tokens per row on training features with norm_before_residual on, 2.00" in two.title
