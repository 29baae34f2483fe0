"""One request to the parsing child, and the steps that every kind of thing shares."""

from __future__ import annotations

import pickle
import struct
import sys
import traceback
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eagle3dash.errors import BadInput, Refused
from eagle3dash.formats.scan import File
from eagle3dash.records import Inferred, to_json

FAULTS = (  # what readers and libraries raise on bytes that are not what they seem; anything else ends the child
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, EOFError, RuntimeError,
    pickle.UnpicklingError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
Progress = Callable[[int, str], None]  # bytes since the last call, what is being read
Attempt = Callable[..., Any]  # attempt(name, action, *arguments): `named`, or one that notes the error and gives None


@dataclass
class Job:
    """One request. `out` None: describe only. `role`, `states`, `width`: what the user said; `num_aux`: A of a drafter."""

    files: list[File]
    scratch: Path
    out: Path | None
    role: str | None
    states: tuple[int, ...] | None
    width: int | None
    num_aux: int | None
    progress: Progress


@dataclass(frozen=True)
class Built:
    """A finished record of any kind. `tensors`: the tensor files that belong to it, by SHA-256."""

    record: Any
    inferred: tuple[Inferred, ...] = ()
    problems: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()
    paths: frozenset[str] = frozenset()  # of a target: the files that its parts lie in


def thing(kind: str, name: str, files: list[File], job: Job, built: Built) -> dict[str, Any]:
    """What the child reports about one thing: plain JSON, files by their place in the request."""
    return {
        "kind": kind, "name": name, "files": [job.files.index(file) for file in files], "record": to_json(built.record),
        "inferred": [to_json(note) for note in built.inferred], "problems": list(built.problems),
        "tensors": list(built.tensors),
    }  # fmt: skip


def named(name: str, action: Callable[..., Any], *arguments: Any) -> Any:
    """Run an action on one file; whatever goes wrong becomes a BadInput that starts with the file's name."""
    try:
        return action(*arguments)
    except BadInput as error:
        text = str(error) if str(error).startswith(f"{name}: ") else f"{name}: {error}"
        if isinstance(error, Refused):
            raise Refused(text, replace(error.refusal, file=error.refusal.file or name)) from error
        raise BadInput(text) from error
    except FAULTS as error:
        text = " ".join(str(error).split())
        if "allocate memory" in text:
            raise MemoryError from error
        traceback.print_exc(file=sys.stderr)  # for the caller's log, when it is a fault of ours after all
        raise BadInput(f"{name}: damaged, or not what it seems ({type(error).__name__}: {text[:100]}).") from error
