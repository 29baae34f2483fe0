"""What one file is, from its first bytes and its keys; never from its name alone.

Runs only in the parsing child. Answers with a `Content`; which files belong together is `groups`' business.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eagle3dash.errors import BadInput
from eagle3dash.formats import logs
from eagle3dash.formats.containers import Leaf, open_safetensors, open_torch
from eagle3dash.formats.dumps import sglang
from eagle3dash.formats.scan import File

HEAD = 64 << 10
MAX_JSON = 64 << 20
MAX_RATIO = 200
ACCESSORIES = re.compile(  # files that a drafter, a data set or a model folder has around it
    r"^(README|LICEN[CS]E|NOTICE|USE_POLICY|CHANGELOG).*|.*\.(md|rst|py|jinja|png|jpg|jpeg|svg|pdf|html|arrow|lock|yaml|yml|toml|sh)$"
    r"|^(tokenizer|special_tokens|added_tokens|vocab|merges|generation_config|preprocessor|processor|chat_template|trainer_state"
    r"|dataset_info|state|quantize|hf_quant|recipe|data_config|token_freq|optimizer|scheduler|training_args|training_state|rng_state)"
    r"[\w.-]*\.(json|txt|model|bin|pt|pth|jsonl|npy|safetensors)$",
    re.IGNORECASE,
)

Kind = Literal[
    "tensors", "config", "index", "layers", "tokenizer", "tiktoken", "gguf", "dataset", "log", "accessory", "unknown"
]
UNKNOWN = "unknown kind. Known: EAGLE-3 drafters, hidden-state captures, server logs and metrics, targets."


@dataclass
class Content:
    """A recognised file. `value`: an opened container's tree, a parsed JSON document, or the name of a log format."""

    file: File
    kind: Kind
    value: Any = None
    path: str = ""  # where to read it: the file, or what it was unpacked to


def content(file: File, scratch: Path) -> Content:
    """Raises BadInput for a damaged file, and for one of unknown kind that was named; a folder may hold such."""
    if file.bytes == 0:
        raise BadInput("empty (0 bytes). Copy it again.")
    with open(file.path, "rb") as stream:
        head = stream.read(HEAD)
    path = file.path
    if head.startswith(b"\x1f\x8b"):
        path = _unpacked(file, scratch)
        with open(path, "rb") as stream:
            head = stream.read(HEAD)
    accessory = ACCESSORIES.match(Path(file.path).name) is not None
    found = _tensors(file, path, head) or _document(file, path, head) or (None if accessory else _log(file, path, head))
    if found is not None:
        return found
    if accessory and not file.explicit:
        return Content(file, "accessory")
    if file.explicit:
        raise BadInput(UNKNOWN)
    return Content(file, "unknown")


def _tensors(file: File, path: str, head: bytes) -> Content | None:
    name = Path(file.path).name
    if head.startswith(b"GGUF"):
        return Content(file, "gguf", path=path)
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")) and name.endswith(".arrow"):
        return Content(file, "dataset", path=path)
    if sglang.looks_so(head):
        return Content(file, "tensors", sglang.open_json(path), path)
    if _is_safetensors(head, name):
        return Content(file, "tensors", open_safetensors(path), path)
    if head.startswith(b"PK\x03\x04") or (head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05"):
        if not file.explicit and ACCESSORIES.match(name):
            return Content(file, "accessory")  # optimizer.pt and its like hold what is never loaded
        return Content(file, "tensors", open_torch(path, file.name), path)
    if name.endswith((".pt", ".pth", ".ckpt", ".bin")):
        raise BadInput("not a torch file: it does not start like one. It is cut, damaged or of another kind.")
    return None


def _is_safetensors(head: bytes, name: str) -> bool:
    """By name, or a plausible header length with JSON after it (which no pickle and no text has)."""
    return name.endswith(".safetensors") or (head[4:8] == bytes(4) and head[8:].lstrip(b" ")[:1] == b"{")


def _document(file: File, path: str, head: bytes) -> Content | None:
    name = Path(file.path).name
    if name.startswith("tiktoken") or name.endswith(".tiktoken"):
        return Content(file, "tiktoken", path=path)
    if not head.lstrip().startswith(b"{") or not name.endswith(".json") or Path(path).stat().st_size > MAX_JSON:
        return None
    try:
        value = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not readable JSON ({str(error)[:80]}). Copy it again.") from error
    return _json(file, path, value) if isinstance(value, dict) else None


def _json(file: File, path: str, value: dict[str, Any]) -> Content | None:
    if isinstance(value.get("weight_map"), dict):
        return Content(file, "index", value, path)
    if isinstance(value.get("model"), dict) and "vocab" in value["model"]:
        return Content(file, "tokenizer", path=path)
    if Path(file.path).name == "data_config.json":
        return Content(file, "layers", value, path)
    if any(key in value for key in ("architectures", "model_type", "hidden_size", "speculators_model_type", "text_config")):
        return Content(file, "config", value, path)
    return None


def _log(file: File, path: str, head: bytes) -> Content | None:
    form = logs.sniff(head, Path(file.path).name)
    return Content(file, "log", form, path) if form else None


def _unpacked(file: File, scratch: Path) -> str:
    """Decompress into `scratch`, at most 200 times the file's size."""
    path = scratch / f"unpacked-{abs(hash(file.path))}"
    limit, written = file.bytes * MAX_RATIO, 0
    try:
        with gzip.open(file.path, "rb") as packed, open(path, "wb") as plain:
            while block := packed.read(1 << 20):
                written += len(block)
                if written > limit or shutil.disk_usage(scratch).free < 1 << 28:
                    raise BadInput(f"unpacks to more than {written >> 20} MiB, which is too much. Unpack it by hand.")
                plain.write(block)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"not a complete gzip file ({str(error)[:80]}). Copy it again.") from error
    return str(path)


def weights(value: Any) -> dict[str, Leaf] | None:
    """The tensors of a checkpoint: name -> Leaf, also under a `state_dict` or `model` key. None when it is something
    else."""
    for key in ("state_dict", "model", "module"):
        if isinstance(value, dict) and isinstance(value.get(key), dict):
            value = value[key]
    if not isinstance(value, dict):
        return None
    leaves = {key: leaf for key, leaf in value.items() if isinstance(key, str) and isinstance(leaf, Leaf)}
    return leaves or None
