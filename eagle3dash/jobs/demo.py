"""The demo: two real runs, story-as-served and story-fixed (data/demo, whose README says how they were made)."""

from __future__ import annotations

from pathlib import Path

from eagle3dash.jobs.imports import bring_in
from eagle3dash.records import Progress, no_progress
from eagle3dash.store import Store

FOLDER = Path(__file__).parents[2] / "data" / "demo"
SURVIVAL = [0.479, 0.262, 0.150, 0.094]  # held-out accuracy at the end of training, per row (data/demo/README.md)
SETTINGS = {"expected": SURVIVAL, "expected_kind": "cumulative"}
RUNS = {
    "story-as-served": ("drafter", "training", "target", "story-as-served/serving", "story-as-served/server"),
    "story-fixed": (
        "drafter/model.safetensors",
        "story-fixed/drafter/config.json",
        "training",
        "target",
        "story-fixed/serving",
        "story-fixed/server",
    ),
}


def load(store: Store, progress: Progress = no_progress) -> list[str]:
    """Brings the demo's runs in and returns their names. Those there already are left as they are."""
    there = {run.name for run in store.runs() if run.settings}  # without them a load was broken off
    for number, (name, paths) in enumerate(RUNS.items()):
        if name not in there:
            progress(number, len(RUNS), f"loading {name}")
            bring_in(store, [FOLDER / path for path in paths], name)
            store.update_run(name, settings=SETTINGS, tags=["demo"], notes=NOTES[name])
    return list(RUNS)


def load_into_empty(store: Store) -> list[str]:
    """The same for a store without any runs; does nothing to another."""
    return [] if store.runs() else load(store)


NOTES = {
    "story-as-served": "The drafter as its config says, [2, 15, 27]: what the founding story looked like from outside.",
    "story-fixed": "The same weights with the config's layer ids corrected to [0, 2, 15].",
}
