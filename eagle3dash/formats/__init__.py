"""Files -> records. `read` brings files in, `inspect` says what they are.

Knows no store and no run. Here, in the caller's process, a user's file is only looked up and hashed; everything that
depends on its content happens in the parsing child (`sandbox`, `child`, `work`), whose answer is checked like any other
input.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eagle3dash.errors import BadInput
from eagle3dash.formats import sandbox
from eagle3dash.formats.describe import document
from eagle3dash.formats.scan import File, expand, fingerprint, signature
from eagle3dash.records import Drafter, Import, Progress, Source, from_json, no_progress, to_json

ROLES = ("drafter", "training", "serving", "log", "target")
SHA256 = re.compile(r"[0-9a-f]{64}")


def read(
    paths: Sequence[Path],
    out: Path,
    *,
    role: str | None = None,
    states: tuple[int, ...] | None = None,
    width: int | None = None,
    progress: Progress = no_progress,
) -> list[Import]:
    """Recognise, check and convert everything under `paths`; canonical tensor files go to out/<sha256>.safetensors.

    role: what the user says it is (drafter, training, serving, log, target). states: HF[k] of each slot. width: Ht, which
    splits a concatenation. All or nothing: raises BadInput naming the file, and then leaves nothing in `out`. progress
    counts bytes: all files are hashed, converted and hashed again.
    """
    if role is not None and role not in ROLES:
        raise BadInput(f"{role!r} is no kind of file. Say one of: {', '.join(ROLES)}.")
    files = _expanded(paths)
    total = sum(file.bytes for file in files)
    meter = _Meter(2 * total, progress)
    before = [signature(file) for file in files]
    out.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".reading-", dir=out))
    try:
        found = sandbox.ask(_request("read", files, scratch, role, states, width), total, meter.within(total))
        used = sorted({i for thing in found for i in thing["files"]})
        meter.at(2 * total - sum(files[i].bytes for i in used), "hashing")
        sources = {i: _source(files[i], before[i], meter) for i in used}
        imports = _imports(found, sources, scratch)
        _check_role(imports, role)
        for item in imports:
            for sha256 in item.tensors:
                _move(scratch, out, sha256)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return imports


def inspect(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """What each thing under `paths` is, as JSON documents; a broken or unknown file is a document too. Writes nothing."""
    try:
        files = _expanded(paths)
        with tempfile.TemporaryDirectory(prefix="eagle3dash-") as scratch:
            total = sum(file.bytes for file in files)
            found = sandbox.ask(
                _request("inspect", files, Path(scratch), None, None, None), total, lambda count, message: None
            )
    except BadInput as error:
        return [{"kind": "unknown", "format": None, "names": [Path(path).name for path in paths], "problems": [str(error)]}]
    layers = next((thing["record"]["layers"] for thing in found if thing["kind"] == "target"), None)
    return [document(thing, [file.name for file in files], layers) for thing in found]


def _expanded(paths: Sequence[Path]) -> list[File]:
    files = expand(paths)
    if not files:
        names = ", ".join(Path(path).name for path in paths)[:120]
        raise BadInput(f"{names or 'Nothing'}: no files there. Name a file or a folder with files.")
    return files


class _Meter:
    """Bytes done out of all bytes to do, over several passes. Never goes back."""

    def __init__(self, total: int, progress: Progress):
        self.done, self.total, self.progress = 0, total, progress

    def add(self, count: int, message: str) -> None:
        self.at(min(self.done + count, self.total), message)

    def at(self, done: int, message: str) -> None:
        self.done = max(self.done, done)
        self.progress(self.done, self.total, message)

    def within(self, end: int) -> Callable[[int, str], None]:
        """A counter for the pass that ends there."""

        def report(count: int, message: str) -> None:
            self.at(min(self.done + max(0, count), end), message)

        return report


def _source(file: File, before: tuple[int, ...], meter: _Meter) -> Source:
    """The file's hash. Nothing may have written to it since before it was read: else the hash is not that of what was
    read."""
    sha256 = fingerprint(file, lambda count: meter.add(count, "hashing"))
    if signature(file) != before:
        raise BadInput(f"{file.name}: changed while it was read. Try again when nothing writes to it.")
    return Source(file.name, file.bytes, sha256)


def _request(
    op: str, files: list[File], scratch: Path, role: str | None, states: tuple[int, ...] | None, width: int | None
) -> dict[str, Any]:
    return {
        "op": op, "files": [vars(file) for file in files], "scratch": str(scratch.resolve()), "role": role,
        "states": list(states) if states else None, "width": width,
    }  # fmt: skip


def _imports(found: list[dict[str, Any]], sources: dict[int, Source], scratch: Path) -> list[Import]:
    """Things as the child reported them, as records. The child is not trusted: what it names must be there."""
    try:
        return [_import(thing, sources, scratch) for thing in found]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OSError) as error:
        raise BadInput(f"The process that reads files gave an unusable answer ({type(error).__name__}).") from error


def _import(thing: dict[str, Any], sources: dict[int, Source], scratch: Path) -> Import:
    for sha256 in thing["tensors"]:
        if not SHA256.fullmatch(sha256) or not stat.S_ISREG(os.lstat(scratch / f"{sha256}.safetensors").st_mode):
            raise ValueError(f"no tensor file {sha256[:80]}")
    mine = tuple(sources[i] for i in thing["files"])
    values = {**thing, "sources": [to_json(source) for source in mine], "sha256": ""}
    del values["files"]
    item: Import = from_json(Import, values)
    return Import(**{**vars(item), "sha256": identity(item)})


def identity(item: Import) -> str:
    """SHA-256 of what was read, whatever the files were called: tensors (for a log, the files) and how they are
    understood."""
    record = item.record
    parts: dict[str, Any] = {"kind": item.kind, "tensors": sorted(item.tensors)}
    if item.kind == "log":
        parts["sources"] = sorted(source.sha256 for source in item.sources)
    elif item.kind == "capture":
        parts["sequences"] = sorted(sequence.tensors for sequence in record.sequences)
        parts |= {"role": record.role, "states": record.states, "format": record.format}
    elif isinstance(record, Drafter):
        parts |= {
            "spec": to_json(record.spec),
            "layer_ids": record.layer_ids,
            "flavour": record.flavour,
            "steps": record.steps,
        }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _check_role(imports: list[Import], role: str | None) -> None:
    kind = "capture" if role in ("training", "serving") else role
    if role is not None and not any(item.kind == kind for item in imports):
        found = ", ".join(sorted({item.kind for item in imports})) or "nothing else"
        raise BadInput(f"No {role} {'capture ' if kind == 'capture' else ''}there, but {found}. Correct the path or --as.")


def _move(scratch: Path, out: Path, sha256: str) -> None:
    source = scratch / f"{sha256}.safetensors"
    if source.exists():  # several things may share a tensor file
        os.replace(source, out / source.name)
