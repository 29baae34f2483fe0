"""Facts: a form's text becomes the change it means, and nothing else."""

import pytest

from eagle3dash.errors import BadInput
from eagle3dash.records import Capture, Log, Sequence
from eagle3dash.web import facts

CAPTURE = Capture(
    "speculators", 576, "bfloat16", (None, 2, 15), (Sequence("a", 10, "f" * 64, "e" * 64),), "serving", (0, 1, 2)
)


def form(**changed):
    return {"states": facts.written(CAPTURE.states), "role": "serving", "aux": "0, 1, 2", "last": "none", **changed}


def test_an_untouched_form_changes_nothing():
    assert facts.changes(CAPTURE, form()) == {}


def test_states_are_typed_as_they_are_written():
    assert facts.written(CAPTURE.states) == "?, 2, 15"
    assert facts.changes(CAPTURE, form(states="0 2 15")) == {"states": [0, 2, 15]}
    assert facts.changes(CAPTURE, form(aux="")) == {"aux": None}


@pytest.mark.parametrize("text", ["0, x", "1.5", "-1", "<b>"])
def test_what_is_no_list_of_states_is_refused(text):
    with pytest.raises(BadInput, match="whole numbers"):
        facts.changes(CAPTURE, form(states=text))


def test_every_slot_needs_a_state_or_a_question_mark():
    with pytest.raises(BadInput, match="every slot"):
        facts.changes(CAPTURE, form(states=""))


def test_states_of_an_import_are_all_known():
    assert facts.numbers("0,2,15") == [0, 2, 15]
    assert facts.numbers("") is None
    with pytest.raises(BadInput):
        facts.numbers("0, ?")


@pytest.mark.parametrize(("text", "found"), [("", None), ("0.747", 0.747), ("74.7%", 74.7), ("0.48, 0.26", [0.48, 0.26])])
def test_accuracies(text, found):
    assert facts.accuracies(text) == found


def test_accuracy_in_words_is_refused():
    with pytest.raises(BadInput, match="no accuracy"):
        facts.accuracies("good")


def test_summaries_say_what_is_not_known():
    assert facts.summary(CAPTURE) == "1 text, 10 tokens, unknown, HF[2], HF[15]"
    assert facts.summary(Log("vllm", None)).startswith("unknown engine")
