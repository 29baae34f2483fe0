"""The Arrow data set that speculators keeps beside its hs_N files: loss masks by token ids.

Runs only in the parsing child. Facts: `datasets` writes IPC streams (data-*.arrow) with input_ids and loss_mask columns
(vllm-project/speculators `data/`). Rows are matched by their token ids, never by their place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import torch

from eagle3dash.errors import BadInput
from eagle3dash.formats.containers import Leaf
from eagle3dash.formats.tensors import raw


def key(tokens: torch.Tensor) -> str:
    """The identity of a text: SHA-256 of its token ids."""
    return hashlib.sha256(raw(tokens.to(torch.int64))).hexdigest()


def masks(path: str) -> dict[str, Leaf]:
    """key(token ids) -> loss mask [S]; empty when the data set has no masks."""
    import pyarrow  # slow to load, rarely needed

    found: dict[str, Leaf] = {}
    try:
        with pyarrow.OSFile(path) as file, _open(pyarrow, file) as reader:
            if not {"input_ids", "loss_mask"} <= set(reader.schema.names):
                return {}
            for batch in _batches(reader):
                batch.validate(full=True)
                found |= _of_batch(batch)
    except pyarrow.ArrowException as error:
        raise BadInput(f"not a readable Arrow data set ({' '.join(str(error).split())[:80]}).") from error
    return found


def _open(pyarrow: Any, file: Any) -> Any:
    kind = file.read(6)
    file.seek(0)
    return pyarrow.ipc.open_file(file) if kind == b"ARROW1" else pyarrow.ipc.open_stream(file)


def _batches(reader: Any) -> Iterator[Any]:
    """A file is read by number, a stream in order."""
    if hasattr(reader, "num_record_batches"):
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    return iter(reader)


def _of_batch(batch: Any) -> dict[str, Leaf]:
    found = {}
    for ids, mask in zip(batch.column("input_ids"), batch.column("loss_mask"), strict=True):
        tokens = torch.tensor(ids.as_py() or [], dtype=torch.int64)
        values = torch.tensor([int(bool(value)) for value in mask.as_py() or []], dtype=torch.uint8)
        if len(values) == len(tokens):
            found[key(tokens)] = Leaf((len(values),), torch.uint8, held=values)
    return found
