"""Drafters without a weight that nobody can supply: refused, with the names of all that they lack."""

import json

import pytest
from safetensors.torch import save_file
from synthetic_drafters import golden

from eagle3dash import formats
from eagle3dash.errors import Refused
from eagle3dash.formats.drafters import convert


@pytest.mark.parametrize(
    "lost",
    [
        ("layers.0.hidden_norm.weight",),
        ("norm.weight",),
        ("fc.weight",),
        ("layers.0.mlp.gate_proj.weight", "layers.0.mlp.up_proj.weight"),
        ("layers.0.self_attn.q_proj.weight",),
        ("layers.0.self_attn.o_proj.weight", "layers.0.post_attention_layernorm.weight"),
        ("layers.1.input_layernorm.weight",),
    ],
)
def test_every_weight_that_is_lost_is_named(lost):
    config, stored = golden("speculators-two_layers")
    with pytest.raises(Refused, match=r"The drafter has no .*\.weight") as caught:
        convert(config, {name: tensor for name, tensor in stored.items() if name not in lost})
    assert set(caught.value.refusal.lacks) == set(lost)


def test_an_mla_drafter_too():
    config, stored = golden("vllm_mla-default_rope")
    lost = next(name for name in stored if name.endswith("kv_a_layernorm.weight"))
    with pytest.raises(Refused) as caught:
        convert(config, {name: tensor for name, tensor in stored.items() if name != lost})
    assert [name.split(".", 2)[2] for name in caught.value.refusal.lacks] == ["self_attn.kv_a_layernorm.weight"]


def test_the_refusal_of_a_file_comes_out_of_the_reading_child(tmp_path):
    config, stored = golden("specforge-base")
    lost = next(name for name in stored if name.endswith("hidden_norm.weight"))
    save_file(
        {name: tensor.contiguous() for name, tensor in stored.items() if name != lost}, tmp_path / "model.safetensors"
    )
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(Refused, match="can't run without") as caught:
        formats.read([tmp_path], tmp_path / "out")
    assert caught.value.refusal.lacks == ("layers.0.hidden_norm.weight",)
    assert caught.value.refusal.file.endswith("model.safetensors")
    assert formats.inspect([tmp_path])[0]["kind"] == "unknown"
