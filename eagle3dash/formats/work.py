"""The work of the parsing child: a list of files -> imports or descriptions, as plain JSON values.

Runs only in the child. Sources' hashes are the caller's: here a file is known by its place in the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from eagle3dash.errors import BadInput
from eagle3dash.formats import drafters, gguf_target, logs, sets, target, vocabulary
from eagle3dash.formats.checkpoints import Checkpoint
from eagle3dash.formats.containers import Leaf
from eagle3dash.formats.groups import Groups, group
from eagle3dash.formats.job import Attempt, Built, Job, named, thing
from eagle3dash.formats.recognise import UNKNOWN, Content, content
from eagle3dash.formats.tensors import Entry, entry, write


def run(job: Job) -> list[dict[str, Any]]:
    """Every thing found. Raises BadInput with the file's name in front."""
    contents = [named(file.name, content, file, job.scratch) for file in job.files]
    unknown = [one.file.name for one in contents if one.kind == "unknown"]
    if unknown and all(one.kind in ("accessory", "unknown") for one in contents):
        raise BadInput(f"{unknown[0]}: {UNKNOWN}")
    if all(one.kind == "accessory" for one in contents):
        raise BadInput(f"{job.files[0].name}: nothing here is a drafter, a capture, a log or a target.")
    found = list(things(job, group(contents), named))
    if unknown and found:
        found[0]["problems"].append(f"Not used, of unknown kind: {', '.join(unknown)[:200]}.")
    return found


