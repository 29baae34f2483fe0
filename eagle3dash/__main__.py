"""`python -m eagle3dash`. A fault of ours is one sentence, its traceback in a file, and exit code 70."""

import os
import sys
import tempfile
import traceback
from types import TracebackType

FAULT, INTERRUPTED = 70, 130


def told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What Python calls for an exception that nobody caught."""
    if issubclass(kind, KeyboardInterrupt):
        print("\neagle3dash: interrupted.", file=sys.stderr)
        os._exit(INTERRUPTED)
    with tempfile.NamedTemporaryFile("w", prefix="eagle3dash-fault-", suffix=".txt", delete=False) as file:
        file.write("".join(traceback.format_exception(kind, error, trace)))
    print(f"eagle3dash: a fault of its own ({kind.__name__}). Please report it with {file.name}.", file=sys.stderr)
    sys.stdout.flush()
    os._exit(FAULT)  # Python's own code for this, 1, means findings here


if __name__ == "__main__":
    sys.excepthook = told
    from eagle3dash.cli import main  # after the hook: loading takes a second, in which one may press Ctrl-C

    sys.exit(main())
