"""The configs of public drafters, at their real sizes, and the drafters that are declined by name."""

from typing import Any

import pytest
import torch
from synthetic_drafters import config, empty, golden, speculators, weights

from eagle3dash.errors import BadInput
from eagle3dash.formats.drafters import convert, recognise

KIMI = {"hidden_size": 7168, "intermediate_size": 18432, "num_attention_heads": 64, "num_key_value_heads": 64,
        "head_dim": 128, "vocab_size": 163840, "draft_vocab_size": 32000, "rope_theta": 1e6}  # fmt: skip
LLAMA_8B = {"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
            "vocab_size": 128256, "draft_vocab_size": 32000, "max_position_embeddings": 2048}  # fmt: skip
GPT_OSS = {"hidden_size": 2880, "intermediate_size": 17280, "num_attention_heads": 64, "num_key_value_heads": 8,
           "head_dim": 64, "vocab_size": 201088, "draft_vocab_size": 32000}  # fmt: skip


def nested(*ids: int, **more: Any) -> dict[str, Any]:
    return {"eagle_config": {"eagle_aux_hidden_state_layer_ids": list(ids), "use_aux_hidden_state": True, **more}}


PUBLIC = {
    # name: (config, flavour, head_dim, states)
    "safeai template": (config(**LLAMA_8B, architectures=["LlamaForCausalLM"]), "safeai", 128, None),
    "specforge llama3-8B": (config(**LLAMA_8B), "specforge", 128, None),
    "specforge qwen3-32b": (
        config(hidden_size=5120, intermediate_size=25600, num_attention_heads=64, num_key_value_heads=8, head_dim=128,
               vocab_size=151936, draft_vocab_size=32000, rope_theta=1000000, sliding_window=None),
        "specforge", 128, None),
    "specforge qwen2.5-vl": (
        config(hidden_size=3584, intermediate_size=18944, num_attention_heads=28, num_key_value_heads=4, vocab_size=152064,
               draft_vocab_size=32000, rope_theta=1000000, rope_scaling={"type": "mrope", "mrope_section": [16, 24, 24]},
               sliding_window=32768, use_sliding_window=False),
        "specforge", 128, None),
    "specforge gpt-oss-120B": (config(**GPT_OSS, **nested(1, 17, 33)), "specforge", 64, (2, 18, 34)),
    "specforge deepseek-v3": (
        config(hidden_size=7168, intermediate_size=40960, num_attention_heads=56, num_key_value_heads=8, vocab_size=129280,
               draft_vocab_size=32000, **nested(1, 29, 57)),
        "specforge", 128, (2, 30, 58)),
    "specforge kimi-k2": (config(**KIMI, model_type="kimi_k2", **nested(2, 30, 58)), "specforge", 128, (2, 30, 58)),
    "AQ-MedAI kimi-k2.5": (config(**KIMI, dtype="bfloat16", **nested(2, 30, 58)), "specforge", 128, (2, 30, 58)),
    "lightseek kimi, native": (
        config(**KIMI, _torchspec_version="0.1", model_type="kimi_k2", **nested(1, 29, 57)), "torchspec", 128, (2, 30, 58)),
    "step-3.5-flash": (
        config(hidden_size=4096, intermediate_size=11264, num_attention_heads=64, num_key_value_heads=8, head_dim=64,
               vocab_size=128896, draft_vocab_size=32000, **nested(4, 20, 40)),
        "specforge", 64, (5, 21, 41)),
    "full draft vocabulary": (
        config(**{**LLAMA_8B, "draft_vocab_size": 128256}, rope_scaling={"rope_type": "llama3", "factor": 8.0,
               "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}),
        "specforge", 128, None),
    "MiniCPM4": (
        config(hidden_size=4096, intermediate_size=16384, num_attention_heads=32, num_key_value_heads=2, vocab_size=73448,
               draft_vocab_size=15000),
        "specforge", 128, None),
    "draft_vocab_size null": (config(**{**GPT_OSS, "draft_vocab_size": None}), "specforge", 64, None),
    "flattened speculators": (
        config(**LLAMA_8B, norm_before_residual=True, eagle_aux_hidden_state_layer_ids=[2, 18, 33]),
        "vllm", 128, (2, 18, 33)),
    "AngelSlim": (config(**LLAMA_8B, architectures=["Eagle3LlamaForCausalLM"]), "angelslim", 128, None),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_public_configs(name):
    flat, flavour, head_dim, states = PUBLIC[name]
    converted = convert(flat, weights(flat))
    drafter = converted.record
    assert (drafter.flavour, drafter.spec.head_dim, drafter.states) == (flavour, head_dim, states)
    assert drafter.spec.draft_vocab == (flat["draft_vocab_size"] or flat["vocab_size"])
    assert converted.problems == ()


def test_a_depth_left_over_from_the_target_is_noted():
    flat = config(**LLAMA_8B) | {"num_hidden_layers": 36, "vocab_size": 116394}
    converted = convert(flat, weights(flat))
    assert converted.record.spec.depth == 1
    assert converted.problems == ("config.json says num_hidden_layers 36; the file holds 1, which is taken.",)
    uses = {field.path: field.use for field in converted.record.fields}
    assert uses["num_hidden_layers"] == "contradicting"


def test_speculators_nest_the_block():
    nested_config = speculators(eagle_aux_hidden_state_layer_ids=None, norm_before_residual=True, target_hidden_size=None)
    converted = convert(nested_config, weights(config(), layer="layers.0", embed=True))
    drafter = converted.record
    assert (drafter.flavour, drafter.spec.heads, drafter.spec.rms_eps, drafter.states) == ("speculators", 4, 1e-5, None)
    assert drafter.spec.residual_norm and drafter.has_embedding
    assert [i.field for i in converted.inferred] == ["states"]


def test_four_aux_states_and_one():
    stored = weights(config(), layer="layers.0", aux=4) | {"input_norm.weight": empty(256)}
    flags = {"norm_before_fc": True, "fc_norm": False, "norm_output": True}
    four = speculators(eagle_aux_hidden_state_layer_ids=[2, 46, 91, 93], **flags)
    spec = convert(four, stored).record.spec
    assert (spec.num_aux, spec.input_norm, spec.feedback_norm) == (4, True, True)
    one = config(**nested(36))
    assert convert(one, weights(one, aux=1)).record.spec.num_aux == 1


def test_gpt_oss_ids_that_name_the_last_boundary():
    flat = config(**GPT_OSS, **nested(24, 30, 36, norm_before_fc=True))
    drafter = convert(flat, weights(flat, layer="layers.0") | {"input_norm.weight": empty(8640)}).record
    assert (drafter.flavour, drafter.states, drafter.spec.input_norm) == ("vllm", (24, 30, 36), True)


def test_torchspec_exports_for_vllm_count_boundaries_only_for_kimi():
    kimi = config(_torchspec_version="0.1", model_type="kimi_k2", **nested(2, 30, 58))
    assert convert(kimi, weights(kimi, layer="layers.0")).record.states == (2, 30, 58)
    other = config(_torchspec_version="0.1", **nested(1, 15, 28))
    assert convert(other, weights(other, layer="layers.0")).record.states == (2, 16, 29)


def test_nemo_prefixes():
    flat = config(norm_output=True, **nested(1, 15, 28))
    stored = weights(flat, layer="model.layers.0", embed=True) | {f"model.fc_norm.{i}.weight": empty(64) for i in range(3)}
    converted = convert(flat, stored)
    drafter = converted.record
    assert (drafter.flavour, drafter.reading, drafter.states) == ("nemo", "as trained by NeMo Automodel", (2, 16, 29))
    assert drafter.spec.feedback_norm and drafter.spec.fc_norm and converted.problems == ()


def test_sglang_names_of_the_aux_norms():
    flat = config(use_aux_norm=True)
    stored = weights(flat) | {f"aux_norm_{name}.weight": empty(64) for name in ("low", "mid", "high")}
    converted = convert(flat, stored)
    assert converted.record.flavour == "sglang" and converted.record.spec.fc_norm and converted.problems == ()
    assert converted.tensors["fc_norm.1.weight"] is stored["aux_norm_mid.weight"]


def test_a_tie_that_the_file_contradicts_and_one_that_it_needs():
    flat = config(tie_word_embeddings=True)
    assert "an lm_head of its own" in convert(flat, weights(flat)).problems[0]
    full = config(tie_word_embeddings=True, draft_vocab_size=300)
    stored = weights(full, embed=True)
    del stored["lm_head.weight"]
    converted = convert(full, stored)
    assert converted.record.has_head and converted.tensors["lm_head.weight"] is stored["embed_tokens.weight"]


def test_weights_that_are_missing_and_left_over():
    flat = config()
    stored = weights(flat) | {"midlayer.self_attn.gate_proj.weight": empty(64, 64)}
    del stored["lm_head.weight"], stored["d2t"], stored["t2d"]
    converted = convert(flat, stored)
    assert not converted.record.has_head
    missing = [tensor.name for tensor in converted.record.tensor_list if tensor.use == "missing"]
    assert missing == ["embed_tokens.weight", "lm_head.weight", "d2t"]
    text = " ".join(converted.problems)
    assert "no lm_head" in text and "first 120 ids" in text and "midlayer.self_attn.gate_proj.weight" in text


def test_llama4_width_and_sliding_windows():
    flat = config(intermediate_size=512, intermediate_size_mlp=128, sliding_window=64, layer_types=["sliding_attention"])
    converted = convert(flat, weights(config()))
    assert converted.record.spec.intermediate == 128 and "sliding window of 64" in converted.problems[0]


def test_modelopts_template_for_speculators():
    flat = speculators(norm_before_residual=True, speculators_version="0.1.0.dev14")
    drafter = convert(flat, weights(config(), layer="layers.0")).record
    maker = drafter.readings["as trained by ModelOpt"]
    assert drafter.spec.residual_norm and not maker.residual_norm and maker.double_norm


DECLINED = {
    "P-EAGLE": (speculators() | {"speculators_model_type": "peagle"}, {}),
    "P-EAGLE (all K": (config(), {"mask_hidden": empty(1, 1, 192)}),
    "DFlash": (config(dflash_config={"target_layer_ids": [1, 2]}), {}),
    "DFlash block": (config(block_size=8, mask_token_id=5), {}),
    "DSpark": (config(architectures=["Qwen3DSparkModel"]), {}),
    "EAGLE-4": (config(architectures=["LlamaForCausalLMEagle4"]), {}),
    "EAGLE-4 drafter": (config(), {"efficient_lm_head.weight": empty(300, 16)}),
    "MTP": (config(architectures=["DeepSeekMTPModel"]), {}),
    "multi-token": (config(), {"midlayer.eh_proj.weight": empty(64, 128)}),
    "mixture-of-experts": (config(architectures=["GptOssForCausalLMEagle3"]), {}),
    "experts": (config(), {"midlayer.mlp.experts.0.up_proj.weight": empty(64, 64)}),
    "gemma": (config(model_type="gemma3_text"), {}),
    "only 'eagle3'": (speculators() | {"speculators_model_type": "hydra"}, {}),
}


@pytest.mark.parametrize("word", DECLINED)
def test_other_drafters_are_declined_by_name(word):
    flat, more = DECLINED[word]
    with pytest.raises(BadInput, match=word.split(" (")[0]):
        recognise(flat, weights(config()) | more)


def test_eagle_1_is_told_from_eagle_3_by_its_width():
    stored = {"fc.weight": (64, 128), "layers.0.self_attn.q_proj.weight": (64, 64), "embed_tokens.weight": (300, 64)}
    with pytest.raises(BadInput, match="reads 64 values.*EAGLE-3 reads 128"):
        recognise(config(), stored)
    with pytest.raises(BadInput, match=r"no fc\.weight"):
        recognise(config(), {"midlayer.hidden_norm.weight": (64,), "midlayer.self_attn.q_proj.weight": (64, 128)})


def test_targets_are_no_drafters():
    layers = {f"model.layers.{i}.self_attn.q_proj.weight": (64, 64) for i in range(40)}
    assert recognise({"model_type": "llama"}, layers) is None
    assert recognise(None, {"model.embed_tokens.weight": (300, 64)}) is None
    mixture = {"model.layers.3.mlp.experts.0.up_proj.weight": (64, 64), "model.layers.3.self_attn.q_proj.weight": (64, 64)}
    assert recognise({"architectures": ["Qwen3MoeForCausalLM"]}, mixture) is None
    with pytest.raises(BadInput, match="no EAGLE-3 drafter"):
        convert({}, {"weight": torch.zeros(2)})


def test_without_a_config_the_head_count_is_unknown():
    with pytest.raises(BadInput, match="number of attention heads"):
        convert(None, weights(config()))
    converted = convert(None, golden("speculators-qwen3")[1])  # its norms of queries tell the width of a head
    assert converted.record.spec.heads == 4 and converted.record.spec.head_dim == 32
    assert [i.field for i in converted.inferred] == ["config", "kv_heads", "rms_eps", "states"]
