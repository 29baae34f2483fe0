"""What every dump layout becomes, and the few steps that all layouts share.

Knows shapes only: S tokens, states of width Ht, a concatenation of n states [S, n*Ht], a stack [S, n, Ht].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch

from eagle3dash.errors import BadInput
from eagle3dash.formats.containers import Leaf
from eagle3dash.records import Inferred, Role

TOKENS = ("raw_token_ids", "input_ids", "token_ids", "tokens", "prompt_token_ids")  # beside raw ids, others are shifted
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.uint8)
FLOATS = (torch.bfloat16, torch.float16, torch.float32, torch.float64)


@dataclass(frozen=True)
class Beside:
    """What is known from outside the file: its name, Ht and A of a drafter, states named by a file next to it."""

    name: str
    width: int | None = None
    num_aux: int | None = None
    states: tuple[int, ...] | None = None
    states_why: str = ""
    dataset: bool = False  # an Arrow data set lies in the folder or the one above it


@dataclass(frozen=True)
class Slot:
    """One state of every token: `leaf` [S, Ht], or slice `index` of [S, n, Ht], or columns a..b of [S, n*Ht]."""

    leaf: Leaf
    index: int | None = None
    columns: tuple[int, int] | None = None

    @property
    def width(self) -> int:
        return self.columns[1] - self.columns[0] if self.columns else self.leaf.shape[-1]

    def rows(self, a: int, b: int) -> torch.Tensor:
        """[b-a, Ht]"""
        block = self.leaf.rows(a, b)
        if self.index is not None:
            block = block[:, self.index]
        return block[:, slice(*self.columns)] if self.columns else block


@dataclass(frozen=True)
class Dump:
    """One sequence. `aux`: slots that the tool's own training or serving feeds to fc; `last`: what the slot after them
    holds."""

    format: str
    tokens: Leaf  # [S] or [S+1]
    slots: tuple[Slot, ...]
    loss_mask: Leaf | None = None
    aux: tuple[int, ...] | None = None
    last: Literal["pre-norm", "post-norm", "none"] = "none"
    role: Role | None = None
    part: str = ""  # which sequence of the file, where it holds several
    inferred: tuple[Inferred, ...] = ()

    @property
    def length(self) -> int:
        return self.slots[0].leaf.shape[0]  # S


def is_states(value: Any, dims: tuple[int, ...] = (2, 3)) -> bool:
    """A floating-point Leaf of that many dimensions."""
    return isinstance(value, Leaf) and value.dtype in FLOATS and len(value.shape) in dims


def token_ids(tree: dict[str, Any]) -> Leaf | None:
    """The token ids [S], from a tensor [S] or [1, S] or a list of numbers; None when there are none."""
    for key in TOKENS:
        if key in tree:
            return _row(tree[key], key)
    return None


def required_tokens(tree: dict[str, Any]) -> Leaf:
    """Like `token_ids`; raises BadInput when there are none."""
    found = token_ids(tree)
    if found is None:
        keys = ", ".join(str(key)[:30] for key in list(tree)[:6])
        raise BadInput(
            f"no token ids beside the hidden states (keys: {keys}). Save them too, as input_ids or token_ids [S]."
        )
    return found


def loss_mask(tree: dict[str, Any]) -> Leaf | None:
    """loss_mask [S], if the file has one."""
    return _row(tree["loss_mask"], "loss_mask") if tree.get("loss_mask") is not None else None


def _row(value: Any, key: str) -> Leaf:
    if isinstance(value, list) and value and all(type(item) is int for item in value):
        value = Leaf((len(value),), torch.int64, held=torch.tensor(value, dtype=torch.int64))
    if isinstance(value, Leaf) and len(value.shape) == 2 and value.shape[0] == 1:
        value = value.first()  # [1, S] -> [S]
    allowed = (*INTEGERS, torch.bool, *FLOATS) if key == "loss_mask" else INTEGERS
    if not isinstance(value, Leaf) or len(value.shape) != 1 or value.dtype not in allowed:
        what = f"{list(value.shape)} {value.dtype}" if isinstance(value, Leaf) else type(value).__name__
        raise BadInput(f"{key} is {what}; expected one row of whole numbers [S].")
    return value


def flat(leaf: Leaf, key: str) -> Leaf:
    """[S, W] or [1, S, W] -> [S, W]"""
    if len(leaf.shape) == 3:
        if leaf.shape[0] != 1:
            raise BadInput(f"{key} holds a batch of {leaf.shape[0]} sequences {list(leaf.shape)}; expected one, [1, S, W].")
        leaf = leaf.first()
    return leaf


def split(leaf: Leaf, key: str, width: int | None, why: str) -> tuple[tuple[Slot, ...], tuple[Inferred, ...]]:
    """[S, n*Ht] -> n slots of Ht. `width` is Ht where it is known (`why` says from what); else three states are assumed."""
    total = leaf.shape[-1]
    inferred: tuple[Inferred, ...] = ()
    if width is None:
        if total % 3:
            raise BadInput(
                f"{key} is {total} wide and nothing says how wide one state is. Import the drafter in the same call."
            )
        width = total // 3
        inferred = (
            Inferred("width", str(width), f"{key} is {total} wide; three aux states assumed, no drafter says otherwise"),
        )
    elif total % width:
        raise BadInput(f"wrong width: {key} is {total} wide, which is no multiple of {width} ({why}).")
    count = total // width
    return tuple(Slot(leaf, columns=(i * width, (i + 1) * width)) for i in range(count)), inferred
