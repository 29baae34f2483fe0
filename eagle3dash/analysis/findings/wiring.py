"""Which states the drafter was trained on, which the server feeds, which the config declares. Each with how it is known.

Trained: the sweep's best combination, unless the one that the capture's format (or the config) names is as good within the
intervals; of those that accept alike, the one that makes the text's own tokens likeliest. Served: for each slot that feeds
fc, the training state it equals, whatever stands between (scale, norm, ..).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eagle3dash.analysis.features import ENOUGH
from eagle3dash.analysis.findings import slots
from eagle3dash.analysis.findings.lengths import of_row
from eagle3dash.analysis.sweep import as_good
from eagle3dash.formats.engines.states import engine_name, states_of

if TYPE_CHECKING:
    from eagle3dash.analysis.findings.evidence import Evidence, Label

ALIVE = 0.1  # accept length - 1 below this: no combination works, so none can be called the trained one


@dataclass(frozen=True)
class Slot:
    """A serving slot: the training state it equals (None: none of them), and how: match, noisy, scaled, normed, channel,
    residual, output (of a layer, without the stream), blocks, near (another layer beside that state) or unknown.
    `numbers`: the test's (see `slots`)."""

    slot: int
    state: Label | None
    how: str
    numbers: dict[str, Any]


@dataclass(frozen=True)
class Wiring:
    """Triples as labels of the training capture. `proved`: the sweep tells `trained` apart from `declared`, and no
    serving replay shows that others than the declared are fed."""

    trained: tuple[Label, ...] | None
    trained_why: str
    trained_replay: dict[str, Any] | None
    declared: tuple[Label, ...] | None
    declared_row: dict[str, Any] | None
    proved: bool
    slots: tuple[Slot, ...]
    served: tuple[Label | None, ...] | None
    served_why: str


def wiring(e: Evidence) -> Wiring:
    """Puts together what replays, sweep, features, config and log say."""
    rows = [row for row in (e.sweep or {}).get("rows", []) if row["row_accept_length"] is not None]
    declared = _declared(e)
    trained, why = _trained(rows, e.replays, declared)
    if e.foreign:
        trained, why = None, "no combination of the training capture's states does what serving features do"
    if e.correction:
        trained = tuple(e.correction["states"])
        why = f"the best on training features, with {', '.join(e.correction['changes'])}"
    fed = served_slots(e, trained)
    served, served_why = _served(e, fed)
    row = next((r for r in rows if declared is not None and tuple(r["states"]) == declared), None)
    best = next((r for r in rows if trained is not None and tuple(r["states"]) == trained), None)
    able = as_good(rows)
    proved = bool(row and best and row is not best and best in able and row not in able) and not _refuted(row, e.replays)
    return Wiring(trained, why, _replay_of(trained, e.replays, best), declared, row, proved, fed, served, served_why)


def _trained(
    rows: Sequence[dict[str, Any]], replays: dict[str, dict[str, Any]], declared: tuple[Label, ...] | None
) -> tuple[tuple[Label, ...] | None, str]:
    usual = replays.get("training")
    named = tuple(usual["states"]) if usual else None
    if not rows:
        alive = usual is not None and (usual["row_accept_length"] or 1.0) - 1.0 >= ALIVE
        return (named, "as the training capture's format names them") if alive else (None, "not known")
    if rows[0]["row_accept_length"] - 1.0 < ALIVE:
        return None, "no combination of the captured states works"
    able, leader = [tuple(row["states"]) for row in as_good(rows)], tuple(rows[0]["states"])
    where = f"of {len(rows)} combinations on training features"
    for choice, why in ((named, "the training capture's format"), (declared, "the config")):
        if choice in able:
            return choice, f"{_rank(choice, leader, able)} {where}, and named by {why}"
    return able[0], f"{_rank(able[0], leader, able)} {where}"


def _refuted(declared: dict[str, Any], replays: dict[str, dict[str, Any]]) -> bool:
    """What the server feeds makes the drafter accept clearly more than the declared states do: it does not feed them."""
    fed = replays.get("serving")
    return fed is not None and None not in (fed["row_low"], declared["high"]) and fed["row_low"] > declared["high"]


def _rank(choice: tuple[Label, ...], leader: tuple[Label, ...], able: Sequence[tuple[Label, ...]]) -> str:
    if choice == leader:
        return "the best"
    return "as good as the best" if leader in able else "as good as the best in accepted tokens and clearly likelier,"


def _replay_of(
    trained: tuple[Label, ...] | None, replays: dict[str, dict[str, Any]], row: dict[str, Any] | None
) -> dict[str, Any] | None:
    for name in ("training", "best"):
        if name in replays and trained is not None and tuple(replays[name]["states"]) == trained:
            return replays[name]
    if row is not None:
        return of_row(row)
    return replays.get("training")


def _declared(e: Evidence) -> tuple[Label, ...] | None:
    """The config's ids as this run's engine reads them, where that is known; else as the flavour of the file means them."""
    drafter = e.spec_of
    logged = next((log.settings["aux_layers"] for log in reversed(e.log_records) if log.settings.get("aux_layers")), None)
    if logged and engine_name(e.engine) == "vllm":
        return tuple(logged)  # vLLM prints boundaries
    if drafter is None or drafter.layer_ids is None:
        return tuple(drafter.states) if drafter is not None and drafter.states else None
    if e.engine is not None:
        nested = "eagle_config" in (drafter.layer_ids_at or "")
        target = e.target.record if e.target else None
        family = " ".join(str(part) for part in (drafter.target_name, target and target.name, e.model) if part)
        layers = target.layers if target else None
        read = states_of(drafter.layer_ids, e.engine, e.version, nested=nested, family=family, layers=layers)
        if read is not None:
            return read
    return tuple(drafter.states) if drafter.states else None


# ---- served --------------------------------------------------------------------------------------------------------


def served_slots(e: Evidence, trained: tuple[Label, ...] | None) -> tuple[Slot, ...]:
    """Every slot of the serving capture that feeds fc, identified by its features."""
    found = e.features
    if found is None or any(each["rows"] < ENOUGH for each in found.get("forensics") or [{"rows": 0}]):
        return ()
    return tuple(Slot(*each) for each in slots.identified(found, fed_slots(e), trained))


def fed_slots(e: Evidence) -> list[int]:
    """The serving slots that feed fc, in order."""
    replay, capture = e.replays.get("serving"), e.capture("serving")
    if replay is not None and replay.get("slots") is not None:
        return list(replay["slots"])
    if capture is not None and capture.aux is not None:
        return list(capture.aux)
    return list(range(len(e.features["best_cells"]))) if e.features else []


def _served(e: Evidence, slots: tuple[Slot, ...]) -> tuple[tuple[Label | None, ...] | None, str]:
    if slots:
        return tuple(slot.state for slot in slots), f"by features, over {e.features['aligned_tokens']} aligned tokens"
    capture = e.capture("serving")
    if capture is not None:
        states = tuple(capture.states[slot] for slot in fed_slots(e))
        if states and None not in states:
            return states, "as the serving capture says"
    return None, "not known"
