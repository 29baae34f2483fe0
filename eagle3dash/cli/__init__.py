"""The command line: `python -m eagle3dash ...` (the README shows the commands, `--help` lists them).

Exit codes: 0 fine, 1 findings of severity error, 2 bad input or usage, 130 interrupted. Results go to stdout, everything
else to stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from eagle3dash.cli.commands import COMMANDS
from eagle3dash.cli.parser import parser
from eagle3dash.errors import Eagle3Error

BAD, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. Returns its exit code."""
    asked = parser().parse_args(arguments)
    try:
        return COMMANDS[asked.command](asked)
    except Eagle3Error as error:
        print(f"eagle3dash: {error}", file=sys.stderr)
        return BAD
    except KeyboardInterrupt:
        print("\neagle3dash: interrupted; what was not finished was not stored.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
