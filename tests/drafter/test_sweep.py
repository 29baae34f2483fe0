"""Shared products change no answer."""

from itertools import permutations, product

import numpy as np
import pytest
import torch
from random_drafter import PLAIN, SPECS, drafter, text

from eagle3dash.drafter import sweep
from eagle3dash.drafter.chains import Chains
from eagle3dash.drafter.replay import drafts, start
from eagle3dash.drafter.sweep import Sweep
from eagle3dash.errors import BadInput

ROWS, STEPS = 20, 3


@pytest.mark.parametrize("name", SPECS)
def test_first_step_equals_the_plain_one(name):
    model = drafter(SPECS[name])
    states, ids = text(model.spec, ROWS, states=5)
    shared = Sweep(model, states, ids, STEPS)
    assert shared.shared
    for combination in list(permutations(range(5), model.spec.num_aux))[:7]:
        plain, made = start(shared.text, [states[i] for i in combination]), shared._start(combination)
        torch.testing.assert_close(made.state, plain.state, atol=1e-11, rtol=1e-11)
        outs = [Chains(shared.text, shared.text.prefix(x), shared.text.all_rows).advance() for x in (plain, made)]
        torch.testing.assert_close(outs[1], outs[0], atol=1e-9, rtol=1e-11)


@pytest.mark.parametrize("name", ["plain", "two layers", "feedback norm, fc norm", "latent"])
@pytest.mark.parametrize("fits", [True, False])
def test_drafts_equal_the_replays(name, fits, monkeypatch):
    model = drafter(SPECS[name])
    states, ids = text(model.spec, ROWS, states=3)
    if not fits:
        monkeypatch.setattr(sweep, "free_bytes", lambda device: 0)
    shared = Sweep(model, states, ids, STEPS)
    assert shared.shared == fits
    for combination in product(range(3), repeat=3):
        plain, made = drafts(model, [states[i] for i in combination], ids, STEPS), shared.drafts(combination)
        assert np.array_equal(made.right, plain.right)
        np.testing.assert_allclose(made.logprob, plain.logprob, atol=1e-5)
        rows = np.array([1, 5, 6, 17])
        leading = np.logical_and.accumulate(plain.right, axis=0)
        assert np.array_equal(shared.drafts(combination, rows, leading=True).right[:, rows], leading[:, rows])


def test_wrong_number_of_states_is_refused():
    model = drafter(PLAIN)
    states, ids = text(model.spec, ROWS, states=4)
    with pytest.raises(BadInput, match="reads 3 aux states, 2 were given"):
        Sweep(model, states, ids, STEPS).drafts((0, 1))
