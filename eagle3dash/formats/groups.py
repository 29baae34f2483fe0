"""Recognised files -> things: which files make one drafter, one capture, one log or one target.

Runs only in the parsing child. Rules: weights and a config of one folder belong together, and a config.json that was named
itself wins over the folder's; dumps of one folder and layout are one capture; Prometheus snapshots of one folder are one
log.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eagle3dash.errors import BadInput
from eagle3dash.formats import dumps
from eagle3dash.formats.containers import Leaf
from eagle3dash.formats.dumps.speculators import layers
from eagle3dash.formats.recognise import Content, weights
from eagle3dash.formats.scan import File


@dataclass
class Checkpoint:
    """Weights of one folder with the config that goes with them."""

    files: list[File]
    leaves: dict[str, Leaf]
    config: dict[str, Any] | None = None
    missing: list[str] = field(
        default_factory=list
    )  # files that the index names and that are not there; names, never opened
    tokenizer: Content | None = None


@dataclass
class Dumped:
    """Files of one folder that hold hidden states, opened, with what lies beside them."""

    files: list[Content]
    beside: dumps.Beside
    extra: list[File] = field(default_factory=list)
    datasets: list[Content] = field(default_factory=list)


@dataclass
class Groups:
    """All that one call brought."""

    checkpoints: list[Checkpoint]
    captures: list[Dumped]
    logs: list[list[Content]]
    ggufs: list[Content]


def group(contents: list[Content]) -> Groups:
    """Raises BadInput for parts that have lost their whole, such as a config without weights."""
    kinds: dict[str, list[Content]] = defaultdict(list)
    for content in contents:
        kinds[content.kind].append(content)
    states = [c for c in kinds["tensors"] if _has_states(c)]
    checkpoints = _checkpoints([c for c in kinds["tensors"] if c not in states], kinds)
    if kinds["config"] and not checkpoints and not kinds["gguf"]:
        raise BadInput(
            f"{kinds['config'][0].file.name}: a config without weights. Add the model.safetensors that belongs to it."
        )
    return Groups(checkpoints, _captures(states, kinds), _logs(kinds["log"]), kinds["gguf"])


def _has_states(content: Content) -> bool:
    try:
        return dumps.recognise(content.value, dumps.Beside(Path(content.file.path).name)) is not None
    except BadInput:
        return True  # hidden states, but broken: the capture reader says how


def _checkpoints(contents: list[Content], kinds: dict[str, list[Content]]) -> list[Checkpoint]:
    folders: dict[str, list[Content]] = defaultdict(list)
    for content in contents:
        if weights(content.value) is None:
            raise BadInput(f"{content.file.name}: holds neither hidden states with token ids nor the weights of a model.")
        folders[content.file.folder].append(content)
    found = [_checkpoint(folder, parts, kinds) for folder, parts in folders.items()]
    for checkpoint, folder in zip(found, folders, strict=True):
        config = _config(folder, kinds["config"], set(folders), len(found))
        if config is not None:
            checkpoint.config = config.value
            checkpoint.files.append(config.file)
    return found


def _checkpoint(folder: str, parts: list[Content], kinds: dict[str, list[Content]]) -> Checkpoint:
    parts = [c for c in parts if _is_safetensors(c.file.path)] or parts  # the same weights often lie there twice
    files, missing = [c.file for c in parts], []
    for index in kinds["index"]:
        shards = {str(name) for name in index.value["weight_map"].values()}
        if index.file.folder == folder and any(
            _is_safetensors(shard) == _is_safetensors(files[0].path) for shard in shards
        ):
            missing += sorted(shards - {Path(file.path).name for file in files})
            files.append(index.file)
    leaves: dict[str, Leaf] = {}
    for content in parts:
        for name, leaf in (weights(content.value) or {}).items():
            if name in leaves:
                raise BadInput(
                    f"{content.file.name}: tensor {name[:80]!r} is also in another file of its folder. Import one model."
                )
            leaves[name] = leaf
    texts = [c for c in (*kinds["tokenizer"], *kinds["tiktoken"]) if c.file.folder == folder]
    return Checkpoint(files, leaves, missing=missing, tokenizer=texts[0] if texts else None)


def _is_safetensors(path: str) -> bool:
    return path.endswith(".safetensors")


def _config(folder: str, configs: list[Content], weighted: set[str], checkpoints: int) -> Content | None:
    """A config named by itself, from a folder without weights, wins when there is no doubt whose it is."""
    loose = [c for c in configs if c.file.explicit and c.file.folder not in weighted]
    if len(loose) == 1 and checkpoints == 1:
        return loose[0]
    own = [c for c in configs if c.file.folder == folder]
    if own:
        return next((c for c in own if Path(c.file.path).name == "config.json"), own[0])
    return configs[0] if len(configs) == 1 and checkpoints == 1 else None


def _captures(contents: list[Content], kinds: dict[str, list[Content]]) -> list[Dumped]:
    folders: dict[str, list[Content]] = defaultdict(list)
    for content in contents:
        folders[content.file.folder].append(content)
    return [_dumped(folder, files, kinds) for folder, files in folders.items()]


def _dumped(folder: str, files: list[Content], kinds: dict[str, list[Content]]) -> Dumped:
    around = (folder, str(Path(folder).parent))
    datasets = [c for c in kinds["dataset"] if c.file.folder in around]
    beside = dumps.Beside("", dataset=bool(datasets))
    notes = [c for c in kinds["layers"] if c.file.folder == folder] or (
        kinds["layers"] if len(kinds["layers"]) == 1 else []
    )
    if not notes:
        return Dumped(files, beside, datasets=datasets)
    states, why = layers(notes[0].value)
    return Dumped(files, replace(beside, states=states, states_why=why), [notes[0].file] if states else [], datasets)


def _logs(contents: list[Content]) -> list[list[Content]]:
    snapshots: dict[str, list[Content]] = defaultdict(list)
    single = []
    for content in contents:
        if content.value == "prometheus":
            snapshots[content.file.folder].append(content)
        else:
            single.append([content])
    return [*snapshots.values(), *single]
