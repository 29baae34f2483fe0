"""Checkpoints of public libraries, read by us, against those libraries' own numbers (README.md beside this file)."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from eagle3dash.drafter.model import Model, spec_of
from eagle3dash.drafter.sequential import chain_after
from eagle3dash.drafter.trace import trace
from eagle3dash.formats.drafters import convert

HERE = Path(__file__).parent
CASES = sorted(path.parent.name for path in HERE.glob("*/config.json"))
TOLERANCE = 5e-5


def model(case: str, reading: str | None = None) -> Model:
    folder = HERE / case
    binary = folder / "pytorch_model.bin"
    stored = torch.load(binary, weights_only=True) if binary.exists() else load_file(folder / "model.safetensors")
    converted = convert(json.loads((folder / "config.json").read_text()), stored)
    borrowed = folder / "target_embed_tokens.safetensors"
    table = load_file(borrowed)["model.embed_tokens.weight"] if borrowed.exists() else None
    return Model(spec_of(converted.record, reading), converted.tensors, embedding=table)


def inputs(case: str, drafter: Model) -> tuple[list[torch.Tensor], torch.Tensor]:
    stored = load_file(HERE / case / "inputs.safetensors")
    return list(stored["aux_hidden_states"].chunk(drafter.spec.num_aux, -1)), stored["raw_token_ids"]


def assert_traced(drafter: Model, case: str, expected: dict[str, torch.Tensor]) -> None:
    features, ids = inputs(case, drafter)
    made, valid = trace(drafter, features, ids, steps=4), expected["ttt_valid"]
    assert torch.equal(made["valid"], valid)
    torch.testing.assert_close(made["logits"][valid], expected["ttt_logits"][valid], atol=TOLERANCE, rtol=0)
    torch.testing.assert_close(made["hidden"][valid], expected["ttt_hidden_out"][valid], atol=TOLERANCE, rtol=0)


def test_every_case_is_here():
    assert len(CASES) == 21


@pytest.mark.parametrize("case", CASES)
def test_parallel_chains_equal_the_library(case):
    assert_traced(model(case), case, load_file(HERE / case / "expected.safetensors"))


@pytest.mark.parametrize("case", CASES)
def test_greedy_chains_draft_the_same_tokens(case):
    drafter, expected = model(case), load_file(HERE / case / "expected.safetensors")
    features, ids = inputs(case, drafter)
    for i, prefix in enumerate(expected["chain_prefix_len"].tolist()):
        read = ids.clone()
        if "chain_last_token" in expected:
            read[prefix] = expected["chain_last_token"][i]
        made = chain_after(drafter, features, read, prefix, steps=4)
        assert made.tokens.tolist() == expected["chain_draft_tokens"][i].tolist()
        torch.testing.assert_close(made.logits, expected["chain_logits"][i], atol=TOLERANCE, rtol=0)
        torch.testing.assert_close(made.hidden, expected["chain_hidden"][i], atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("case", [case for case in CASES if (HERE / case / "expected_vllm.safetensors").exists()])
def test_the_reading_of_vllm_equals_vllm(case):
    expected = load_file(HERE / case / "expected_vllm.safetensors")
    assert_traced(model(case, "as served by vLLM"), case, expected)
    features, ids = inputs(case, model(case))
    made = trace(model(case), features, ids, steps=4)
    assert (made["logits"] - expected["ttt_logits"])[expected["ttt_valid"]].abs().max() > 1


@pytest.mark.parametrize("prompt", ["p5", "p12", "p23"])
@pytest.mark.parametrize("case", [case for case in CASES if (HERE / case / "vllm_engine.safetensors").exists()])
def test_proposals_of_a_vllm_server(case, prompt):
    drafter, engine = model(case), load_file(HERE / case / "vllm_engine.safetensors")
    features = list(engine[f"{prompt}_aux_hidden_states"].chunk(drafter.spec.num_aux, -1))
    ids = engine[f"{prompt}_raw_token_ids"]
    for i, prefix in enumerate(engine[f"{prompt}_prefix_len"].tolist()):
        made = chain_after(drafter, features, ids, prefix, steps=4)
        assert made.tokens.tolist() == engine[f"{prompt}_chain_draft_tokens"][i].tolist()
        torch.testing.assert_close(made.logits, engine[f"{prompt}_chain_logits"][i], atol=TOLERANCE, rtol=0)
        torch.testing.assert_close(made.hidden, engine[f"{prompt}_chain_hidden"][i], atol=TOLERANCE, rtol=0)
