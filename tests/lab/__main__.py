"""The whole fault laboratory: a line a case, then the confusion table.

    python -m tests.lab [WORD ..]      only cases whose title or finding holds one of the words
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import torch

from tests.lab.cases import everything
from tests.lab.healthy import Healthy
from tests.lab.table import tried


def main(words: list[str]) -> int:
    """Exit code 1 when a case is missed."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        lab, missed = Healthy(Path(folder)), 0
        for fault in everything(int(os.environ.get("TURN",0))):
            if words and not any(word in fault.title + " ".join(fault.names) for word in words):
                continue
            began = time.perf_counter()
            row = tried(lab, [fault])[0]
            missed += not row.right
            print(row.text(), f"[{time.perf_counter() - began:.1f} s]", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
