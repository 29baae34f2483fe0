"""Trace: the drafter's own numbers on one text, written to a safetensors file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file

from eagle3dash.drafter.model import load
from eagle3dash.drafter.trace import trace
from eagle3dash.records import Capture, Drafter, Target


def write(
    out: Path,
    drafter: Drafter,
    capture: Capture,
    target: Target | None,
    folder: Path,
    slots: Sequence[int],
    steps: int,
    reading: str | None,
) -> dict[str, list[int]]:
    """logits [K, S, DV], hidden [K, S, H], tokens [K, S], valid [K, S] of the capture's only text. -> the shapes.

    `folder` holds the canonical tensor files of all three records.
    """

    def path(sha256: str) -> Path:
        return folder / f"{sha256}.safetensors"

    borrowed = {"target": target, "target_path": path(target.tensors)} if target else {}
    model = load(drafter, path(drafter.tensors), reading=reading, **borrowed)
    with safe_open(path(capture.sequences[0].tensors), "pt") as file:
        states = [file.get_tensor(f"state.{slot}") for slot in slots]  # A x [S, Ht]
        made = trace(model, states, file.get_tensor("token_ids"), steps)
    save_file(made, out)
    return {name: list(tensor.shape) for name, tensor in made.items()}
