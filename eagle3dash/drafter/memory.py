"""How large an intermediate result may be: chunk sizes from the memory that is free now."""

from __future__ import annotations

import os

import torch

CAP = {"cpu": 256 << 20, "cuda": 4 << 30}  # more buys no speed: by then the matrix products are large enough


def free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def rows_that_fit(device: torch.device, bytes_per_row: int, share: int = 1) -> int:
    """Rows whose intermediate results take at most 1/share of the cap and of an eighth of what is free; at least 16."""
    return max(16, min(free_bytes(device) // 8, CAP.get(device.type, CAP["cpu"])) // (share * bytes_per_row))
