import pytest

from eagle3dash.errors import BadInput
from eagle3dash.jobs import selection
from eagle3dash.records import Capture, Drafter, DrafterSpec, Import, Log, Run, Window

SPEC = DrafterSpec(
    hidden=8, target_hidden=8, num_aux=3, intermediate=8, heads=1, kv_heads=1, head_dim=8, vocab=9, draft_vocab=9
)


def drafter(states=(2, 15, 27), steps=None):
    return Drafter("speculators", SPEC, "0" * 64, states=states, steps=steps)


def capture(states, role="training", aux=None):
    return Capture("any", 8, "F32", states, (), role=role, aux=aux)


def run(*records, settings=None):
    kinds = {Drafter: "drafter", Capture: "capture", Log: "log"}
    items = [Import(kinds[type(r)], f"file {i}", f"{i:064d}", (), r) for i, r in enumerate(records)]
    return Run("r", "2026", tuple(items), settings=settings or {})


def test_a_capture_feeds_the_slots_that_its_format_names():
    assert selection.default_slots(capture((0, 3, 31, 59), aux=(0, 1, 2)), drafter()) == (0, 1, 2)


def test_a_capture_of_exactly_a_states_feeds_all_of_them():
    assert selection.default_slots(capture((None, None, None)), drafter()) == (0, 1, 2)


def test_otherwise_the_states_that_the_drafter_names():
    assert selection.default_slots(capture((0, 27, 2, 15)), drafter()) == (2, 3, 1)


def test_nobody_says_which_slots():
    with pytest.raises(BadInput, match="holds 4 states, the drafter reads 3.*s0, s1, s2, s3.*--states"):
        selection.default_slots(capture((None,) * 4), drafter())


def test_labels_of_a_serving_capture_are_what_the_config_claims():
    served = capture((None, None, None), role="serving")
    assert selection.labels(served, drafter()) == [2, 15, 27]
    assert selection.labels(served, drafter(states=None)) == ["s0", "s1", "s2"]
    assert selection.labels(capture((None, None, None)), drafter()) == ["s0", "s1", "s2"]
    assert selection.claims(served, drafter()) == {0: 2, 1: 15, 2: 27}


def test_a_claim_that_repeats_a_known_state_is_not_believed():
    served = capture((None, None, None, 15), role="serving", aux=(0, 1, 2))
    assert selection.labels(served, drafter()) == [2, "s1", 27, "s3"]


@pytest.mark.parametrize("asked", [["0", "2", "15"], [0, 2, 15], ["s0", "s1", "s2"], ["0", "s1", 15]])
def test_states_are_named_by_number_or_by_slot(asked):
    assert selection.slots_for(asked, capture((0, 2, 15, 27)), drafter()) == (0, 1, 2)


def test_states_that_are_not_there_or_not_enough():
    with pytest.raises(BadInput, match="no state 3.*It holds 0, 2, 15, 27"):
        selection.slots_for(["0", "3", "15"], capture((0, 2, 15, 27)), drafter())
    with pytest.raises(BadInput, match="2 states were named; the drafter's fc reads 3"):
        selection.slots_for(["0", "2"], capture((0, 2, 15, 27)), drafter())


def test_steps_come_from_the_best_source():
    log = Log("sglang", "sglang", steps=4)
    lines = Log("vllm", "vllm", windows=(Window(1, survival=(0.5, 0.25, 0.1)),))
    assert selection.steps_for(run(drafter(steps=7), log), 2) == 2
    assert selection.steps_for(run(drafter(steps=7), log, settings={"steps": 6})) == 6
    assert selection.steps_for(run(drafter(steps=7), log)) == 4
    assert selection.steps_for(run(drafter(steps=7), lines)) == 3
    assert selection.steps_for(run(drafter(steps=7))) == 7
    assert selection.steps_for(run(drafter())) == 5


@pytest.mark.parametrize("steps", [0, -1, 65])
def test_steps_out_of_reach(steps):
    with pytest.raises(BadInput, match="1 to 64"):
        selection.steps_for(run(drafter()), steps)
