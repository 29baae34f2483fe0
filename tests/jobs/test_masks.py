"""Which rows of a served text count: those that the training capture's mask says, as far as both are one text."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from eagle3dash.jobs.tasks.inputs import Inputs
from eagle3dash.jobs.tasks.masks import masks
from eagle3dash.records import Capture, Import, Sequence, to_json


@pytest.fixture
def inputs(tmp_path):
    """Builds Inputs of a training and a serving capture from (ids, mask) of each text."""

    def build(**captures):
        imports, paths = {}, {}
        for role, texts in captures.items():
            sequences = []
            for index, (ids, mask) in enumerate(texts):
                name = f"{role}{index}"
                paths[name] = str(tmp_path / f"{name}.safetensors")
                tensors = {"token_ids": torch.tensor(ids)}
                if mask is not None:
                    tensors["loss_mask"] = torch.tensor(mask, dtype=torch.uint8)
                save_file(tensors, paths[name])
                sequences.append(Sequence(name, len(ids), name, name))
            record = Capture("any", 4, "F32", (None,), tuple(sequences), role=role)
            imports[role] = to_json(Import("capture", role, "0" * 64, (), record))
        return Inputs({"imports": imports, "paths": paths}, "cpu")

    return build


PROMPT, ANSWER = [1, 2, 3], [4, 5, 6, 7]
MASK = [0, 0, 0, 1, 1, 1, 1]


def found(inputs, role="serving"):
    borrowed, origin = masks(inputs, role)
    return {index: mask.tolist() for index, mask in borrowed.items()}, origin


def test_the_same_text_borrows_the_mask(inputs):
    built = inputs(training=[([9, 9], [0, 1]), (PROMPT + ANSWER, MASK)], serving=[(PROMPT + ANSWER, None)])
    assert found(built) == ({0: MASK}, "training")


def test_an_answer_that_goes_on_differently_counts_to_its_end(inputs):
    built = inputs(training=[(PROMPT + ANSWER, MASK)], serving=[([*PROMPT, 4, 5, 60, 70, 80, 90], None)])
    assert found(built) == ({0: [0, 0, 0, 1, 1, 1, 1, 1, 1]}, "training")


def test_a_shorter_text_borrows_its_part(inputs):
    built = inputs(training=[(PROMPT + ANSWER, MASK)], serving=[(PROMPT, None)])
    assert found(built) == ({0: [0, 0, 0]}, "training")


def test_another_prompt_borrows_nothing(inputs):
    built = inputs(training=[(PROMPT + ANSWER, MASK)], serving=[([1, 2, 30, 4, 5], None)])
    assert found(built) == ({}, None)


def test_own_masks_come_first(inputs):
    own = np.array(MASK).tolist()[::-1]
    built = inputs(training=[(PROMPT + ANSWER, MASK)], serving=[(PROMPT + ANSWER, own)])
    assert found(built) == ({0: own}, "own")
    assert found(built, "training") == ({0: MASK}, "own")


def test_nothing_to_borrow(inputs):
    assert found(inputs(serving=[(PROMPT, None)])) == ({}, None)
    assert found(inputs(training=[(PROMPT, None)], serving=[(PROMPT, None)])) == ({}, None)


def test_inverted_masks_are_turned_around(inputs):
    draw, chats = np.random.default_rng(3), []
    for _ in range(10):
        prompt, answer = draw.integers(10, 400, 9).tolist(), draw.integers(10, 400, 20).tolist()
        ids = [1, 500, 501, *prompt, 2, 1, 502, 501, *answer, 2]
        chats.append((ids, [0] * (len(ids) - 21) + [1] * 21))
    turned = [(ids, [1 - value for value in mask]) for ids, mask in chats]
    right = {index: mask for index, (_, mask) in enumerate(chats)}
    bare = [(ids, None) for ids, _ in chats]
    for training in (chats, turned):
        built = inputs(training=training, serving=bare)
        assert found(built, "training") == (right, "own") and found(built) == (right, "training")
