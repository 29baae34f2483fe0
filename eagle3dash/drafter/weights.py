"""A checkpoint's tensors by canonical name, converted to the compute dtype on the compute device as they are asked for."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from eagle3dash.errors import Missing


class Weights:
    """`weights[name]` converts, or says what the file lacks; `optional` gives None; `raw` keeps the stored dtype."""

    def __init__(self, tensors: Mapping[str, Tensor], device: torch.device, dtype: torch.dtype):
        self.raw, self.device, self.dtype = tensors, device, dtype

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.raw:
            raise Missing(
                f"The drafter's weights have no {name}, which this reading of its config needs. "
                "Import the complete checkpoint, or choose another reading.",
                needs="drafter",
            )
        return self.raw[name].to(self.device, self.dtype)

    def optional(self, name: str) -> Tensor | None:
        return self[name] if name in self.raw else None
