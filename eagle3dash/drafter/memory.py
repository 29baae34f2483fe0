"""How large an intermediate result may be: chunk sizes from the memory that is free now."""

from __future__ import annotations

import os

import torch

# More buys no speed: weights are read once a chunk, so rows should be many; scores are passed over several times, so they
# should stay in the cache of a CPU.
ROWS_CAP = {"cpu": 256 << 20, "cuda": 4 << 30}
SCORES_CAP = {"cpu": 16 << 20, "cuda": 2 << 30}


def free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def rows_that_fit(device: torch.device, bytes_per_row: int, cap: dict[str, int] = ROWS_CAP) -> int:
    """Rows whose intermediate results take at most `cap` and an eighth of what is free; never less than 16."""
    return max(16, min(free_bytes(device) // 8, cap.get(device.type, cap["cpu"])) // bytes_per_row)
