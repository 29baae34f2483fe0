"""`trace` on the golden files as a user has them: the drafter's folder and inputs.safetensors as the capture."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from eagle3dash.cli import main

CASES = sorted(path.parent for path in (Path(__file__).parents[1] / "golden").glob("*/config.json"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_trace_gives_the_numbers_of_the_public_library(case: Path, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    out, target = tmp_path / "trace.safetensors", case / "target_embed_tokens.safetensors"
    weights = next(path for name in ("model.safetensors", "pytorch_model.bin") if (path := case / name).exists())
    asked = ["--drafter", weights, case / "config.json", "--capture", case / "inputs.safetensors"]
    asked += ["--target", target] if target.exists() else []
    assert main(["trace", *map(str, asked), "--steps", "4", "--out", str(out), "--json"]) == 0
    made, expected = load_file(out), load_file(case / "expected.safetensors")
    valid = expected["ttt_valid"]  # [K, S]
    assert torch.equal(made["valid"], valid)
    for mine, theirs in (("logits", "ttt_logits"), ("hidden", "ttt_hidden_out")):
        torch.testing.assert_close(made[mine][valid], expected[theirs][valid], rtol=0, atol=5e-5)


def test_raw_token_ids_win_over_shifted_ones(tmp_path: Path) -> None:
    case = CASES[0].parent / "specforge-base"
    inputs = load_file(case / "inputs.safetensors")
    assert len(inputs["raw_token_ids"]) == len(inputs["input_ids"]) + 1 == len(inputs["aux_hidden_states"]) + 1
    out = tmp_path / "trace.safetensors"
    asked = ["--drafter", str(case), "--capture", str(case / "inputs.safetensors"), "--steps", "2", "--out", str(out)]
    assert main(["trace", *asked]) == 0  # the folder's inputs.safetensors is beside the drafter and does not disturb
    assert bool(load_file(out)["valid"][0, -1])
