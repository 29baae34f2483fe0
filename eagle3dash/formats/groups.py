"""Recognised files -> things: which files make one drafter, one capture, one log or one target.

Runs only in the parsing child. Rules: weights and a config of one folder belong together, and a config.json that was named
itself wins over the folder's; dumps of one folder and layout are one capture; Prometheus snapshots of one folder are one
log.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

from eagle3dash.errors import BadInput
from eagle3dash.formats import dumps
from eagle3dash.formats.checkpoints import Checkpoint, checkpoints
from eagle3dash.formats.dumps.speculators import layers
from eagle3dash.formats.recognise import Content
from eagle3dash.formats.scan import File


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
    models = checkpoints([c for c in kinds["tensors"] if c not in states], kinds)
    if kinds["config"] and not models and not kinds["gguf"]:
        raise BadInput(
            f"{kinds['config'][0].file.name}: a config without weights. Add the model.safetensors that belongs to it."
        )
    return Groups(models, _captures(states, kinds), _logs(kinds["log"]), kinds["gguf"])


def _has_states(content: Content) -> bool:
    try:
        return dumps.recognise(content.value, dumps.Beside(Path(content.file.path).name)) is not None
    except BadInput:
        return True  # hidden states, but broken: the capture reader says how


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
