"""What each serving slot holds, and whether that is what training fed: in words, for the Features page and its pictures.

The judgement is that of the diagnosis (`findings.slots`); here it is only put beside what training fed, and said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eagle3dash.analysis import breaks
from eagle3dash.analysis.difference import counted
from eagle3dash.analysis.features import ENOUGH
from eagle3dash.analysis.findings import slots

REPEATS, SHARE = 3, 0.01  # repeated rows that are no accident: so many, and so many of all
ENOUGH_TEXT = 0.9  # share of the tokens compared, below which it must be said
HOW = {  # the tests' words for what a slot is, for people
    "match": "equal",
    "noisy": "equal, with noise",
    "near": "beside it",
    "scaled": "another scale",
    "blocks": "blocks reordered",
    "residual": "without the stream",
    "output": "a layer's output",
    "normed": "after a norm",
    "raw": "before a norm",
    "channel": "weight a channel",
    "unknown": "like none",
}


@dataclass(frozen=True)
class Held:
    """One serving slot. `place`: its place in fc, None when it does not feed fc. `state`: what it holds, None when that is
    no captured state. `trained`: what training fed in its place. `repeated`: rows equal to the row before, 0 where that
    may be by chance. `how` and `numbers`: see `findings.slots`."""

    slot: int
    name: Any
    place: int | None
    state: Any
    trained: Any
    how: str
    lag: int
    repeated: int
    numbers: dict[str, Any]

    @property
    def faults(self) -> list[str]:
        """What is wrong with it besides the state being another one."""
        told = {
            "noisy": f"equal only to within {self.numbers.get('error') or 0:.1%}, more than two implementations differ by",
            "near": "no captured state (this one is the nearest)",
            "scaled": f"{self.numbers.get('weight') or 0:.3g} times as large as in training",
            "blocks": f"in another order of the blocks of its width ({_order(self.numbers.get('order') or ())})",
            "residual": "without the stream that the layer's output is added to",
            "output": "only what the layer adds, without the stream",
            "normed": "served after a norm",
            "raw": "served as it is, where training holds it after a norm",
            "channel": "multiplied by a weight on every channel, as a norm does",
            "unknown": "like none of the captured states, whatever stands between",
        }.get(self.how)
        out = [told] if told else []
        if self.lag:
            out.append(f"shifted by {self.lag:+d} token{'' if abs(self.lag) == 1 else 's'}")
        if self.numbers.get("break"):
            out.append(f"wrong {breaks.where(self.numbers['break'])}")
        if self.repeated:
            out.append(f"stuck: {self.repeated:,} rows repeat the row before")
        return out

    @property
    def right(self) -> bool:
        """The state that training fed in its place, as it is."""
        return self.how == "match" and not self.faults and (self.trained is None or self.state == self.trained)


def _order(order: Sequence[int]) -> str:
    few = list(order[:12])
    return ", ".join(map(str, few)) + (f", … ({len(order)} blocks)" if len(order) > len(few) else "")


def state_name(label: Any) -> str:
    """HF[15] for a known state; a slot whose state nobody knows keeps its own name, s1."""
    return "no captured state" if label is None else f"HF[{label}]" if isinstance(label, int) else str(label)


def enough(document: dict[str, Any]) -> bool:
    """Whether so many tokens are the same that something can be said of the states."""
    tests = document.get("forensics") or []
    return bool(tests) and all(each["rows"] >= ENOUGH for each in tests)


def held(document: dict[str, Any], fed: Sequence[int] | None = None, trained: Sequence[Any] | None = None) -> list[Held]:
    """Every serving slot of a `features` document. fed: the slots that feed fc, in order (None: all); trained: what
    training fed in their places. Empty where too few tokens are the same."""
    if not enough(document):
        return []
    every = range(len(document["serving_states"]))
    fed = list(every) if fed is None else [slot for slot in fed if slot in every]
    others = [slot for slot in every if slot not in fed]
    told = slots.identified(document, fed, trained) + slots.identified(document, others, None)
    found = []
    for slot, state, how, numbers in sorted(told, key=lambda each: each[0]):
        place = fed.index(slot) if slot in fed else None
        own = trained[place] if trained and place is not None and place < len(trained) else None
        name, lag, repeated = (document[key][slot] for key in ("serving_states", "slot_lags", "repeated_rows"))
        many = repeated >= max(REPEATS, SHARE * document["aligned_tokens"])
        found.append(Held(slot, name, place, state, own, how, lag, repeated if many else 0, numbers))
    return found


def verdict(
    document: dict[str, Any], found: Sequence[Held], trained: Sequence[Any] | None, because: str
) -> tuple[str, str]:
    """(error, warning, info or success; the answer to the page's question in a sentence or two).

    because: how it is known what training fed."""
    texts = _texts(document)
    if not found:
        few = "Too few tokens are the same in both captures."
        return "error", " ".join(
            ["It can't be said.", texts or few, *([_looks(document)] if document.get("behind") else [])]
        )
    fed = sorted((each for each in found if each.place is not None), key=lambda each: each.place or 0)
    serves = ", ".join(state_name(each.state) for each in fed)
    wrong = [f"slot {each.slot} ({state_name(each.state)}) is {_faults(each)}" for each in fed if each.faults]
    known = trained is not None and len(trained) == len(fed)
    same = known and [each.state for each in fed] == list(trained or ())
    feeds = f"Training fed {', '.join(map(state_name, trained or ()))} ({because})" if known else ""
    if same and not wrong:
        worst = max(each.numbers.get("error") or 0.0 for each in fed)
        sentence = f"Yes. {feeds}, and the server feeds the same states, equal to within {worst:.1%}"
        return (
            "warning" if texts and texts[0] != "(" else "success"
        ), f"{sentence}: what two implementations differ by. {texts}".strip()
    if not known:
        level = "warning" if wrong or texts else "info"
        sentence = f"What training fed is not known here. The server feeds {serves}"
        return level, " ".join(part for part in (f"{sentence}{_and(wrong)}.", texts) if part)
    if same:
        sentence = f"No. {feeds}. The server feeds the same states, but {'; '.join(_shared(fed, wrong))}."
    else:
        sentence = f"No. {feeds}; the server feeds {serves}{_and(wrong)}."
    return "error", f"{sentence} {texts}".strip()


def _and(wrong: Sequence[str]) -> str:
    return f"; besides, {'; '.join(wrong)}" if wrong else ""


def _faults(each: Held) -> str:
    return " and ".join(each.faults)


def _shared(fed: Sequence[Held], wrong: list[str]) -> list[str]:
    """One sentence for all slots where they share their faults."""
    told = {_faults(each) for each in fed}
    if len(told) == 1 and len(fed) > 1:
        return [f"every slot is {told.pop()}"]
    if all(each.how == "noisy" and len(each.faults) == 1 for each in fed):
        errors = ", ".join(f"{each.numbers['error']:.1%} (slot {each.slot})" for each in fed)
        return [f"equal only to within {errors}: more than two implementations differ by"]
    return wrong


def _texts(document: dict[str, Any]) -> str:
    """What must be said of the texts; empty where they are the same, or part in the answers only."""
    told = document.get("alignment") or {}
    first = told.get("first_difference")
    if not first or told["aligned_tokens"] >= ENOUGH_TEXT * max(1, told["serving_tokens"]):
        return ""
    same, total = told["aligned_tokens"], told["serving_tokens"]
    share = f"only {same:,} of {total:,}" if same else f"none of the {total:,}"
    parts = f"{share} serving tokens stand behind the same text"
    if first["what"] == "answer" and document["aligned_tokens"]:
        return f"(The answers part ways, which is no fault: {parts}.)"
    few = "" if enough(document) else ", too few to compare"
    return f"The captures hold different texts ({where(first)}): {parts}{few}."


def _looks(document: dict[str, Any]) -> str:
    """Which states the slots are nearest to, by rows on another prefix."""
    found = document["behind"]
    near = ", ".join("no clear state" if slot["state"] is None else state_name(slot["state"]) for slot in found["slots"])
    return f"By {found['tokens']:,} rows of the same tokens on another prefix, the slots look like {near}."


def where(first: dict[str, Any]) -> str:
    """A first difference in a few words: what it is, and how many tokens where it needs saying."""
    what = first["what"]
    if what and "first token" in what:
        return what
    return f"{what}: {counted(first)}" if what else counted(first)


# ---- the evidence of findings --------------------------------------------------------------------------------------

COLUMNS = {  # a number of a slot, by the name that findings give it -> column, digits or percent
    "relative_error": ("relative error", ".4f"),
    "error": ("error left", ".4f"),
    "cosine": ("cosine", ".4f"),
    "norm_ratio": ("norm ratio", ".4f"),
    "weight": ("scale", ".4g"),
    "share": ("rows right", ".1%"),
    "before": ("error before", ".4f"),
    "after": ("error after", ".4f"),
}


SLOTS = ("slots", "by_slot")  # evidence that is about slots


def rows_of(rows: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """The slots of a finding's evidence as a table for people: columns with names, inner numbers of the tests left out."""
    out = []
    for row in rows:
        pattern = row if "kind" in row else row.get("break")
        line = {"slot": str(row["slot"])}
        if "how" in row:
            line |= {"holds": state_name(row.get("state")), "how": HOW.get(row["how"], row["how"])}
        for name, (column, digits) in COLUMNS.items():
            if name == "share" and "kind" in row:  # of a pattern: the share that is wrong
                continue
            if name in row:
                line[column] = "no data" if row[name] is None else format(row[name], digits)
        if row.get("order"):
            line["block order"] = _order(row["order"])
        if pattern:
            line["wrong rows"] = breaks.where(pattern)
        out.append(line)
    names = list(dict.fromkeys(name for line in out for name in line))
    return [{name: line.get(name, "") for name in names} for line in out]
