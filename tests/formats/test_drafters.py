"""Real checkpoints of public libraries -> records: sizes, readings, states and what was noticed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from synthetic_drafters import GOLDEN, golden

from eagle3dash.formats.drafters import convert
from eagle3dash.records import Drafter, Mla, from_json, to_json

DEMO = Path(__file__).parents[2] / "data" / "demo"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/config.json"))
FLAVOURS = {"vllm_mla-default_rope": "modelopt"}


def record(case: str) -> Drafter:
    return convert(*golden(case)).record


@pytest.mark.parametrize("case", CASES)
def test_every_library_is_recognised_and_nothing_is_left_over(case):
    config, stored = golden(case)
    converted = convert(config, stored)
    assert converted.record.flavour == FLAVOURS.get(case, case.split("-")[0])
    assert converted.problems == ()
    assert {t.name for t in converted.record.tensor_list if t.use == "used"} == set(stored)
    assert converted.record.spec == converted.record.readings[converted.record.reading]
    assert from_json(Drafter, to_json(converted.record)) == converted.record


def test_sizes_come_from_the_tensors():
    spec = record("specforge-targethidden96").spec
    assert (spec.hidden, spec.target_hidden, spec.num_aux) == (64, 96, 3)
    assert (spec.heads, spec.kv_heads, spec.head_dim) == (4, 2, 16)
    assert (spec.vocab, spec.draft_vocab, spec.intermediate) == (300, 120, 128)
    assert record("specforge-hd32").spec.head_dim == 32
    assert record("speculators-two_layers").spec.depth == 2
    assert record("safeai-fullvocab").spec.draft_vocab == 300


def test_norms_of_later_layers_and_midlayer_get_their_canonical_names():
    names = convert(*golden("specforge-base")).tensors
    assert "layers.0.hidden_norm.weight" in names and not any("midlayer" in name for name in names)
    config, stored = golden("speculators-two_layers")
    stored["layers.1.hidden_norm.weight"] = stored.pop("layers.1.input_layernorm.weight")
    converted = convert(config, stored)
    assert converted.tensors["layers.1.input_layernorm.weight"] is stored["layers.1.hidden_norm.weight"]


def test_switches_of_speculators():
    assert record("speculators-nbr").spec.residual_norm
    assert record("speculators-normbeforefc").spec.input_norm
    assert record("speculators-qwen3").spec.qk_norm
    spec = record("speculators-fcnorm_normoutput").spec
    assert (spec.fc_norm, spec.feedback_norm, spec.head_norm) == (True, True, True)


def test_norm_output_means_another_thing_in_specforge():
    drafter = record("specforge-normoutput_false")
    assert drafter.reading == "as trained by SpecForge"
    assert (drafter.spec.head_norm, drafter.spec.feedback_norm) == (False, False)
    assert drafter.readings["as served by vLLM"] == replace(drafter.spec, head_norm=True)
    config, stored = golden("specforge-base")
    drafter = convert({**config, "norm_output": True}, stored).record
    assert (drafter.spec.head_norm, drafter.spec.feedback_norm) == (True, False)
    assert drafter.readings["as served by SGLang"].feedback_norm


def test_an_absent_norm_before_residual_is_true_to_vllm_and_false_to_speculators():
    config, stored = golden("speculators-base")
    del config["norm_before_residual"]
    drafter = convert(config, stored).record
    assert not drafter.spec.residual_norm and drafter.readings["as served by vLLM"].residual_norm
    config, stored = golden("specforge-base")
    assert not convert(config, stored).record.readings["as served by vLLM"].residual_norm


def test_sglang_drops_the_normed_residual():
    assert not record("speculators-nbr").readings["as served by SGLang"].residual_norm


def test_modelopt_norms_twice_and_did_not_train_with_the_exported_yarn():
    drafter = record("modelopt-base")
    assert drafter.reading == "as trained by ModelOpt"
    assert drafter.spec.double_norm and (drafter.spec.rope.kind, drafter.spec.rope.theta) == ("default", 10000.0)
    served = drafter.readings["as served by vLLM"]
    assert not served.double_norm and (served.rope.kind, served.rope.factor) == ("yarn", 32.0)
    assert not drafter.has_embedding and drafter.has_head
    uses = {field.path: field.use for field in drafter.fields}
    assert uses["rope_scaling.factor"] == "ignored" and uses["hidden_size"] == "used"
    assert [t.name for t in drafter.tensor_list if t.use == "missing"] == ["embed_tokens.weight"]


def test_mla_widths_follow_from_the_projections():
    spec = record("vllm_mla-default_rope").spec
    assert spec.mla == Mla(32, 24, 16, 8, 16) and spec.rope.interleaved and spec.head_dim == 24
    config, stored = golden("vllm_mla-default_rope")
    assert convert({**config, "norm_output": True}, stored).record.spec.feedback_norm


def test_layer_ids_and_steps():
    drafter = record("speculators-base")
    assert (drafter.layer_ids, drafter.states, drafter.steps) == ((2, 4, 5), (2, 4, 5), 4)
    assert (drafter.layer_ids_at, drafter.target_name) == ("eagle_aux_hidden_state_layer_ids", "golden-org/tiny-target-64")
    drafter = record("modelopt-base")
    assert (drafter.layer_ids, drafter.states) == ((1, 3, 4), (2, 4, 5))


def test_the_demo_drafter_and_its_corrected_config():
    stored = load_file(DEMO / "drafter" / "model.safetensors")
    found = {}
    for folder in ("drafter", "story-fixed/drafter"):
        drafter = convert(json.loads((DEMO / folder / "config.json").read_text()), stored).record
        found[folder] = drafter.states
        assert (drafter.flavour, drafter.steps, drafter.spec.hidden, drafter.spec.num_aux) == ("speculators", 4, 576, 3)
    assert found == {"drafter": (2, 15, 27), "story-fixed/drafter": (0, 2, 15)}


class Lazy:
    """A tensor that lies in a file until it is read."""

    def __init__(self, tensor: torch.Tensor):
        self.tensor, self.shape, self.dtype = tensor, tuple(tensor.shape), tensor.dtype

    def read(self) -> torch.Tensor:
        assert self.dtype in (torch.int64, torch.bool), "only the vocabulary's maps are read"
        return self.tensor

    def rows(self, a: int, b: int) -> torch.Tensor:
        return self.tensor[a:b]


def test_lazy_tensors_stay_lazy():
    config, stored = golden("specforge-base")
    converted = convert(config, {name: Lazy(tensor) for name, tensor in stored.items()})
    assert isinstance(converted.tensors["fc.weight"], Lazy)
    assert converted.tensors["d2t"].dtype == torch.int64 and converted.tensors["t2d"].dtype == torch.bool
    assert converted.record == convert(config, stored).record
