"""Running out of memory, told to a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from eagle3dash.errors import Eagle3Error


@contextmanager
def shortage_told(device: str) -> Iterator[None]:
    """Turns running out of memory inside into an Eagle3Error; torch has a type of its own for it on CUDA only."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, (MemoryError, torch.OutOfMemoryError)) and "can't allocate memory" not in str(error):
            raise
        raise Eagle3Error(
            f"Not enough memory on {device} for this question. Free some there, or use a capture of shorter texts."
        ) from error
