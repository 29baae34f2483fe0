"""Changes: the drafter run again over a capture with one thing changed at a time, then more on top of what gained.

On training features this tells what the drafter was trained with, on serving features what the server may do differently.
Faults stack, so a change that gains beyond doubt is kept, the states are chosen anew with it, and all others are tried
again on top of it. Each change is first tried on a sample of texts; only those that may gain are counted on every row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import perm
from typing import Any

import torch
from safetensors import safe_open

from eagle3dash.analysis import trials
from eagle3dash.analysis.acceptance import Tally, accept_length
from eagle3dash.analysis.changes import baseline_row, from_sweep
from eagle3dash.analysis.changes import document as document_of
from eagle3dash.analysis.sweep import as_good
from eagle3dash.analysis.trials import Stage, Trial
from eagle3dash.drafter.changes import Change, Parts, Surroundings, changes
from eagle3dash.drafter.model import borrowed, tensors_of
from eagle3dash.errors import Cancelled, Eagle3Error
from eagle3dash.jobs.answers import Answer
from eagle3dash.jobs.tasks import features, sweep
from eagle3dash.jobs.tasks.bench import Bench, Outcome, Wired, tallied
from eagle3dash.jobs.tasks.inputs import Inputs
from eagle3dash.jobs.tasks.parts import Gathering
from eagle3dash.records import Progress

MOST_STAGES = 3  # changes on top of each other
OTHERS = 3  # choices of states with which a dead drafter that nothing helps is tried
QUICK = 128  # counted rows of the first look at a capture of which nothing is in question
MOST_CHOICES = 120  # of states that are ranked anew: six states, three of them fed


class Search:
    """Stage after stage, each on top of the best of the one before.

    `choose`: whether states are in question. `served`: what the server accepts, where that is known. `guided`: the
    training capture says what the drafter was trained with, so this one is only asked what the server does.
    """

    def __init__(
        self, bench: Bench, labels: Sequence[Any], around: Surroundings, choose: bool, served: float | None, guided: bool
    ):
        self.bench, self.labels, self.around, self.choose = bench, list(labels), around, choose
        self.served, self.guided = served, guided
        self.stages: list[Stage] = []

    def run(self, wired: Wired, others: Sequence[tuple[int, ...]]) -> Wired:
        """The wiring with everything that gains beyond doubt."""
        first = wired
        stage, wired = self.stage(wired, self.around)
        length = accept_length(stage.baseline.counts.row_histogram) or 1.0
        for slots in others if wired is first and length - 1.0 < trials.ALIVE else ():
            dead, tried = self.stage(replace(first, slots=slots), self.around)
            if tried.on:
                self.stages.append(dead)
                wired = tried
                break
        while wired.on and len(wired.on) < MOST_STAGES and not self.guided:
            wired, before = self.rechosen(wired) if self.choose else wired, wired
            _, wired = self.stage(wired, replace(self.around, readings={}), keep=True)
            if len(wired.on) == len(before.on):
                break
        return wired

    def stage(self, wired: Wired, around: Surroundings, keep: bool = False) -> tuple[Stage, Wired]:
        """Every change on top of `wired`, and `wired` with the one that gains."""
        done = {name for change in wired.on for name in change.sets}
        tried = [change for change in changes(wired.parts, around) if not done & set(change.sets)]
        bench = self.bench
        as_is = dict(zip(bench.all, bench.outcomes(wired, bench.all, "it as it is"), strict=True))
        stage = Stage(wired.names, tallied(as_is.values(), bench.steps))
        by_name = {change.name: change for change in tried}
        some = bench.some(trials.SAMPLE_ROWS if self._asked(stage) else QUICK)
        bench.total += len(some) * len(tried)
        for change in tried:
            self._try(stage, wired.changed(change), as_is, some)
        for trial in trials.contenders(stage, self.served):
            stage.trials.remove(trial)
            self._try(stage, wired.changed(by_name[trial.told["change"]]), as_is, bench.all)
        if keep or not self.stages:
            self.stages.append(stage)
        best = trials.winner(stage)
        return stage, wired if best is None else wired.changed(by_name[best.told["change"]])

    def _asked(self, stage: Stage) -> bool:
        """Whether anything is in question here: the drafter itself, or a server that accepts less than the replay."""
        length = accept_length(stage.baseline.counts.histogram)
        known = self.served is not None and length is not None
        return not self.guided or (known and trials.falls_short(self.served, length))

    def _try(self, stage: Stage, wired: Wired, as_is: dict[int, Outcome], which: Sequence[int]) -> None:
        """Adds the trial of the last change of `wired`, of a sample only while it may gain. None where it can't be made."""
        bench, change, before = self.bench, wired.on[-1], len(stage.trials)
        pair = Tally(bench.steps), Tally(bench.steps)
        try:
            for index, outcome in zip(which, bench.outcomes(wired, which, change.name), strict=True):
                pair[0].add(*outcome)
                pair[1].add(*as_is[index])
                exact = bench.everything and pair[0].sequences == len(bench.all)
                stage.trials[before:] = [Trial(_told(change), *pair, exact)]
                if which is not bench.all and stage.trials[-1].lost:
                    break
        except Cancelled:
            raise
        except Eagle3Error:
            del stage.trials[before:]

    def rechosen(self, wired: Wired) -> Wired:
        """With the states that are clearly best now, where those are others."""
        if perm(len(self.labels), len(wired.slots)) > MOST_CHOICES:
            return wired
        found = self.bench.choices(wired, len(self.labels), self.bench.some(trials.SAMPLE_ROWS))
        order = sorted(found, key=lambda choice: -(found[choice].row_interval.mean or 0.0))
        best = found[order[0]]
        return replace(wired, slots=order[0]) if trials.clear(best, found[wired.slots]) else wired


