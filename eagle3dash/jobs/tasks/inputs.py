"""What a payload names, opened: the drafter on a device, and the sequences of a capture one after another.

A sequence is read when its turn comes and forgotten after it, so that no question holds a whole capture in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open

from eagle3dash.drafter.model import Model, load
from eagle3dash.records import Capture, Import, from_json


@dataclass(frozen=True)
class Text:
    """One sequence of a capture. `tokens` [S] i64; `loss_mask` [S] u8 or None; states are read by slot."""

    index: int
    path: Path
    tokens: torch.Tensor
    loss_mask: np.ndarray | None

    def state(self, slot: int) -> torch.Tensor:
        """[S, Ht] in the file's own dtype."""
        with safe_open(self.path, "pt") as file:
            return file.get_tensor(f"state.{slot}")


class Inputs:
    """The files of one payload."""

    def __init__(self, payload: dict[str, Any], device: str):
        self._payload, self.device = payload, device

    def record(self, name: str) -> Any:
        """The record of drafter, target, training or serving; None where the run has none."""
        item = self._payload["imports"].get(name)
        return from_json(Import, item).record if item else None

    def path(self, sha256: str) -> Path:
        """Where a tensor file lies."""
        return Path(self._payload["paths"][sha256])

    def model(self) -> Model:
        """The drafter on the device, with what it borrows from the target. Missing when that is absent."""
        drafter, target = self.record("drafter"), self.record("target")
        target_path = self.path(target.tensors) if target else None
        return load(drafter, self.path(drafter.tensors), target=target, target_path=target_path, device=self.device)

    def vocabulary(self) -> Vocabulary | None:
        """The text of each token id, where the target came with it."""
        target = self.record("target")
        return Vocabulary(self.path(target.tensors)) if target and target.has_text else None

    def texts(self, role: str, which: Sequence[int] | None = None) -> Iterator[Text]:
        """The sequences of a capture in order, or those named."""
        capture: Capture = self.record(role)
        for index in range(len(capture.sequences)) if which is None else which:
            path = self.path(capture.sequences[index].tensors)
            with safe_open(path, "pt") as file:
                mask = file.get_tensor("loss_mask").numpy() if "loss_mask" in file.keys() else None  # noqa: SIM118
                tokens = file.get_tensor("token_ids")
            yield Text(index, path, tokens, mask)


class Vocabulary:
    """The text of tokens, from the target's vocab_bytes and vocab_offsets [V + 1]."""

    def __init__(self, path: Path):
        with safe_open(path, "pt") as file:
            self._bytes = file.get_tensor("vocab_bytes").numpy()
            self._offsets = file.get_tensor("vocab_offsets").numpy()

    def decode(self, ids: Sequence[int]) -> str:
        """Token ids -> their text; <49153> for an id that the vocabulary does not have."""
        return b"".join(map(self._piece, ids)).decode(errors="replace")

    def _piece(self, token: int) -> bytes:
        if not 0 <= token < len(self._offsets) - 1:
            return f"<{token}>".encode()
        return self._bytes[self._offsets[token] : self._offsets[token + 1]].tobytes()
