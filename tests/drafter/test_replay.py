"""All chains at once equal one chain after another with a growing cache."""

import numpy as np
import pytest
import torch
from random_drafter import PLAIN, SPECS, drafter, text

from eagle3dash.drafter import attention, chains
from eagle3dash.drafter.replay import chain, drafts
from eagle3dash.drafter.sequential import chain_after
from eagle3dash.errors import BadInput

ROWS, STEPS = 24, 5


def assembled(model, features, ids, rows=None):
    """{name: [K, rows, ...]} of the parallel chains, NaN where no step came."""
    logits = torch.full((STEPS, ROWS, model.spec.draft_vocab), torch.nan, dtype=torch.float64)
    hidden = torch.full((STEPS, ROWS, model.spec.hidden), torch.nan, dtype=torch.float64)
    valid = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    for step in chain(model, features, ids, STEPS, rows):
        logits[step.step, step.rows], hidden[step.step, step.rows] = step.logits, step.hidden
        valid[step.step, step.rows] = step.valid
        assert torch.equal(step.tokens, model.target_ids[step.logits.argmax(-1)])
    return logits, hidden, valid


@pytest.mark.parametrize("name", SPECS)
def test_parallel_equals_growing_cache(name):
    model = drafter(SPECS[name])
    features, ids = text(model.spec, ROWS)
    logits, hidden, valid = assembled(model, features, ids)
    for row in range(ROWS):
        steps = min(STEPS, ROWS - row)
        plain = chain_after(model, features, ids, row + 1, steps, forced=True)
        assert valid[:, row].sum() == steps
        torch.testing.assert_close(logits[:steps, row], plain.logits, atol=1e-10, rtol=0)
        torch.testing.assert_close(hidden[:steps, row], plain.hidden, atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", ["plain", "two layers", "latent"])
def test_chunks_change_nothing(name, monkeypatch):
    model = drafter(SPECS[name])
    features, ids = text(model.spec, ROWS)
    whole = assembled(model, features, ids)
    monkeypatch.setattr(attention, "rows_that_fit", lambda *_, **__: 3)
    monkeypatch.setattr(chains, "rows_that_fit", lambda *_, **__: 7)
    for a, b in zip(assembled(model, features, ids), whole, strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", ["plain", "two layers"])
def test_some_rows_are_those_rows_of_all(name):
    model, rows = drafter(SPECS[name]), torch.tensor([0, 2, 3, 11, 19])
    features, ids = text(model.spec, ROWS)
    some, whole = assembled(model, features, ids, rows), assembled(model, features, ids)
    torch.testing.assert_close(some[0][:, rows], whole[0][:, rows], atol=1e-12, rtol=0)
    assert some[0].isnan().all(-1).sum() == STEPS * (ROWS - len(rows))


@pytest.mark.parametrize("extra", [0, 1])
def test_right_is_the_drafted_token_against_the_text(extra):
    model = drafter(PLAIN)
    features, ids = text(model.spec, ROWS)
    ids = ids[: ROWS + extra]
    made = drafts(model, features, ids, STEPS).right
    for step in chain(model, features, ids, STEPS):
        for row, token in zip(step.rows.tolist(), step.tokens.tolist(), strict=True):
            label = row + 2 + step.step
            assert made[step.step, row] == (label < len(ids) and token == ids[label])


def drafted_text(model, features, ids):
    """`ids` with every third row's chain written into the text, so that chains of all lengths are right."""
    for row in range(0, ROWS - 8, 3):
        plain = chain_after(model, features, ids, row + 1, steps=1 + row % 4)
        ids[row + 2 : row + 2 + len(plain.tokens)] = plain.tokens
    return ids


def test_leading_keeps_what_accept_length_needs():
    model = drafter(SPECS["two layers"])
    features, ids = text(model.spec, ROWS)
    ids = drafted_text(model, features, ids)
    whole = drafts(model, features, ids, STEPS).right
    leading = drafts(model, features, ids, STEPS, leading=True).right
    assert whole.any(1).all() and (whole != leading).any()
    assert np.array_equal(leading, np.logical_and.accumulate(whole, axis=0))
    some = drafts(model, features, ids, STEPS, rows=np.arange(4, 9), leading=True).right
    assert np.array_equal(some[:, 4:9], leading[:, 4:9]) and not some[:, 9:].any() and not some[:, :4].any()


@pytest.mark.parametrize("leading", [False, True])
def test_logprob_is_that_of_the_texts_own_token_at_step_0(leading, monkeypatch):
    model = drafter(SPECS["two layers"])
    features, ids = text(model.spec, ROWS)
    first = torch.cat([step.logits for step in chain(model, features, ids, 1)]).log_softmax(-1)  # [S, DV]
    monkeypatch.setattr("eagle3dash.drafter.model.rows_that_fit", lambda *_, **__: 5)
    made = drafts(model, features, ids, STEPS, rows=np.arange(1, ROWS), leading=leading).logprob
    draft = {int(target): at for at, target in enumerate(model.target_ids)}
    known = [row + 2 < len(ids) and int(ids[row + 2]) in draft for row in range(ROWS)]
    assert any(known) and not all(known[1:-2])
    for row in range(ROWS):
        if row and known[row]:
            assert made[row] == pytest.approx(float(first[row, draft[int(ids[row + 2])]]), abs=1e-5)
        else:
            assert np.isnan(made[row])


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_texts_shorter_than_a_chain(rows):
    model = drafter(SPECS["two layers"])
    features, ids = text(model.spec, rows)
    made = drafts(model, features, ids, STEPS).right
    assert made.shape == (STEPS, rows)
    assert not made[np.add.outer(np.arange(STEPS), np.arange(rows)) + 2 >= len(ids)].any()


def test_no_rows_asked_for():
    model = drafter(PLAIN)
    features, ids = text(model.spec, ROWS)
    for leading in (False, True):
        assert not drafts(model, features, ids, STEPS, rows=np.array([], dtype=int), leading=leading).right.any()
    assert not list(chain(model, features, ids, STEPS, rows=np.array([], dtype=int)))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f, i: (f[:2], i), "reads 3 aux states, 2 were given"),
        (lambda f, i: ([x[:, :30] for x in f], i), "32 wide"),
        (lambda f, i: ([f[0], f[1], f[2][:-1]], i), "expected all alike"),
        (lambda f, i: ([x[:0] for x in f], i[:1]), "expected all alike"),
        (lambda f, i: (f, i[:-2]), f"{ROWS - 1} token ids for {ROWS} rows"),
        (lambda f, i: (f, i + 40), "different targets"),
    ],
)
def test_what_does_not_fit_is_refused(change, says):
    model = drafter(PLAIN)
    with pytest.raises(BadInput, match=says):
        drafts(model, *change(*text(model.spec, ROWS)), STEPS)
