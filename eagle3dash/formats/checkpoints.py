"""Weight files -> checkpoints: shards together, the folder's standard file before others, each with its config.

Runs only in the parsing child. Names as transformers writes them: model.safetensors, pytorch_model.bin,
name-00001-of-00003.suffix and an index. Names are only compared: nothing that a file names is ever opened.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eagle3dash.errors import BadInput
from eagle3dash.formats.containers import Leaf
from eagle3dash.formats.recognise import Content, weights
from eagle3dash.formats.scan import File

SHARD = re.compile(r"(.+)-(\d{3,6})-of-(\d{3,6})(\.\w+)")
STANDARD = re.compile(r"(model|pytorch_model|consolidated|diffusion_pytorch_model)\.(safetensors|bin|pt|pth)")

Kinds = dict[str, list[Content]]


@dataclass
class Checkpoint:
    """Weights of one model, the config that goes with them, and what was left aside.

    missing: files that an index names and that are not there. unused: weight files beside the standard one. lent: the
    target's embeddings beside a drafter without its own, so the folder's config is not theirs.
    """

    files: list[File]
    leaves: dict[str, Leaf]
    config: dict[str, Any] | None = None
    missing: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    tokenizer: Content | None = None
    lent: bool = False


def checkpoints(contents: list[Content], kinds: Kinds) -> list[Checkpoint]:
    """One for each model among the tensor files that hold no captures."""
    folders: dict[str, list[Content]] = defaultdict(list)
    for content in contents:
        folders[content.file.folder].append(content)
    found = [(folder, one) for folder, parts in folders.items() for one in _of_folder(folder, parts, kinds)]
    lent = sum(one.lent for _, one in found)
    for folder, one in found:
        config = None if one.lent else _config(folder, kinds["config"], set(folders), len(found) - lent)
        if config is not None:
            one.config = config.value
            one.files.append(config.file)
    return [one for _, one in found]


def _of_folder(folder: str, parts: list[Content], kinds: Kinds) -> list[Checkpoint]:
    indexes = [c for c in kinds["index"] if c.file.folder == folder]
    models: dict[str, list[Content]] = defaultdict(list)
    for part in parts:
        models[_model(part, indexes)].append(part)
    standard = [key for key in models if STANDARD.fullmatch(key)]
    best = next((key for key in standard if key.endswith(".safetensors")), standard[0] if standard else None)
    lending = [key for key in models if best is not None and key != best and _lends(models[key], models[best])]
    taken = {
        key: files
        for key, files in models.items()
        if best in (None, key) or key in lending or any(c.file.explicit for c in files)
    }
    unused = [c.file.name for key, files in models.items() if key not in taken for c in files]
    texts = [c for c in (*kinds["tokenizer"], *kinds["tiktoken"]) if c.file.folder == folder]
    made = [_checkpoint(files, indexes) for files in taken.values()]
    for one, key in zip(made, taken, strict=True):
        one.tokenizer = texts[0] if texts else None
        one.unused = unused if key == best else []
        one.lent = key in lending
    return made


def _lends(files: list[Content], standard: list[Content]) -> bool:
    """Does the folder's own model, a drafter, lack embeddings that these files have?"""
    own, others = ([name for c in part for name in weights(c.value) or {}] for part in (standard, files))
    embeds = [any(name.endswith("embed_tokens.weight") for name in names) for names in (own, others)]
    return embeds == [False, True] and any(name.split(".")[-2:] == ["fc", "weight"] for name in own)


def _model(content: Content, indexes: list[Content]) -> str:
    """The name of the whole file that this one is, or is a shard of."""
    name = Path(content.file.path).name
    for index in indexes:
        if name in index.value["weight_map"].values():
            return f"model{Path(name).suffix}"
    shard = SHARD.fullmatch(name)
    return f"{shard[1]}{shard[4]}" if shard else name


def _checkpoint(parts: list[Content], indexes: list[Content]) -> Checkpoint:
    files, missing = [c.file for c in parts], []
    names = {Path(file.path).name for file in files}
    for index in indexes:
        shards = {str(name) for name in index.value["weight_map"].values()}
        if shards & names or not any(Path(shard).suffix != Path(files[0].path).suffix for shard in shards):
            missing += sorted(shards - names)
            files.append(index.file)
    leaves: dict[str, Leaf] = {}
    for content in parts:
        own = weights(content.value)
        if own is None:
            raise BadInput(f"{content.file.name}: holds neither hidden states with token ids nor the weights of a model.")
        twice = next((name for name in own if name in leaves), None)
        if twice is not None:
            raise BadInput(f"{content.file.name}: tensor {twice[:80]!r} is also in another shard. Export the model again.")
        leaves |= own
    return Checkpoint(files, leaves, missing=missing)


def _config(folder: str, configs: list[Content], weighted: set[str], models: int) -> Content | None:
    """A config named by itself, from a folder without weights, wins when there is no doubt whose it is."""
    loose = [c for c in configs if c.file.explicit and c.file.folder not in weighted]
    if len(loose) == 1 and models == 1:
        return loose[0]
    own = [c for c in configs if c.file.folder == folder]
    if own:
        return next((c for c in own if Path(c.file.path).name == "config.json"), own[0])
    return configs[0] if len(configs) == 1 and models == 1 else None
