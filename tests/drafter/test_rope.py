"""Frequencies against transformers' own, and the rotation against complex numbers."""

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from eagle3dash.drafter.rope import Rotary, frequencies, score_factor
from eagle3dash.errors import BadInput
from eagle3dash.records import Rope

DIM, ORIGINAL = 64, "original_max_position_embeddings"
KINDS = {  # ours, and the same as transformers takes it
    "linear": (Rope("linear", 5e5, 4.0), {"factor": 4.0, "rope_theta": 5e5}),
    "dynamic": (Rope("dynamic", 1e4, 4.0, original_max_position=512), {"factor": 4.0, "rope_theta": 1e4}),
    "llama3": (
        Rope("llama3", 5e5, 8.0, 1.0, 4.0, 8192),
        {"factor": 8.0, "rope_theta": 5e5, "low_freq_factor": 1.0, "high_freq_factor": 4.0, ORIGINAL: 8192},
    ),
    "yarn": (Rope("yarn", 1e6, 4.0, original_max_position=2048), {"factor": 4.0, "rope_theta": 1e6, ORIGINAL: 2048}),
    "yarn, mscale": (
        Rope("yarn", 5e4, 64.0, original_max_position=4096, mscale=1.0, mscale_all_dim=0.5),
        {"factor": 64.0, "rope_theta": 5e4, "mscale": 1.0, "mscale_all_dim": 0.5, ORIGINAL: 4096},
    ),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("length", [100, 3000])
def test_frequencies_are_those_of_transformers(name, length):
    ours, theirs = KINDS[name]
    theirs = theirs | {"rope_type": ours.kind}
    config = LlamaConfig(hidden_size=DIM * 4, num_attention_heads=4, max_position_embeddings=512, rope_parameters=theirs)
    angle, factor = ROPE_INIT_FUNCTIONS[ours.kind](config, seq_len=length)
    made, our_factor = frequencies(ours, DIM, length)
    torch.testing.assert_close(made.float(), angle, rtol=1e-5, atol=0)
    assert our_factor == pytest.approx(factor)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotation_turns_pairs(interleaved):
    rope = Rope(theta=100.0, interleaved=interleaved)
    x = torch.randn(5, 3, 8, dtype=torch.float64)
    at = torch.tensor([0, 1, 4, 9, 2])
    made = Rotary(rope, 8, 10, torch.device("cpu"), torch.float64).turn(x, at)
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    turned = torch.complex(a, b) * torch.exp(1j * at[:, None, None] * frequencies(rope, 8, 10)[0])
    parts = [turned.real, turned.imag]
    torch.testing.assert_close(made, torch.stack(parts, -1).flatten(-2) if interleaved else torch.cat(parts, -1))


def test_latent_attention_scores_grow_with_yarn():
    assert score_factor(Rope("yarn", factor=64.0, mscale_all_dim=1.0)) == pytest.approx(1.4158883**2)
    assert score_factor(Rope("yarn", factor=64.0)) == 1 and score_factor(Rope()) == 1


def test_an_unknown_kind_is_named():
    with pytest.raises(BadInput, match="'spiral'"):
        frequencies(Rope("spiral"), 8, 10)
