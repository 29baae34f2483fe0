"""States of the target: captures of some texts, and the parts of the target that a drafter may borrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["training", "serving"]


@dataclass(frozen=True)
class Sequence:
    """One text of a capture. `tensors`: file with token_ids [S] i64, optional loss_mask [S] u8, state.{slot} [S, Ht]."""

    name: str
    tokens: int  # S
    tensors: str
    token_sha256: str
    loss_tokens: int | None = None  # rows with loss_mask = 1; None: the file carries no mask


@dataclass(frozen=True)
class Capture:
    """Target states of some texts. Slot i holds HF[states[i]]; None where the file cannot say which state it is.

    `aux`: the slots that the file's own convention feeds to fc, in order; None where the convention does not say.
    `last`: what the slot outside `aux` holds: the target's last state before or after its final norm, or none.
    """

    format: str
    width: int  # Ht
    dtype: str
    states: tuple[int | None, ...]
    sequences: tuple[Sequence, ...]
    role: Role | None = None
    aux: tuple[int, ...] | None = None
    last: Literal["pre-norm", "post-norm", "none"] = "none"


@dataclass(frozen=True)
class Target:
    """Parts of the target. `tensors`: embed_tokens.weight [V, Ht], optional norm.weight [Ht], lm_head.weight [V, Ht],
    vocab_bytes u8 + vocab_offsets [V+1] i64 (UTF-8 text of each token). `tied`: the head is the embedding."""

    vocab: int
    hidden: int
    tensors: str
    name: str | None = None
    layers: int | None = None  # N
    tied: bool = False
    has_head: bool = False
    has_norm: bool = False
    has_text: bool = False
    norm_plus_one: bool = False
    rms_eps: float | None = None
