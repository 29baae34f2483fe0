"""A config against the weights beside it: what the tensors settle, what can't be settled, and hostile values."""

import json

import pytest
import torch
from synthetic_drafters import config, empty, golden, speculators, weights

from eagle3dash.errors import BadInput
from eagle3dash.formats.drafters import convert

OTHER_SIZES = {  # field: another value -> both values must be named
    "hidden_size": (128, "64"),
    "intermediate_size": (256, "128"),
    "num_attention_heads": (8, "q_proj has 64 rows"),
    "num_key_value_heads": (1, "k_proj 32"),
    "draft_vocab_size": (100, "120"),
    "target_hidden_size": (100, "192"),
}


@pytest.mark.parametrize("field", OTHER_SIZES)
def test_a_size_of_other_weights_is_refused_with_both_values(field):
    value, found = OTHER_SIZES[field]
    stored = weights(config(head_dim=16))
    with pytest.raises(BadInput) as error:
        convert(config(head_dim=16) | {field: value}, stored)
    text = str(error.value)
    assert field in text and str(value) in text and found in text and len(text) <= 300


def test_speculators_sizes_are_refused_too():
    with pytest.raises(BadInput, match=r"transformer_layer_config\.hidden_size 128, but fc\.weight makes it 64"):
        convert(speculators(hidden_size=128), weights(config(), layer="layers.0"))


def test_a_head_dim_that_the_trainer_ignored_is_noted():
    converted = convert(config(head_dim=32), weights(config()))
    assert converted.record.spec.head_dim == 16
    assert converted.problems == ("config.json says head_dim 32; q_proj has 64 rows for 4 heads: 16 is taken.",)
    assert {f.path: f.use for f in converted.record.fields}["head_dim"] == "contradicting"


def test_head_counts_that_the_tensors_settle():
    flat = config()
    del flat["num_key_value_heads"]
    converted = convert(flat, weights(config()))
    assert converted.record.spec.kv_heads == 2
    assert "kv_heads" in [i.field for i in converted.inferred]
    flat = config(head_dim=16)
    del flat["num_attention_heads"]
    assert convert(flat, weights(config())).record.spec.heads == 4
    del flat["head_dim"]
    with pytest.raises(BadInput, match="number of attention heads"):
        convert(flat, weights(config()))


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        ({"norm_before_fc": True}, "no input_norm.weight"),
        ({"fc_norm": True}, "no fc_norm weights"),
        ({"attention_bias": True}, "no attention biases"),
        ({"mlp_bias": True}, "no MLP biases"),
        ({"eagle_config": {"norm_before_fc": True}}, "no input_norm.weight"),
        ({"eagle_config": {"use_aux_hidden_state": False}}, "has an fc.weight"),
        ({"num_aux_hidden_states": 4}, "fc.weight reads 3 states"),
        ({"vocab_size": 320}, "the tensors have 300"),
    ],
)
def test_flags_yield_to_the_tensors(flags, word):
    converted = convert(config() | flags, weights(config()))
    assert [word in problem for problem in converted.problems] == [True]
    assert [f.use for f in converted.record.fields].count("contradicting") == 1


def test_norm_weights_win_over_absent_flags():
    converted = convert(config(), weights(config()) | {f"fc_norm.{i}.weight": empty(64) for i in range(3)})
    assert converted.record.spec.fc_norm and converted.problems == ()
    with pytest.raises(BadInput, match="reads 3 states, but the file has 2 fc_norm"):
        convert(config(), weights(config()) | {f"fc_norm.{i}.weight": empty(64) for i in range(2)})


def test_layer_ids_that_contradict_fc():
    flat = config(eagle_aux_hidden_state_layer_ids=[2, 9, 9, 4])
    converted = convert(flat, weights(config()))
    assert converted.record.states is None and converted.record.layer_ids == (2, 9, 9, 4)
    text = " ".join(converted.problems)
    assert "names 4 layers" in text and "twice" in text and "isn't ascending" in text
    two = config(eagle_aux_hidden_state_layer_ids=[2, 4, 5], eagle_config={"eagle_aux_hidden_state_layer_ids": [1, 3, 4]})
    converted = convert(two, weights(config()))
    assert converted.record.states == (2, 4, 5) and "name different layers" in converted.problems[0]


def test_biases():
    stored = weights(config())
    biases = {f"midlayer.self_attn.{x}_proj.bias": empty(size) for x, size in (("q", 64), ("k", 32), ("v", 32))}
    drafter = convert(config(attention_bias=True), stored | biases).record
    assert drafter.spec.attention_bias and not drafter.readings["as served by SGLang"].attention_bias
    del biases["midlayer.self_attn.v_proj.bias"]
    with pytest.raises(BadInput, match=r"v_proj\.bias"):
        convert(config(attention_bias=True), stored | biases)