def run(payload: dict[str, Any], progress: Progress, device: str) -> Answer:
    """The `changes` document (see `analysis.changes.document`); a sweep made on the way is a part."""
    args, inputs = payload["args"], Inputs(payload, device)
    gathering = Gathering(payload, {"sweep": sweep.run, "features": features.run}, progress, device)
    for name, part in payload["parts"].items():
        gathering.answer(name, part)
    swept, slots = gathering.documents.get("sweep"), tuple(args["slots"])
    rows = [row for row in (swept or {}).get("rows", ()) if row["row_accept_length"] is not None]
    slots = _base(rows, slots)
    bench = Bench(inputs, args["capture"], args["steps"], progress)
    around = Surroundings(
        readings=inputs.record("drafter").readings,
        norm=_norm(inputs),
        scales=_scales(gathering.documents.get("features"), slots),
        dtype=inputs.record(args["capture"]).dtype,
    )
    search = Search(bench, args["labels"], around, not _decided(rows), args["served"], args["guided"])
    first = Wired(_parts(inputs), slots)
    others = [tuple(row["slots"]) for row in rows[: OTHERS + 1] if tuple(row["slots"]) != slots][:OTHERS]
    best = search.run(first, others)
    progress(bench.total, bench.total, "changes tried")
    states = [args["labels"][slot] for slot in slots]
    document = document_of(args["capture"], states, args["steps"], search.stages, _best(bench, best, args["labels"]))
    document["rows"] = _sorted(document["rows"] + from_sweep(rows, states, args["steps"]))
    return Answer(payload["key"], "changes", args, document, parts=tuple(gathering.made))


def _base(rows: Sequence[Mapping[str, Any]], usual: tuple[int, ...]) -> tuple[int, ...]:
    """The states on which changes are tried: those the sweep found, unless the usual ones are as good."""
    if not rows or rows[0]["row_accept_length"] - 1.0 < trials.ALIVE:
        return usual
    able = [tuple(row["slots"]) for row in as_good(rows)]
    return usual if usual in able else able[0]


def _decided(rows: Sequence[Mapping[str, Any]]) -> bool:
    """The sweep names one choice of states, whatever else is wrong."""
    return bool(rows) and rows[0]["row_accept_length"] - 1.0 >= trials.ALIVE and len(as_good(rows)) == 1


def _best(bench: Bench, wired: Wired, labels: Sequence[Any]) -> dict[str, Any] | None:
    if not wired.on:
        return None
    tally = bench.tally(wired, bench.all, "the best of all")
    sets = {name: value for change in wired.on for name, value in _told(change)["sets"].items()}
    told = {"changes": list(wired.names), "sets": sets, "slots": list(wired.slots)}
    return {**told, "states": [labels[slot] for slot in wired.slots], **baseline_row(tally)}


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: -(row["difference"] or 0.0))


def _told(change: Change) -> dict[str, Any]:
    sets = {name: vars(value) if hasattr(value, "__dataclass_fields__") else value for name, value in change.sets.items()}
    return {"change": change.name, "family": change.family, "sets": sets, "readings": list(change.readings)}


def _parts(inputs: Inputs) -> Parts:
    drafter, target = inputs.record("drafter"), inputs.record("target")
    table, head = borrowed(target, inputs.path(target.tensors) if target else None)
    return Parts(drafter.spec, tensors_of(inputs.path(drafter.tensors)), table, head)


def _norm(inputs: Inputs) -> torch.Tensor | None:
    """The target's final norm, as wide as the states."""
    target, drafter = inputs.record("target"), inputs.record("drafter")
    if target is None or not target.has_norm or target.hidden != drafter.spec.target_hidden:
        return None
    with safe_open(inputs.path(target.tensors), "pt") as file:
        return file.get_tensor("norm.weight").float() + float(target.norm_plus_one)


def _scales(found: dict[str, Any] | None, slots: Sequence[int]) -> tuple[float, ...] | None:
    """Norm ratio of each fed slot to the training state it equals in direction; None where none differs."""
    cells = (found or {}).get("best_cells") or []
    ratios = [cells[slot]["norm_ratio"] if slot < len(cells) else None for slot in slots]
    if None in ratios or not ratios or all(abs(ratio - 1.0) < 0.02 for ratio in ratios):
        return None
    return tuple(ratios)
