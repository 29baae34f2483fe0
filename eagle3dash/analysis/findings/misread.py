"""The drafter's file says, or the server does, something else than training did: which single thing, shown by replays.

On training features a change that gains beyond doubt tells what the drafter was trained with (`changes` of the training
capture; of the serving capture where there is no other). On serving features, where the server accepts clearly less than
the replay, the change whose replay accepts as the server does tells what the server does differently. A wrong norm on the
state fed back hurts only steps after the first; anything else hurts the first step already.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from eagle3dash.analysis.findings import drafter_file, engine, fixes
from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.lengths import LOSS
from eagle3dash.formats.engines.states import SHOWN, engine_name
from eagle3dash.records import Finding, Gap, Severity

Row = dict[str, Any]
CAUSES = {  # what a change sets -> finding, and the thing in words
    "residual_norm": ("wrong-residual-norm", "another residual (norm_before_residual)"),
    "feedback_norm": ("wrong-feedback-norm", "another norm on the state that is fed back (norm_output)"),
    "head_norm": ("wrong-feedback-norm", "another norm before lm_head"),
    "double_norm": ("wrong-input-norm", "another norm on the hidden half (ModelOpt norms it twice)"),
    "input_norm": ("wrong-input-norm", "another norm before fc (norm_before_fc)"),
    "fc_norm": ("wrong-input-norm", "other norms on the aux states (fc_norm)"),
    "qk_norm": ("wrong-input-norm", "other norms on queries and keys"),
    "attention_bias": ("not-portable", "other attention biases"),
    "mlp_bias": ("not-portable", "other MLP biases"),
    "fc_bias": ("not-portable", "another fc bias"),
    "rope": ("wrong-rope", "another RoPE"),
    "d2t": ("wrong-vocab-map", "another draft vocabulary map"),
    "embedding": ("wrong-embedding", "other embeddings"),
    "head": ("wrong-lm-head", "another lm_head"),
    "lag": ("shifted-features", "features at another lag to the tokens"),
    "scales": ("scaled-features", "features at another scale"),
    "normed": ("normed-features", "features on the other side of the target's norm"),
}
FEEDS = ("lag", "scales", "normed", "dtype")  # changes of the features themselves
FITS = 2.5  # standard errors within which a replay's survival is the server's
CLUSTERED = 2.0  # neighbouring rounds are alike: variance of a survival over that of independent rounds
REST = 0.35  # share of a loss that a change may leave unexplained
EVENLY = [step / 50 for step in range(5, 51)]  # of each step's acceptance, what is kept
SLACK = 0.01  # two bf16 implementations


def check(identity: str) -> Callable[[Evidence], list[Finding | Gap]]:
    """The check of one finding id."""
    return lambda e: [finding for finding in (*trained_with(e), *served_with(e)) if finding.id == identity][:1]


def wrong_vocab_map(e: Evidence) -> list[Finding | Gap]:
    """What the map itself shows, and what a replay with another map shows."""
    played, stored = check("wrong-vocab-map")(e), drafter_file.wrong_vocab_map(e)
    if not played:
        return stored
    known = {**stored[0].evidence, **played[0].evidence} if stored else played[0].evidence
    return [Finding(played[0].id, played[0].severity, played[0].title, known, played[0].fix)]


def engine_loss(e: Evidence) -> list[Finding | Gap]:
    """The loss, with the changes whose replay accepts what the server accepts."""
    fits = [row["change"] for row in candidates(e)]
    found = engine.engine_loss(e)
    return [replace(each, evidence={**each.evidence, "replays_like_the_server": fits}) for each in found] if fits else found


# ---- what was it trained with --------------------------------------------------------------------------------------


def trained_with(e: Evidence) -> list[Finding]:
    """One finding for each thing that a replay must set differently from the file to accept most."""
    role = "training" if "training" in e.changes and not e.foreign else "serving"
    document = e.changes.get(role)
    best = document["best"] if document else None
    found: dict[str, Finding] = {}
    for row in steps(document) if best else ():
        for switch in row["sets"]:
            if switch in CAUSES and (role == "training" or not _told_by_features(e, switch)):
                finding = _trained(document, row, switch, role)
                found.setdefault(finding.id, finding)
    return list(found.values())


def steps(document: dict[str, Any]) -> list[Row]:
    """The rows of the best changes, in the order in which they were made. A stacked row on top of nothing is of other
    states, tried because nothing helped the first: where there is one, it is the one that gained."""
    names, rows, found = document["best"]["changes"], document["stacked"] + document["rows"], []
    for at, name in enumerate(names):
        found += [row for row in rows if row["change"] == name and row["on"] == names[:at]][:1]
    return found


def _trained(document: dict[str, Any], row: Row, switch: str, role: str) -> Finding:
    identity, words = CAUSES[switch]
    before, after = row["row_accept_length"] - row["difference"], row["row_accept_length"]
    base = f"with {' and '.join(row['on'])}" if row["on"] else _as_is(document, row)
    title = (
        f"The drafter was trained with {words}: {before:.2f} tokens per row on {role} features {base}, "
        f"{after:.2f} with {row['change']}{' as well' if row['on'] else ''}{_likelihood(row)}"
    )
    share = row["difference"] / max(after - 1.0, 1e-9)
    severity: Severity = "error" if share >= LOSS else "warning"
    evidence = {**_evidence(document, row, role), "tried": len(document["rows"]), "states": document["best"]["states"]}
    return Finding(identity, severity, title, evidence, fixes.MISREAD[switch])


def _as_is(document: dict[str, Any], row: Row) -> str:
    states = ", ".join(map(str, document["best"]["states"]))
    return "as its files say" if row in document["rows"] else f"with states {states}"


def _likelihood(row: Row) -> str:
    """Where tokens alone would not show it."""
    if row.get("likelier") is None or row["difference_low"] is None or row["difference_low"] > 0.0:
        return ""
    return f", and the text's own tokens are {math.exp(row['likelier']) - 1.0:.0%} likelier"


def _evidence(document: dict[str, Any], row: Row, role: str) -> dict[str, Any]:
    names = ("row_accept_length", "low", "high", "rows")
    known = {
        "capture": role,
        "change": row["change"],
        "sets": row["sets"],
        "before": {name: document["baseline"][name] for name in (*names, "row_survival")}
        if row in document["rows"]
        else {"row_accept_length": row["row_accept_length"] - row["difference"]},
        "after": {name: row[name] for name in (*names, "row_survival")},
        "difference": {"mean": row["difference"], "low": row["difference_low"], "high": row["difference_high"]},
    }
    if row.get("likelier") is not None:  # nats per row, step 0, of the text's own tokens
        known["log_likelihood_gain"] = {"mean": row["likelier"], "low": row["likelier_low"], "high": row["likelier_high"]}
    return known | {"on top of": row["on"]} if row["on"] else known


def _told_by_features(e: Evidence, switch: str) -> bool:
    """Whether the comparison of both captures tells it better."""
    return switch in FEEDS and e.features is not None and bool(e.features["aligned_tokens"])


# ---- what does the server do ---------------------------------------------------------------------------------------


def served_with(e: Evidence) -> list[Finding]:
    """The change whose replay on serving features accepts what the server accepts, where only one cause does."""
    found = candidates(e)
    if not found:
        return []
    named = f"as served by {SHOWN.get(engine_name(e.engine) or '', '')}"
    own = [row for row in found if named in row["readings"]]
    row = own[0] if own else found[0]
    causes = {CAUSES[switch][0] for each in found for switch in each["sets"]}
    if not own and (len(causes) > 1 or evenly_lost(e)):
        return []
    switch, loss = next(iter(row["sets"])), e.engine_loss
    identity, _ = CAUSES[switch]
    title = (
        f"The server accepts what a replay gives with {row['change']}: {row['accept_length']:.2f} tokens a round, served "
        f"{loss.after.value:.2f}, as its files say {loss.before.value:.2f}"
    )
    sure = (loss.shown and engine.many_texts(e)) or identity == "wrong-feedback-norm"  # step 0 is as replayed: same traffic
    severity: Severity = "error" if sure and not engine.sampled(e) else "warning"
    told = ("accept_length", "survival", "rounds")
    evidence = {
        "change": row["change"],
        "sets": row["sets"],
        "readings": row["readings"],
        "replay": {name: row[name] for name in told},
        "as its files say": {name: e.changes["serving"]["baseline"][name] for name in told},
        "served": {"accept_length": loss.after.value, "survival": e.served["survival"], "rounds": e.served["rounds"]},
        "also_fit": [each["change"] for each in found if each is not row],
    }
    return [Finding(identity, severity, title, evidence, fixes.MISREAD[switch])]


def candidates(e: Evidence) -> list[Row]:
    """Changes that turn the replay on serving features into what was served, the nearest first. None where the replay as
    it is fits, or loses nothing."""
    document, loss = e.changes.get("serving"), e.engine_loss
    if document is None or loss is None or loss.share < engine.LOSS or _off(document["baseline"], e) <= FITS:
        return []
    rows = [row for row in document["rows"] if row["sets"].keys() <= CAUSES.keys() and not set(FEEDS) & row["sets"].keys()]
    fits = [(off, row) for row in rows if (off := _off(row, e)) <= FITS and _accounts(row, e)]
    return [row for _, row in sorted(fits, key=lambda pair: (len(pair[1]["sets"]), pair[0]))]


def evenly_lost(e: Evidence) -> bool:
    """Whether what was served is the replay with every step accepted so many times less often: any engine may lose that
    way, and a drafter read a little wrongly looks the same."""
    base = e.changes["serving"]["baseline"]
    if None in base["survival"]:
        return False
    for kept in EVENLY:
        survived = [value * kept ** (step + 1) for step, value in enumerate(base["survival"])]
        if _off({**base, "survival": survived, "accept_length": 1.0 + sum(survived)}, e) <= FITS:
            return True
    return False


def _accounts(row: Row, e: Evidence) -> bool:
    """The change explains most of the loss, and no more than it."""
    loss = e.engine_loss
    return abs(row["accept_length"] - loss.after.value) <= REST * (loss.before.value - loss.after.value)


def _off(row: Row, e: Evidence) -> float:
    """The largest distance of a replay's survival (or its accept length) from the served one, in standard errors."""
    served, rounds = (e.served["survival"] or [])[: e.steps], e.served["rounds"] or 0
    replayed, count = row["survival"], row["rounds"]
    if row["accept_length"] is None or None in replayed or not rounds or not count:
        return math.inf
    if len(served) < e.steps:
        served, replayed = [(e.served_length.value - 1.0) / e.steps], [(row["accept_length"] - 1.0) / e.steps]
    return max(_apart(a, b, rounds, count) for a, b in zip(served, replayed, strict=True))


def _apart(a: float, b: float, n: int, m: int) -> float:
    pooled = min(max((a * n + b * m) / (n + m), 0.5 / (n + m)), 1.0)
    error = math.sqrt(CLUSTERED * pooled * (1 - pooled) * (1 / n + 1 / m))
    return max(abs(a - b) - SLACK, 0.0) / max(error, 1e-9)
