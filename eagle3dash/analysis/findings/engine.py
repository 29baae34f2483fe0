"""The engine loses what the features would give. Rests on the replay of serving features and on what was served.

A loss is stated when it exceeds the interval of the difference (the two are of different texts); a large one within it is a
warning that asks for the same texts. An error needs a quarter of the accepted draft tokens lost.
"""

from __future__ import annotations

from typing import Any

from eagle3dash.analysis.findings import fixes, log_fixes
from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.told import accept_lengths
from eagle3dash.records import Finding, Gap, Severity

LOSS, SEVERE = 0.15, 0.25  # share of the accepted draft tokens
TEXTS = 4  # texts that a replay must hold: one text may be far easier than the server's traffic
FEW = 200  # rounds that reached step 1, below which later steps tell nothing
LATER = 0.6  # later acceptance served / replayed
CLIFF, HIGH = 0.4, 0.3  # acceptance of a step / of the worst before it; and how good the one just before must be
SAME_START = 0.85  # step 0 as good as in the replay


def engine_loss(e: Evidence) -> list[Finding | Gap]:
    """Replay on serving features well above what was served."""
    found = e.engine_loss
    if found is None or found.share < LOSS or found.before.value - 1.0 < 0.1:
        return []
    if not found.shown and found.share < 2 * LOSS:
        return []
    many = many_texts(e)
    severity: Severity = "error" if found.shown and many and found.share >= SEVERE and not sampled(e) else "warning"
    title = f"The engine loses {found.share:.0%} of the drafted tokens that its own features would give"
    if not found.shown or not many:
        title += ", as far as so few texts tell"
    evidence = {"lost_share": found.share, "temperature": _temperature(e), "source": e.served["label"], **accept_lengths(e)}
    return [Finding("engine-loss", severity, title, evidence, fixes.ENGINE)]


def later_steps_loss(e: Evidence) -> list[Finding | Gap]:
    """Step 0 as in the replay, later steps far below: the state fed back differs."""
    replayed, served = (e.replays.get("serving") or {}).get("survival"), e.served["survival"]
    if not _comparable(replayed, served, e.served["rounds"]) or served[0] < SAME_START * replayed[0]:
        return []
    later = [sum(part[1:]) / part[0] for part in (replayed, served[: len(replayed)])]
    if later[0] < 0.2 or later[1] >= LATER * later[0]:
        return []
    title = f"Step 0 is accepted as in the replay ({served[0]:.0%}), later steps are not"
    evidence = {"served_survival": served, "replayed_survival": replayed, "rounds": e.served["rounds"], **accept_lengths(e)}
    shown = e.engine_loss is not None and e.engine_loss.share >= LOSS
    return [Finding("later-steps-loss", "error" if shown and not sampled(e) else "warning", title, evidence, fixes.LATER)]


def position_cliff(e: Evidence) -> list[Finding | Gap]:
    """One step accepts far less than all before it, and the replay's does not."""
    served, rounds = e.served["alpha"], e.served["rounds"]
    replayed = (e.replays.get("serving") or e.replays.get("training") or {}).get("alpha") or []
    reached = [rounds, *(rounds * s for s in e.served["survival"])] if served and rounds else []
    for step in range(1, len(served or ())):
        before, here = served[step - 1], served[step]
        if None in (before, here) or not reached or reached[step] < FEW or before < HIGH:
            continue
        if here >= CLIFF * min(served[:step]):
            continue
        own = replayed[step] if step < len(replayed) else None
        if own is not None and here >= CLIFF * own:
            continue
        title = f"Acceptance falls off at position {step}: {here:.0%} after {before:.0%}"
        if step == 1 and all(later is not None and later < CLIFF for later in served[1:]):
            title = f"Only the first drafted token is accepted ({before:.0%}); of the later ones {here:.0%} and less"
        evidence = {"alpha": served, "replayed_alpha": replayed or None, "rounds": rounds}
        fix = (fixes.LATER if step == 1 else fixes.CLIFF) + (log_fixes.UNDECIDED if own is None else "")
        return [Finding("position-cliff", "warning", title, evidence, fix)]
    if not reached or reached[0] < FEW:
        return [Gap("position-cliff", f"add a log with acceptance by position over {FEW} rounds or more")]
    return []


def many_texts(e: Evidence) -> bool:
    """The serving replay is of enough texts to stand for the server's traffic."""
    return e.replays["serving"].get("texts", TEXTS) >= TEXTS


def _comparable(replayed: Any, served: Any, rounds: int | None) -> bool:
    if not replayed or not served or None in replayed or len(served) < len(replayed) or not rounds:
        return False
    return replayed[0] > 0 and served[0] * rounds >= FEW


def _temperature(e: Evidence) -> float | None:
    found = e.settings.get("temperature", e.served["settings"].get("temperature"))
    return None if found is None else float(found)


def sampled(e: Evidence) -> bool:
    """Replays are greedy: at a temperature some loss is expected."""
    return bool(_temperature(e))
