"""What is said about a draft vocabulary's map, and that the map itself is left as it is."""

import pytest
import torch
from synthetic_drafters import config, golden, weights

from eagle3dash.formats.drafters import convert

SIZE, VOCAB = 120, 300
TARGETS = torch.arange(SIZE) * 2  # the ids that the draft vocabulary keeps


def problems(d2t: torch.Tensor | None = None, t2d: torch.Tensor | None = None, **more: torch.Tensor) -> str:
    stored = weights(config()) | more
    stored |= {name: value for name, value in (("d2t", d2t), ("t2d", t2d)) if value is not None}
    converted = convert(config(), stored)
    assert torch.equal(converted.tensors["d2t"], stored["d2t"])
    return " ".join(converted.problems)


def mask(targets: torch.Tensor) -> torch.Tensor:
    result = torch.zeros(VOCAB, dtype=torch.bool)
    result[targets] = True
    return result


def test_sorted_and_frequency_ordered_maps_are_fine():
    assert problems() == ""
    shuffled = TARGETS[torch.randperm(SIZE, generator=torch.Generator().manual_seed(0))]
    assert problems(shuffled - torch.arange(SIZE)) == ""


def test_identity_over_the_whole_vocabulary_is_fine():
    config_, stored = golden("safeai-fullvocab")
    assert not bool(stored["d2t"].any()) and convert(config_, stored).problems == ()


def test_zeros_with_a_reduced_vocabulary():
    assert "d2t is all zeros although 120 of 300" in problems(torch.zeros(SIZE, dtype=torch.int64))


def test_absolute_ids():
    assert "absolute ids" in problems(torch.arange(SIZE) + 180)


@pytest.mark.parametrize("bad", [-5, 400])
def test_ids_outside_the_vocabulary(bad):
    d2t = TARGETS - torch.arange(SIZE)
    d2t[:3] = bad
    assert "d2t sends 3 of 120 draft ids outside" in problems(d2t)


def test_absolute_ids_that_stay_inside():
    kept = torch.arange(SIZE)[torch.randperm(SIZE, generator=torch.Generator().manual_seed(1))]
    assert "the very ids that t2d keeps" in problems(kept, mask(kept))


def test_ids_counted_up_without_a_mask():
    stored = {name: tensor for name, tensor in weights(config()).items() if name != "t2d"}
    assert "0, 1, 2, ...: as offsets that keeps every second id" in " ".join(convert(config(), stored).problems)


def test_what_passed_is_said_too():
    _, stored = golden("speculators-base")
    checks = {check.what: check for check in convert(*golden("speculators-base")).record.map_checks}
    assert set(checks) == {"filled in", "offsets", "range", "distinct", "t2d", "order", "head rows"}
    assert all(check.passed for check in checks.values())
    assert "Ascending" in checks["order"].found and f"{len(stored['d2t'])} target ids" in checks["t2d"].found
    assert "t2d" not in {check.what for check in convert(*golden("modelopt-base")).record.map_checks}
    stored = weights(config()) | {"d2t": TARGETS.flip(0) - torch.arange(SIZE)}
    assert "by frequency" in next(c.found for c in convert(config(), stored).record.map_checks if c.what == "order")
    without = {**config(), "draft_vocab_size": 300}
    (only,) = convert(without, weights(without)).record.map_checks
    assert only.passed and "every token" in only.found


def test_two_draft_ids_for_one_target_id():
    d2t = TARGETS - torch.arange(SIZE)
    d2t[5] = TARGETS[4] - 5
    text = problems(d2t)
    assert "1 of 120 draft ids to a target id that another draft id has" in text and "disagree about 1" in text


def test_a_mask_that_disagrees_or_was_never_filled_in():
    assert "disagree about 2 target ids" in problems(t2d=mask(torch.cat([TARGETS[1:], torch.tensor([299])])))
    assert "keeps no token at all" in problems(t2d=torch.zeros(VOCAB, dtype=torch.bool))


def test_whole_numbers_of_other_widths_are_read():
    stored = weights(config())
    stored["d2t"], stored["t2d"] = stored["d2t"].to(torch.int32), stored["t2d"].to(torch.uint8)
    converted = convert(config(), stored)
    assert (converted.tensors["d2t"].dtype, converted.tensors["t2d"].dtype) == (torch.int64, torch.bool)
    assert converted.problems == ()


def test_a_head_that_was_cut_by_the_offsets():
    targets = torch.cat([torch.arange(60), torch.arange(60) + 200])  # two runs of one offset each
    d2t, head = targets - torch.arange(SIZE), torch.randn(VOCAB, 64, generator=torch.Generator().manual_seed(0))
    assert problems(d2t, mask(targets), **{"lm_head.weight": head[targets]}) == ""
    assert "lm_head repeats a row" in problems(d2t, mask(targets), **{"lm_head.weight": head[d2t]})
