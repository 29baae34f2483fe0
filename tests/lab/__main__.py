"""The whole fault laboratory: a line a case, then the confusion table (what was done, what was told first).

    python -m tests.lab [WORD ..]      only cases whose title or finding holds one of the words

On three of the demo's texts, which tells most faults and takes seconds a case; what needs more is tried on all eight.
"""

from __future__ import annotations

import sys

from tests.lab.cases import everything
from tests.lab.table import confusion
from tests.lab.workers import run

TEXTS = (1, 4, 7)


def main(words: list[str]) -> int:
    """Exit code 1 when a case is missed."""
    chosen = [f.title for f in everything() if not words or any(word in f.title + " ".join(f.names) for word in words)]
    rows = run(chosen, TEXTS)
    print(*confusion(rows), sep="\n")
    return 1 if not all(row.right for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
