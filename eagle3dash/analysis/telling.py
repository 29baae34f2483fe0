"""What the rows of a `changes` document say, in sentences and in columns: for captions, reports, the terminal.

Takes rows as `analysis.changes.ranked` makes them; computes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eagle3dash.analysis.changes import BASELINE, Row
from eagle3dash.analysis.wording import number, signed, spread

MEANS = {  # what a change sets -> what that is
    "residual_norm": "norm_before_residual: whether the residual starts after hidden_norm or before it",
    "feedback_norm": "norm_output: whether the next step is fed the state after the last norm or before it",
    "double_norm": "the output of fc passes input_layernorm and hidden_norm (ModelOpt), or hidden_norm alone (the others)",
    "head_norm": "the norm before lm_head, which every engine applies",
    "input_norm": "norm_before_fc: one norm over all that fc reads",
    "fc_norm": "fc_norm: a norm for each of the states that fc reads",
    "qk_norm": "the norms of queries and keys of a qwen3 layer, which some engines drop",
    "attention_bias": "the biases of q, k and v, which some engines drop",
    "mlp_bias": "the biases of the MLP, which some engines drop",
    "fc_bias": "the bias of fc, which some engines drop",
    "rope": "RoPE: its base, scaling or pairing, which engines may read from another field of the config",
    "d2t": "d2t, the map from draft ids to target ids (target id = i + d2t[i])",
    "embedding": "the target's table in place of the drafter's own",
    "head": "the target's rows in place of the drafter's own lm_head",
    "states": "other states of the target, or another order, fed to fc",
    "lag": "features of another token than training pairs with the embedding",
    "dtype": "features rounded before they are fed",
    "scales": "features multiplied back to the size they have in training",
    "normed": "features after the target's last norm in place of the residual stream",
}
INTERVALS = (
    "Whiskers: 95 %, of what a change keeps or adds on the same rows. Unchanged has none: its own interval, {own}, says "
    "how much texts differ"
)
COLUMNS = (
    "low, high: 95 %, against unchanged on the same rows (of unchanged: its own); likelier: nats a row by which the text's "
    "own tokens become likelier at the first step"
)


def means(row: Row) -> str:
    """What a change is, and which readings of public code come to the same."""
    told = "; ".join(MEANS[name] for name in row["sets"] if name in MEANS)
    same = f"the same as: {', '.join(row['readings'])}" if row["readings"] else ""
    return "; ".join(part for part in (told, same) if part)


def base_of(rows: Sequence[Row]) -> Row | None:
    """The drafter as it is."""
    return next((row for row in rows if row["family"] == BASELINE), None)


def told(rows: Sequence[Row], role: str) -> tuple[str, ...]:
    """Sentences on all rows of one capture: unchanged, the best single change and the best pair, what likelihood tells
    apart, what was not tried."""
    base = base_of(rows)
    if base is None:
        return ("Nothing was tried.",)
    parts = (_start(rows, base, role), best(rows), _apart(rows), _not_tried(rows, role))
    return tuple(part for part in parts if part)


def intervals(rows: Sequence[Row]) -> str:
    """How the intervals of these rows are to be read."""
    base = base_of(rows)
    return "" if base is None else INTERVALS.format(own=spread(base["low"], base["high"])) + "."


def _start(rows: Sequence[Row], base: Row, role: str) -> str:
    known = f"{number(base['row_accept_length'])} tokens per row"
    if role == "serving":
        return f"On what the server fed, the drafter gives {known} unchanged."
    states = ", ".join(map(str, base["states"]))
    marked = [row for row in rows if row["marks"] and row is not base]
    others = "".join(f"; {row['name']} give {number(row['row_accept_length'])}" for row in marked)
    return f"On {role} features the drafter gives {known} unchanged, with states {states}{others}."


def best(rows: Sequence[Row]) -> str:
    """The best single change and the best pair, with what they gain; or that none gains."""
    single, pair = (next((row for row in rows if row["best"] == which), None) for which in ("single", "pair"))
    gain = [row for row in (single, pair) if row is not None and row["clear"]]
    if not gain:
        known = [(kind, row) for kind, row in (("single change", single), ("pair", pair)) if row is not None]
        near = ", ".join(f"the best {kind}, {row['name']}, gives {_by(row)}" for kind, row in known)
        return f"No {' and no '.join(kind for kind, _ in known)} gains beyond doubt: {near}." if known else ""
    first = f"Best single change: {_gains(single)}" if single in gain else "No single change gains beyond doubt"
    ahead = single not in gain or (pair in gain and pair["row_accept_length"] > single["row_accept_length"])
    if pair in gain and ahead:
        return f"{first}. Best pair: {_gains(pair)}{' on top of ' + pair['on'][0] if pair['on'] else ''}."
    stacked = any(row["on"] for row in rows)
    return f"{first}. No second change gains on top of it." if stacked else f"{first}."


def _gains(row: Row) -> str:
    return f"{row['name']} with {number(row['row_accept_length'])}, {_by(row)}"


def _by(row: Row) -> str:
    tokens = f"{signed(row['difference'])} tokens per row"
    if row["difference_low"] is not None:
        tokens += f" (95 %: {signed(row['difference_low'])} to {signed(row['difference_high'])})"
    if row["outcome"] != "likelier":
        return tokens
    return f"{tokens}; likelihood decides: the text's own tokens become likelier by {number(row['likelier'], 3)} nats a row"


def _apart(rows: Sequence[Row]) -> str:
    """Changes that accept as many tokens and are told apart by likelihood."""
    found = [row for row in rows if row["outcome"] == "less likely" and not row["on"]]
    if not found:
        return ""
    first = min(found, key=lambda row: (row["family"] != "states", len(row["sets"]), -row["row_accept_length"]))
    more = f", and so do {len(found) - 1} more" if len(found) > 1 else ""
    by = number(-first["likelier"], 2)
    return (
        f"With {first['name']} as many tokens are accepted within chance, but the text's own tokens become less likely "
        f"by {by} nats a row{more}."
    )


def _not_tried(rows: Sequence[Row], role: str) -> str:
    if any(row["family"] == "states" for row in rows):
        return ""
    if role == "serving":
        return "Other states and orders of blocks are not tried here: comparing the features of both captures tells them."
    return "Other states were not tried."


def columns(row: Row) -> dict[str, Any]:
    """A row as plain values by column, for tables."""
    names = ("row_accept_length", "low", "high", "difference", "difference_low", "difference_high")
    return {
        "change": row["name"],
        "outcome": row["outcome"],
        **{name: row[name] for name in names},
        "likelier": row["likelier"],
        "likelier_low": row["likelier_low"],
        "likelier_high": row["likelier_high"],
        "accept_length": row["accept_length"],
        "rows": row["rows"],
        "exact": row["exact"],
        "family": row["family"],
        "what it is": means(row),
    }
