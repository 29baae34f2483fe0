"""RoPE of a config: every place and kind, and how makers and engines differ about it."""

import math

import pytest
from synthetic_drafters import config, golden, speculators, weights

from eagle3dash.formats.drafters import convert
from eagle3dash.records import Drafter, Rope

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}


def drafter(**changes) -> Drafter:
    return convert(config(**changes), weights(config())).record


def test_an_absent_base_is_10000():
    assert drafter().spec.rope == Rope()


@pytest.mark.parametrize(
    "place",
    [
        {"rope_theta": 500000},
        {"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}},
        {"rope_scaling": {"rope_theta": 5e5, "type": "default"}},
        {"rope_parameters": {"full_attention": {"rope_theta": 5e5, "rope_type": "default"}}},
    ],
)
def test_the_base_in_all_its_places(place):
    assert drafter(**place).spec.rope == Rope(theta=500000.0)


def test_the_base_inside_the_block_of_speculators():
    nested = speculators(rope_parameters={"rope_theta": 5e5, "rope_type": "default"})
    assert convert(nested, weights(config(), layer="layers.0")).record.spec.rope.theta == 500000.0


def test_two_bases_contradict_and_the_newer_place_wins():
    record = drafter(rope_theta=1e6, rope_parameters={"rope_theta": 1e4, "rope_type": "default"})
    assert record.spec.rope.theta == 10000.0
    assert {f.path: f.use for f in record.fields}["rope_theta"] == "contradicting"


def test_llama3_and_linear_and_mrope():
    scaling = {
        "type": "llama3",
        "factor": 8,
        "low_freq_factor": 1,
        "high_freq_factor": 4,
        "original_max_position_embeddings": 32,
    }
    rope = drafter(rope_scaling=scaling).spec.rope
    assert (rope.kind, rope.factor, rope.low_freq_factor, rope.original_max_position) == ("llama3", 8.0, 1.0, 32)
    assert drafter(rope_scaling={"type": "linear", "factor": 4.0}, rope_theta=5e5).spec.rope.theta == 500000.0
    assert drafter(rope_scaling={"type": "mrope", "mrope_section": [2, 3, 3]}).spec.rope == Rope()


def test_yarn_factors_differ_between_specforge_and_vllm():
    record = drafter(rope_scaling=YARN | {"mscale": 1.0, "mscale_all_dim": 1.0, "beta_fast": 16, "beta_slow": 2})
    assert record.spec.rope.attention_factor == 1.0 and record.spec.rope.beta_fast == 16.0
    assert record.readings["as served by vLLM"].rope.attention_factor == pytest.approx(0.1 * math.log(4) + 1)
    assert drafter(rope_scaling=YARN).spec.rope.attention_factor == pytest.approx(0.1 * math.log(4) + 1)


def test_dynamic_is_three_different_things():
    dynamic = {"rope_type": "dynamic", "factor": 2.0}
    trained = drafter(rope_scaling=dynamic)
    assert trained.spec.rope.kind == "default"  # SpecForge's table is made once for 256 + 20 positions
    assert trained.spec.rope.theta == pytest.approx(1e4 * (2 * 276 / 256 - 1) ** (16 / 14))
    assert trained.readings["as served by vLLM"].rope.theta == pytest.approx(1e4 * 3 ** (16 / 14))
    nested = speculators(rope_parameters=dynamic | {"rope_theta": 1e4})
    rope = convert(nested, weights(config(), layer="layers.0")).record.spec.rope
    assert (rope.kind, rope.factor, rope.original_max_position) == ("dynamic", 2.0, 256)


def test_safeai_drops_the_base_of_a_scaled_rope():
    safeai = config(architectures=["LlamaForCausalLM"], rope_theta=5e5, rope_scaling={"type": "linear", "factor": 4.0})
    record = convert(safeai, weights(config())).record
    assert (record.spec.rope.kind, record.spec.rope.theta) == ("linear", 10000.0)
    assert record.readings["as served by vLLM"].rope.theta == 500000.0


def test_angelslim_trains_with_10000_whatever_the_config_says():
    converted = convert(config(architectures=["Eagle3LlamaForCausalLM"], rope_theta=1e6), weights(config()))
    record = converted.record
    assert record.spec.rope.theta == 1e6 and record.readings["as trained by AngelSlim"].rope.theta == 10000.0
    assert "AngelSlim trains with 10000" in converted.problems[0]


def test_modelopt_keeps_a_scaling_that_it_trained_with():
    flat, stored = golden("modelopt-base")
    trained = flat | {"rope_scaling": YARN | {"rope_theta": 10000.0}}
    assert convert(trained, stored).record.spec.rope.kind == "yarn"
    assert convert(flat | {"rope_theta": 5e5}, stored).record.spec.rope == Rope(theta=500000.0)


def test_mla_takes_deepseeks_factors():
    flat, stored = golden("vllm_mla-default_rope")
    scaling = {
        "type": "yarn",
        "factor": 64.0,
        "original_max_position_embeddings": 4096,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    }
    rope = convert(flat | {"rope_scaling": scaling}, stored).record.spec.rope
    assert (rope.kind, rope.attention_factor, rope.mscale_all_dim, rope.interleaved) == ("yarn", 1.0, 1.0, True)