def describe(job: Job) -> list[dict[str, Any]]:
    """Like `run` without writing; each part that cannot be used is described by its problem."""
    unknown: list[dict[str, Any]] = []

    def attempt(name: str, action: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return named(name, action, *arguments)
        except BadInput as error:
            unknown.append({"kind": "unknown", "names": [name], "problems": [str(error)]})
            return None

    contents = [one for file in job.files if (one := attempt(file.name, content, file, job.scratch)) is not None]
    unknown += [
        {"kind": "unknown", "names": [one.file.name], "problems": [UNKNOWN]} for one in contents if one.kind == "unknown"
    ]
    unknown += [
        {"kind": "unknown", "names": [one.file.name], "problems": ["not needed beside the others."]}
        for one in contents
        if one.kind == "accessory" and len(job.files) == 1
    ]
    groups = attempt(job.files[0].name, group, contents)
    return (list(things(job, groups, attempt)) if groups is not None else []) + unknown


def things(job: Job, groups: Groups, attempt: Attempt) -> Iterator[dict[str, Any]]:
    """Drafters first: they tell the width of one state for the captures of the same call."""
    drafter: dict[str, Any] | None = None
    for checkpoint in groups.checkpoints:
        found = attempt(checkpoint.files[0].name, _checkpoint, job, checkpoint) if job.role != "log" else None
        if found is not None:
            job = _informed(job, found)
            drafter = found if found["kind"] == "drafter" else drafter
            yield found
    for one in groups.ggufs:
        if attempt(one.file.name, _wanted, job, "target", [one]):
            yield from _given(attempt(one.file.name, _gguf, job, one))
    captures = [
        folder for folder in groups.captures if attempt(folder.files[0].file.name, _wanted, job, "capture", folder.files)
    ]
    aside: list[str] = []
    yield from sets.read(job, captures, attempt, aside)
    if aside and drafter is not None:
        text = "they do not say whether they are from training or serving; add --as and their own path to import them"
        drafter["problems"].append(f"Hidden states beside it were not used ({', '.join(aside)[:100]}): {text}.")
    for files in groups.logs:
        if attempt(files[0].file.name, _wanted, job, "log", files):
            yield from _given(attempt(files[0].file.name, _log, job, files))


def _wanted(job: Job, kind: str, files: list[Content]) -> bool:
    """Of a folder only what the user said it is; a file that was named and is something else is an error."""
    if job.role not in ("drafter", "log", "target") or job.role == kind:
        return True
    if any(one.file.explicit for one in files):
        raise BadInput(f"is a {kind}, not a {job.role} as was said. Leave --as out or correct it.")
    return False


def _given(found: dict[str, Any] | None) -> list[dict[str, Any]]:
    return [] if found is None else [found]


def _informed(job: Job, found: dict[str, Any]) -> Job:
    """The job with what this thing says about the captures beside it."""
    record = found["record"]
    if found["kind"] == "drafter":
        return replace(job, width=record["spec"]["target_hidden"], num_aux=record["spec"]["num_aux"])
    return job if job.width is not None else replace(job, width=record["hidden"])


def _checkpoint(job: Job, checkpoint: Checkpoint) -> dict[str, Any]:
    size = sum(file.bytes for file in checkpoint.files)
    job.progress(0, f"reading {checkpoint.files[0].name}")
    flavour = None if job.role == "target" else drafters.recognise(checkpoint.config, checkpoint.leaves)
    if flavour is None and target.embedding_name(checkpoint.leaves) is not None:
        found = _target(job, checkpoint)
    elif checkpoint.missing:
        raise BadInput(f"the index names {checkpoint.missing[0][:80]!r}, which is not in its folder. Add the missing file.")
    elif flavour is not None:
        found = _drafter(job, checkpoint)
    else:
        names = ", ".join(sorted(checkpoint.leaves)[:3])
        raise BadInput(f"weights of neither an EAGLE-3 drafter (fc.weight) nor a target (embed_tokens): {names[:120]}.")
    if checkpoint.unused:
        found["problems"].append(f"Not used beside {checkpoint.files[0].name}: {', '.join(checkpoint.unused)[:200]}.")
    job.progress(size, f"reading {checkpoint.files[0].name}")
    return found


def _drafter(job: Job, checkpoint: Checkpoint) -> dict[str, Any]:
    converted = drafters.convert(checkpoint.config, checkpoint.leaves)
    sha256 = write(job.out, [_entry(name, value) for name, value in converted.tensors.items()])
    built = Built(replace(converted.record, tensors=sha256), converted.inferred, converted.problems, (sha256,))
    return thing("drafter", _folder(checkpoint), checkpoint.files, job, built)


def _target(job: Job, checkpoint: Checkpoint) -> dict[str, Any]:
    built = target.from_weights(checkpoint.leaves, checkpoint.config, _texts(checkpoint), job.out)
    files = [file for file in checkpoint.files if file.path in built.paths or file.path.endswith(".json")]
    files += [checkpoint.tokenizer.file] if checkpoint.tokenizer else []
    return thing("target", built.record.name or _folder(checkpoint), files, job, built)


def _folder(checkpoint: Checkpoint) -> str:
    return Path(checkpoint.files[0].path).parent.name or checkpoint.files[0].name


def _entry(name: str, value: Any) -> Entry:
    if not isinstance(value, Leaf):
        return entry(name, value)
    if not value.shape:
        return entry(name, value.read())
    step, rows = value.step(), value.shape[0]
    return Entry(name, value.dtype, value.shape, (value.rows(a, min(a + step, rows)) for a in range(0, rows, step)))


def _texts(checkpoint: Checkpoint) -> dict[int, bytes]:
    source = checkpoint.tokenizer
    if source is None:
        return {}
    read = vocabulary.from_tokenizer_json if source.kind == "tokenizer" else vocabulary.from_tiktoken
    return named(source.file.name, read, Path(source.path).read_bytes())


def _gguf(job: Job, one: Content) -> dict[str, Any]:
    job.progress(0, f"reading {one.file.name}")
    built = gguf_target.read(one.path, job.out)
    job.progress(one.file.bytes, f"reading {one.file.name}")
    return thing("target", built.record.name or Path(one.file.name).stem, [one.file], job, built)


def _log(job: Job, files: list[Content]) -> dict[str, Any]:
    size, name = sum(one.file.bytes for one in files), files[0].file.name
    seen = [0]

    def report(done: float, total: float, message: str) -> None:
        job.progress(int(done) - seen[0], message)
        seen[0] = int(done)

    job.progress(0, f"reading {name}")
    paths = [Path(one.path) for one in files]
    record, inferred, problems = logs.parse(paths, files[0].value, report)
    job.progress(size - seen[0], f"reading {name}")
    return thing(
        "log", Path(name).name, [one.file for one in files], job, Built(record, tuple(inferred), tuple(problems), ())
    )
