"""What a person says of a run: checked before it is kept."""

import pytest

from eagle3dash.errors import BadInput
from eagle3dash.jobs.settings import checked


def test_what_makes_sense_is_kept():
    given = {"expected": [0.48, 0.26], "expected_kind": "cumulative", "temperature": 1, "steps": 5, "engine": "vllm"}
    assert checked(given) == {**given, "temperature": 1.0}
    assert checked({"temperature": 0}) == {"temperature": 0.0}  # greedy is a statement, not an absence
    assert checked({"temperature": None, "expected": None}) == {"temperature": None, "expected": None}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"temperature": -0.1}, "temperature is -0.1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": float("inf")}, "temperature is inf"),
        ({"temperature": "hot"}, "temperature is 'hot'"),
        ({"temperature": True}, "temperature is True"),
        ({"steps": 0}, "steps is 0"),
        ({"steps": 2.5}, "steps is 2.5"),
        ({"expected": 7000}, "expected accuracy"),
        ({"engine": 3}, "engine is 3"),
        ({"colour": "red"}, "no setting colour; there are expected"),
    ],
)
def test_what_makes_none_is_refused(given, told):
    with pytest.raises(BadInput, match=told):
        checked(given)
