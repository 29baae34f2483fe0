"""An answer and its way between two processes: the document as JSON, the frames as Parquet files in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Answer:
    """What a task found. `parts` are the answers to other questions that were found on the way, worth keeping too."""

    key: str
    kind: str
    args: dict[str, Any]
    document: dict[str, Any]
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    parts: tuple[Answer, ...] = ()

    def flat(self) -> Iterator[Answer]:
        """The parts, then the answer itself, which is the last."""
        for part in self.parts:
            yield from part.flat()
        yield self


def write_answer(answer: Answer, folder: Path, prefix: str) -> dict[str, Any]:
    """JSON of an answer without its parts; its frames go to folder/<prefix>-<name>.parquet."""
    files = {}
    for name, frame in answer.frames.items():
        files[name] = f"{prefix}-{name}.parquet"
        frame.to_parquet(folder / files[name], index=False)
    return {"key": answer.key, "kind": answer.kind, "args": answer.args, "document": answer.document, "frames": files}


def read_answer(message: dict[str, Any], folder: Path) -> Answer:
    """The inverse of `write_answer`."""
    frames = {name: pd.read_parquet(folder / file) for name, file in message["frames"].items()}
    return Answer(message["key"], message["kind"], message["args"], message["document"], frames)
