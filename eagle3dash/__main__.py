"""`python -m eagle3dash`. A fault of ours is one sentence, its traceback in a file, and exit code 70."""

import os
import sys
import tempfile
import traceback
from types import TracebackType

from eagle3dash.cli import main

FAULT = 70


def told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What Python calls for an exception that nobody caught."""
    with tempfile.NamedTemporaryFile("w", prefix="eagle3dash-fault-", suffix=".txt", delete=False) as file:
        file.write("".join(traceback.format_exception(kind, error, trace)))
    print(f"eagle3dash: a fault of its own ({kind.__name__}). Please report it with {file.name}.", file=sys.stderr)
    sys.stdout.flush()
    os._exit(FAULT)  # Python's own code for this, 1, means findings here


if __name__ == "__main__":
    sys.excepthook = told
    sys.exit(main())
