"""One cell of the portability table, and what several of its rows ask of a record."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from eagle3dash.records import Drafter

KIMI_VOCAB, GPT_OSS_VOCAB = 163840, 201088


@dataclass(frozen=True)
class Proof:
    """What replays showed of a drafter's training, whatever its file says.

    states: those it was trained on (None: not shown). switches: those of `DrafterSpec` that the file gets wrong, with their
    right values. more: the file gets something else wrong.
    """

    states: tuple[int, ...] | None = None
    switches: dict[str, bool] = field(default_factory=dict)
    more: bool = False

    @property
    def told(self) -> str:
        """What "the same" means in a table: as the drafter was trained, or only as its file says."""
        return "as trained" if self.states and not self.more else "as the config says"


UNPROVED = Proof()


@dataclass(frozen=True)
class Cell:
    """What an engine does about one concern: the same as the drafter, the same if something holds, other, none.

    drafter: what the file is or was trained with, the same in every cell of a row.
    """

    outcome: Literal["same", "depends", "differs", "stops"]
    does: str
    change: str = ""
    drafter: str = ""

    @property
    def text(self) -> str:
        """What it does, as it stands in a table."""
        return self.does[:1].upper() + self.does[1:]

    @property
    def told(self) -> str:
        """What it does, as it stands alone."""
        return f"{self.does} ({self.drafter})" if self.drafter and self.outcome != "same" else self.does


def said(drafter: Drafter, path: str) -> Any:
    """The value of a field of the config; None where it is absent (or too long to have been kept whole)."""
    shown = next((field.value for field in drafter.fields if field.path == path), "null")
    try:
        return json.loads(shown)
    except ValueError:
        return None


def has(drafter: Drafter, path: str) -> bool:
    """Whether the config has this field, null or not."""
    return any(field.path == path for field in drafter.fields)


def family(drafter: Drafter) -> str:
    """What the file hints about the kind of its target, for the engines' rules by family."""
    parts = [drafter.target_name, said(drafter, "model_type"), *(said(drafter, "architectures") or [])]
    kimi = "kimi" if drafter.spec.vocab == KIMI_VOCAB else ""
    oss = "gpt_oss" if drafter.spec.vocab == GPT_OSS_VOCAB else ""
    return " ".join(str(part) for part in (*parts, kimi, oss) if part).lower()


def fed(states: tuple[Any, ...]) -> str:
    """HF[2, 15, 27]"""
    return f"HF[{', '.join(map(str, states))}]"
