"""A part of the fault laboratory, on some of the texts: every kind of fault once. `python -m tests.lab` runs it all."""

import pytest
import torch

from tests.lab.cases import everything
from tests.lab.healthy import Healthy
from tests.lab.table import tried

TEXTS = (1, 7)  # the two short ones: a case must take about a second
SOME = (
    "states (2, 15, 27) [",
    "one layer further in slots (1, 2)",
    "order (0, 15, 2)",
    "one slot shifted",
    "post-norm in slot 2 [",
    "HF[15] without HF[2]",
    "blocks: 3 shards",
    "scaled: all by 0.25 [",
    "int4 by row",
    "a fifth of the rows",
    "another system prompt",
    "vLLM: no step after",
    "log alone: dead",
    "states (2, 15, 27) + shifted",
)
FINE = ("healthy", "serving in float32", "noise of another", "answers that part")
CASES = [f for f in everything() if f.title.startswith(SOME if f.names else FINE)]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    torch.set_num_threads(1)
    return Healthy(tmp_path_factory.mktemp("lab"), TEXTS)


@pytest.mark.parametrize("fault", CASES, ids=lambda fault: fault.title)
def test_the_fault_is_named_first_and_nothing_else_is(lab, fault):
    row = tried(lab, [fault])[0]
    assert row.right, row.text()


def test_the_laboratory_is_large_enough():
    faults = [f for f in everything() if f.names]
    assert len(faults) >= 40 and len(everything()) - len(faults) >= 20
    assert len({f.title for f in everything()}) == len(everything())
    assert len(CASES) >= len(SOME) + len(FINE)