@pytest.mark.parametrize("name", ["norm.weight", "midlayer.hidden_norm.weight", "midlayer.mlp.up_proj.weight"])
def test_a_missing_weight_is_named(name):
    stored = weights(config())
    del stored[name]
    with pytest.raises(BadInput, match=name.replace("midlayer", "layers.0")):
        convert(config(), stored)


def test_shapes_that_belong_to_another_model():
    with pytest.raises(BadInput, match=r"o_proj\.weight has shape \[64, 32\]; the other weights need \[64, 64\]"):
        convert(config(), weights(config()) | {"midlayer.self_attn.o_proj.weight": empty(64, 32)})
    with pytest.raises(BadInput, match="lm_head has 100 rows, d2t 120"):
        convert(config(draft_vocab_size=100), weights(config()) | {"lm_head.weight": empty(100, 64)})
    with pytest.raises(BadInput, match="layers \\[0, 2\\]"):
        convert(config(), weights(config()) | {"layers.2.input_layernorm.weight": empty(64)})
    with pytest.raises(BadInput, match="none of them empty"):
        convert(config(), weights(config()) | {"norm.weight": empty(0)})


def test_quantised_weights_are_refused():
    with pytest.raises(BadInput, match="fc.weight is stored as float8_e4m3fn"):
        convert(config(), weights(config()) | {"fc.weight": empty(64, 192, dtype=torch.float8_e4m3fn)})
    with pytest.raises(BadInput, match="d2t holds bfloat16"):
        convert(config(), weights(config()) | {"d2t": empty(120)})


HOSTILE = [
    ("hidden_size", 1 << 62),
    ("hidden_size", -64),
    ("hidden_size", "64"),
    ("hidden_size", True),
    ("hidden_size", [64]),
    ("num_attention_heads", 0),
    ("num_attention_heads", 4.5),
    ("num_attention_heads", float("inf")),
    ("num_attention_heads", 10**400),
    ("num_key_value_heads", float("nan")),
    ("rms_norm_eps", float("nan")),
    ("rms_norm_eps", -1.0),
    ("rope_theta", 0),
    ("rope_theta", {"a": {"b": 1}}),
    ("rope_scaling", {"rope_type": "longrope"}),
    ("rope_scaling", {"rope_type": "yarn", "factor": float("inf")}),
    ("vocab_size", 1 << 40),
    ("draft_vocab_size", "120"),
    ("hidden_act", "situ"),
    ("norm_output", "yes"),
    ("eagle_aux_hidden_state_layer_ids", "2,4,5"),
    ("eagle_aux_hidden_state_layer_ids", [[2], 4, 5]),
    ("eagle_aux_hidden_state_layer_ids", [2, 4, 1 << 40]),
    ("eagle_aux_hidden_state_layer_ids", [-1, 4, 5]),
]


@pytest.mark.parametrize(("field", "value"), HOSTILE)
def test_hostile_values_end_in_a_short_message_that_names_the_field(field, value):
    try:
        converted = convert(config() | {field: value}, weights(config()))
    except BadInput as error:
        assert field in str(error) and len(str(error)) <= 400
    else:  # a field of an object's name that no reader looks for
        assert field == "rope_theta" and converted.record.spec.rope.theta == 10000.0


def test_hostile_structures():
    deep: dict = {}
    inner = deep
    for _ in range(400):
        inner["a"] = {}
        inner = inner["a"]
    stored = weights(config())
    record = convert(config() | {"extra": deep, "\ud800": "\udfff" * 5000, "architectures": [{"x": 1}]}, stored).record
    assert all(len(f.path) <= 200 and len(f.value) <= 200 for f in record.fields)
    json.dumps([f.path for f in record.fields], ensure_ascii=False).encode()
    with pytest.raises(BadInput, match="2000 fields"):
        convert(config() | {f"x{i}": i for i in range(3000)}, stored)
    with pytest.raises(BadInput, match="holds no object"):
        convert([1, 2], stored)  # type: ignore[arg-type]


def test_nothing_is_allocated_from_the_config():
    before = torch.zeros(1).element_size()  # keeps torch loaded, so that only convert is measured
    import tracemalloc

    tracemalloc.start()
    with pytest.raises(BadInput):
        convert(config(vocab_size=1 << 24, intermediate_size=1 << 20), weights(config()))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20 and before
    tracemalloc.stop()


def test_unprefixed_names_win_over_prefixed_twins():
    stored = weights(config())
    converted = convert(config(), stored | {"model.norm.weight": empty(64)})
    assert converted.tensors["norm.weight"] is stored["norm.weight"]
    assert "model.norm.weight" in converted.problems[0]


def test_golden_config_with_the_weights_of_another_case():
    with pytest.raises(BadInput, match="target_hidden_size 96"):
        convert(golden("specforge-targethidden96")[0], golden("specforge-base")[1])


def test_states_that_nobody_names():
    converted = convert(config(), weights(config(), aux=4))
    assert converted.record.spec.num_aux == 4 and "reads 4 states, but the config names no layers" in converted.problems[0]
