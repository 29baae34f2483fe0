"""Layer ids: what each engine makes of the same list."""

import pytest

from eagle3dash.formats.engines.states import default_states, setting, settings, states_of, version_of


@pytest.mark.parametrize(
    "ids, engine, version, more, states",
    [
        ([2, 15, 27], "vllm", "0.32.0", {}, (2, 15, 27)),
        ([15, 2, 2], "vllm", "0.32.0", {}, (2, 15)),  # sorted, without repeats
        ([1, 29, 57], "vllm", "0.32.0", {"nested": True}, None),  # V1 and V2 runner differ
        ([1, 29, 57], "vllm", "0.18.1", {"nested": True, "layers": 61}, (2, 30, 58)),
        ([1, 29, 57], "vllm", "0.32.0", {"nested": True, "runner": "V1"}, (1, 29, 57)),
        ([1, 29, 57], "vllm", "0.32.0", {"nested": True, "runner": "V2", "layers": 61}, (2, 30, 58)),
        ([2, 30, 58], "sglang", "0.5.23", {"layers": 30}, (2, 15, 27)),  # it reads the nested list only
        ([26, 1, 14, 1], "sglang", "0.5.23", {"nested": True}, (2, 15, 27)),
        ([1, 14, 26], "sglang", "0.5.23", {"nested": True}, (2, 15, 27)),
        ([2, 30, 58], "sglang", "0.5.12", {"nested": True, "family": "kimi_k2"}, (3, 31, 59)),
        ([2, 30, 58], "sglang", "0.5.15", {"nested": True, "family": "kimi_k2"}, (2, 30, 58)),
        ([1, 29, 57], "sglang", "0.5.15", {"nested": True, "family": "kimi_k2"}, (2, 30, 58)),
        ([24, 30, 36], "sglang", "0.5.18", {"nested": True, "family": "gpt_oss", "layers": 36}, (24, 30, 36)),
        ([24, 30, 36], "sglang", "0.5.15", {"nested": True, "family": "gpt_oss", "layers": 36}, (25, 31, 37)),
        ([26, 1, 14], "trtllm", None, {}, (2, 15, 27)),
        ([2, 16, 29], "speculators", "0.4.0", {}, (3, 17, 30)),
        ([2, 16, 29], "speculators", "0.9.0", {}, (2, 16, 29)),
        ([2, 16, 29], "llama.cpp", None, {}, (2, 16, 29)),
        (None, "sglang", None, {"layers": 30}, (2, 15, 27)),
        (None, "sglang", None, {}, None),
        ([1, 2, 3], "somebody", None, {}, None),
    ],
)
def test_an_id_means_what_the_engine_reads(ids, engine, version, more, states):
    assert states_of(ids, engine, version, **more) == states


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_the_setting_read_back_gives_the_states(engine):
    text = setting([2, 15, 27], engine)
    ids = [int(part) for part in text.split(": [")[1].split("]")[0].split(",")]
    assert states_of(ids, engine, nested="eagle_config" in text) == (2, 15, 27)


def test_what_cannot_be_set_is_said():
    assert "no documented id" in setting([0, 2, 15], "sglang")
    assert "cannot be fed" in setting([0, 2, 15], "trtllm")
    assert '"eagle_aux_hidden_state_layer_ids": [0, 2, 15] at the top level' in setting([0, 2, 15], "vllm")
    assert "reorder the blocks of fc.weight" in setting([15, 2, 27], "vllm")


def test_the_runs_engine_comes_first():
    assert settings([2, 15, 27], "vLLM").startswith("vLLM:")
    assert [part.split(":")[0] for part in settings([2, 15, 27], None).split(". ")] == ["SGLang", "vLLM", "TensorRT-LLM"]
    assert default_states(61) == (2, 30, 58) and version_of("0.5.15.post1") == (0, 5, 15) and version_of("dev") is None
