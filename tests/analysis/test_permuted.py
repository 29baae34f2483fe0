"""Channels in another order: told as they were moved, through noise and a scale; and an order in words."""

import pytest
import torch

from eagle3dash.analysis.forensics import Rows, examine
from eagle3dash.analysis.permuted import channel_order, coarsest, pattern

WIDTH, COUNT = 72, 200


def states(seed=0, rows=COUNT):
    torch.manual_seed(seed)
    return torch.randn(rows, WIDTH) * torch.rand(WIDTH) + 3 * torch.randn(WIDTH)  # constant parts, as residual streams have


def examined(s, *t, **more):
    where = torch.arange(len(s)) + 4
    return examine(Rows(s, list(t), where, torch.zeros_like(where)), **more)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (torch.arange(WIDTH).roll(5), "rolled by 67 channels"),
        (torch.arange(WIDTH).flip(0), "reversed"),
        (torch.cat([torch.arange(0, WIDTH, 2), torch.arange(1, WIDTH, 2)]), "interleaved by 2"),
        (torch.arange(WIDTH).reshape(2, -1).T.flatten(), "interleaved by 2"),
        (torch.arange(WIDTH).reshape(9, 8)[[0, 1, 3, 2, 4, 5, 6, 7, 8]].flatten(), "9 blocks"),
    ],
)
def test_an_order_is_found_and_put_in_words(order, words):
    t = states()
    names, _ = channel_order(t[:, order] + 0.05 * torch.randn(COUNT, WIDTH), t)
    assert names == order.tolist() and pattern(names) == words
    found = examined(t[:, order], states(1), t)
    assert found["how"] == "blocks" and found["training_slot"] == 1 and found["error"] < 0.01


def test_what_is_not_reordered_has_no_order():
    t = states()
    assert channel_order(t, t) is None and channel_order(states(2), t) is None
    assert channel_order(t[:20].flip(-1), t[:20]) is None  # few rows tell nothing
    assert coarsest([4, 5, 6, 7, 0, 1, 2, 3]) == [1, 0] and coarsest([1, 0, 2]) == [1, 0, 2]


def test_an_order_seen_in_another_slot_is_tried_where_noise_hides_it():
    t = torch.nn.functional.normalize(torch.randn(COUNT, WIDTH, generator=torch.manual_seed(3)), dim=1)
    s = t.roll(WIDTH // 2, 1) + 0.5 * torch.randn(COUNT, WIDTH) / WIDTH**0.5
    assert examined(s, t, orders=[[1, 0]])["order"] == [1, 0]


def test_a_part_that_was_not_filled_is_told_and_the_rest_still_known():
    t = states()
    s = t.clone()
    s[:, 16:32] = 0
    found = examined(s, t)
    assert found["dead_channels"] == {"count": 16, "first": 16, "last": 31, "of": WIDTH} and found["how"] == "match"
    s[:, 50] = 0  # here and there: rounded to zero
    assert examined(s, t)["dead_channels"] is None and examined(s, t)["how"] == "match"
    assert examined(t, t)["dead_channels"] is None
