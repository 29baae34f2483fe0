"""The whole fault laboratory: a line a case, then the confusion table (what was done, what was told first).

    python -m tests.lab [WORD ..]      only cases whose title or finding holds one of the words

On three of the demo's texts, which is enough to tell every fault and takes seconds a case.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch

from tests.lab.cases import everything
from tests.lab.healthy import Healthy
from tests.lab.table import Row, confusion, tried

TEXTS = (1, 4, 7)


def main(words: list[str]) -> int:
    """Exit code 1 when a case is missed."""
    torch.set_num_threads(1)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        lab = Healthy(Path(folder), TEXTS)
        for fault in everything():
            if not words or any(word in fault.title + " ".join(fault.names) for word in words):
                rows += tried(lab, [fault])
                print(rows[-1].text(), flush=True)
    print(*confusion(rows), sep="\n")
    return 1 if not all(row.right for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
