"""The healthy run that the laboratory breaks: the demo's story-fixed, as tensors that a fault may rewrite.

Everything here is real: the target's states by transformers (training) and by vLLM (serving), the drafter's file, the
server's log. A case is written as the importer writes it (canonical tensor files, converted drafters, parsed logs) and
asked the same question as a user's run, without a store.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from eagle3dash import formats
from eagle3dash.formats import drafters, logs
from eagle3dash.formats.tensors import entry, write
from eagle3dash.jobs import demo, payloads, tasks
from eagle3dash.records import Capture, Import, Run, Source
from eagle3dash.records import Sequence as Text

STATES = (0, 2, 15, 27)


@dataclass
class Made:
    """One text of a capture: ids [S], loss mask [S] or None, and its states in the order of the slots, each [S, Ht]."""

    ids: torch.Tensor
    mask: torch.Tensor | None
    states: list[torch.Tensor]


@dataclass
class Case:
    """A run before it is written. A fault changes any of it.

    log: writes a server's log from the accepted counts that a right engine would have on these serving features; or "demo"
    (the real logs of the healthy server), or None. labels: HF[k] of each slot of a capture, None where no file would say.
    """

    training: list[Made]
    serving: list[Made]
    config: dict[str, Any]
    weights: dict[str, torch.Tensor]
    labels: dict[str, list[int | None]]
    aux: dict[str, tuple[int, ...] | None]
    settings: dict[str, Any]
    log: Callable[[np.ndarray], str] | str | None
    without: tuple[str, ...] = ()  # kinds that the run lacks: drafter, training, serving, target


Change = Callable[["Healthy", Case], None]


@dataclass
class Healthy:
    """The demo's files, read once; answers of parts that cases share, by key."""

    folder: Path
    which: Sequence[int] = tuple(range(8))
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: dict[str, np.ndarray] = field(default_factory=dict)  # num_accepted of the rounds of a replay, by key

    def __post_init__(self) -> None:
        self.imports = {self._name(item): item for item in self._read("story-fixed")}
        served = formats.read([demo.FOLDER / "story-as-served" / "serving"], self.folder)[0].record
        self.pool: dict[str, list[dict[int, torch.Tensor]]] = {"training": [], "serving": []}
        self.ids, self.masks = [], []
        fixed, trained = self.imports["serving"].record, self.imports["training"].record
        for index in self.which:
            training, serving, other = (self.tensors(c.sequences[index].tensors) for c in (trained, fixed, served))
            self.ids.append(training["token_ids"])
            self.masks.append(training["loss_mask"])
            self.pool["training"].append({k: training[f"state.{i}"] for i, k in enumerate(STATES)})
            known = {k: serving[f"state.{i}"] for i, k in enumerate(STATES[:3])}
            self.pool["serving"].append(known | {27: other["state.2"]})
        self.config = json.loads((demo.FOLDER / "story-fixed" / "drafter" / "config.json").read_text())
        self.weights = load_file(demo.FOLDER / "drafter" / "model.safetensors")
        self.norm = self.tensors(self.imports["target"].record.tensors)["norm.weight"]
        self.embedding = self.tensors(self.imports["target"].record.tensors)["embed_tokens.weight"]

    def _read(self, story: str) -> list[Import]:
        return formats.read([demo.FOLDER / path for path in demo.RUNS[story]], self.folder)

    @staticmethod
    def _name(item: Import) -> str:
        return item.record.role if item.kind == "capture" else item.name if item.kind == "log" else item.kind

    def tensors(self, sha256: str) -> dict[str, torch.Tensor]:
        """The content of a canonical tensor file."""
        return load_file(self.folder / f"{sha256}.safetensors")

    def case(self) -> Case:
        """The healthy run."""
        both = {
            role: [
                Made(ids, mask if role == "training" else None, [pool[k] for k in STATES[:size]])
                for ids, mask, pool in zip(self.ids, self.masks, self.pool[role], strict=True)
            ]
            for role, size in (("training", 4), ("serving", 3))
        }
        labels: dict[str, list[int | None]] = {"training": list(STATES), "serving": [None] * 3}
        aux: dict[str, tuple[int, ...] | None] = {"training": (0, 1, 2), "serving": (0, 1, 2)}
        return Case(**both, config=copy.deepcopy(self.config), weights=dict(self.weights), labels=labels, aux=aux,
                    settings=dict(demo.SETTINGS), log="demo")  # fmt: skip

    # ---- writing

    def diagnose(self, case: Case) -> dict[str, Any]:
        """The `diagnose` document of a case."""
        found = [self._drafter(case), self.imports["target"]]
        found += [self._capture(case, role) for role in ("training", "serving")]
        whole = Run("case", "", tuple(found), case.settings)
        kept = [item for item in found if self._name(item) not in case.without]
        run = replace(whole, imports=(*kept, *self._logs(case, whole)))
        made = self._payload(payloads.diagnose(run, {}))
        answer = tasks.run(made)
        self.known |= {part.key: part.document for part in answer.parts}
        return answer.document

    def _payload(self, made: dict[str, Any]) -> dict[str, Any]:
        named = [item for name, item in made["imports"].items() if name != "logs"]
        paths = {sha: str(self.folder / f"{sha}.safetensors") for item in named for sha in item["tensors"]}
        return {**made, "paths": paths, "known": self.known}

    def _capture(self, case: Case, role: str) -> Import:
        texts = [self._text(index, made) for index, made in enumerate(getattr(case, role))]
        like, first = self.imports[role].record, getattr(case, role)[0].states[0]
        record: Capture = replace(
            like, sequences=tuple(texts), states=tuple(case.labels[role]), aux=case.aux[role],
            width=first.shape[1], dtype=str(first.dtype).removeprefix("torch."),
            last=like.last if len(case.labels[role]) == len(STATES) else "none",
        )  # fmt: skip
        return self._import("capture", role, record, tuple(dict.fromkeys(text.tensors for text in texts)))

    def _text(self, index: int, made: Made) -> Text:
        entries = [entry("token_ids", made.ids)]
        entries += [entry("loss_mask", made.mask)] if made.mask is not None else []
        entries += [entry(f"state.{slot}", state.contiguous()) for slot, state in enumerate(made.states)]
        name = write(self.folder, entries)
        counted = None if made.mask is None else int(made.mask.sum())
        return Text(f"text_{index}", len(made.states[0]), name, name, counted)

    def _drafter(self, case: Case) -> Import:
        made = drafters.convert(case.config, case.weights)
        name = write(self.folder, [entry(key, value) for key, value in made.tensors.items()])
        return replace(
            self._import("drafter", "drafter", replace(made.record, tensors=name), (name,)),
            inferred=made.inferred, problems=made.problems,
        )  # fmt: skip

    def _import(self, kind: Any, name: str, record: Any, tensors: tuple[str, ...]) -> Import:
        made = Import(kind, name, "", (), record, tensors=tensors)
        return replace(made, sha256=formats.identity(made))

    # ---- logs

    def _logs(self, case: Case, run: Run) -> list[Import]:
        if case.log is None:
            return []
        if case.log == "demo":
            return [self.imports[name] for name in ("metrics_after.txt", "responses.jsonl", "server.log")]
        return [self.log(case.log(self.accepted(run)))]

    def log(self, text: str) -> Import:
        """The text of a server's log as an import."""
        path = self.folder / "server.log"
        path.write_text(text)
        parsed = logs.parse([path], logs.sniff(text.encode(), path.name))
        source = Source(path.name, len(text), str(hash(text)))
        made = Import("log", path.name, "", (source,), parsed.log, parsed.inferred, parsed.problems)
        return replace(made, sha256=formats.identity(made))

    def accepted(self, run: Run) -> np.ndarray:
        """num_accepted of the rounds that a right engine would have had on the run's serving features (K = 4)."""
        made = self._payload(payloads.replay(run, {"capture": "serving"}))
        if made["key"] not in self.rows:
            answer = tasks.run(made)
            rows = answer.frames["replay_row"]
            self.rows[made["key"]] = rows["num_accepted"][rows["visited"]].to_numpy()
            self.known[answer.key] = answer.document
        return self.rows[made["key"]]
