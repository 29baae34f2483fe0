"""One drafter checkpoint while it is being understood: its config, its tensors under canonical names, what was noticed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from eagle3dash.errors import BadInput, Refused
from eagle3dash.formats.drafters.fields import Fields
from eagle3dash.formats.drafters.names import canonical
from eagle3dash.records import Inferred, Refusal

NORMS = ("input_layernorm", "post_attention_layernorm")
LAYER = (*NORMS, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")  # of every layer; attention besides
GROUPED = tuple(f"self_attn.{name}_proj" for name in "qkvo")
LATENT = tuple(f"self_attn.{name}" for name in ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"))


class Stored(Protocol):
    """A tensor of a file: a `torch.Tensor`, or a lazy one that also has `read()` and `rows(a, b)`."""

    shape: tuple[int, ...]
    dtype: Any


def read(stored: Any) -> torch.Tensor:
    """The tensor itself."""
    return stored if isinstance(stored, torch.Tensor) else stored.read()


def rows(stored: Any, a: int, b: int) -> torch.Tensor:
    """Rows a..b of the first dimension."""
    return stored[a:b] if isinstance(stored, torch.Tensor) else stored.rows(a, b)


def incomplete(name: str, names: Collection[str], head_norm: bool = True) -> Refused:
    """The refusal of a file without a weight that nobody can supply; with all others that it lacks. names: canonical.
    head_norm: whether a file of its flavour must have one."""
    depth = 1 + max((int(other.split(".")[1]) for other in names if other.startswith("layers.")), default=0)
    latent = any(".kv_a_proj_with_mqa." in other for other in names)
    needed = [f"layers.{i}.{part}.weight" for i in range(depth) for part in (*LAYER, *(LATENT if latent else GROUPED))]
    needed += ["fc.weight", "layers.0.hidden_norm.weight", *(["norm.weight"] if head_norm else [])]
    lacks = [other for other in needed if other not in names]
    lacks = list(dict.fromkeys((name, *lacks)))
    more = f" (and {len(lacks) - 1} more weights)" if len(lacks) > 1 else ""
    text = f"The drafter has no {name}{more} and can't run without. Export the checkpoint again, complete."
    return Refused(text, Refusal("", lacks=tuple(lacks)))


@dataclass
class Checkpoint:
    """`names`: canonical name -> name in the file."""

    flavour: str
    fields: Fields
    tensors: Mapping[str, Stored]
    names: dict[str, str]
    inferred: list[Inferred] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, flavour: str, config: dict[str, Any] | None, tensors: Mapping[str, Stored]) -> Checkpoint:
        return cls(flavour, Fields(config), tensors, canonical(tensors))

    def has(self, name: str) -> bool:
        return name in self.names

    def ends(self, part: str, end: str) -> bool:
        """Whether a tensor of a layer's `part` (self_attn, mlp) is a weight or a bias."""
        return any(f".{part}." in name and name.endswith(f".{end}") for name in self.names)

    def shape(self, name: str, dims: int = 2) -> tuple[int, ...]:
        """Shape of a tensor that must be there with that many dimensions. BadInput otherwise."""
        if name not in self.names:
            raise incomplete(name, self.names, self.flavour != "modelopt")
        shape = tuple(int(size) for size in self.tensors[self.names[name]].shape)
        if len(shape) != dims or 0 in shape:
            raise BadInput(f"{self.names[name]} has shape {list(shape)}; expected {dims} dimension(s), none of them empty.")
        return shape

    def expect(self, name: str, *shape: int) -> None:
        """BadInput unless the tensor is there with exactly this shape."""
        found = self.shape(name, len(shape))
        if found != shape:
            raise BadInput(
                f"{self.names[name]} has shape {list(found)}; the other weights need {list(shape)}. "
                "The file mixes two models: export the checkpoint again."
            )

    def infer(self, name: str, value: Any, why: str) -> None:
        self.inferred.append(Inferred(name, str(value), why))

    def problem(self, message: str) -> None:
        self.problems.append(message)

    def contradict(self, path: str | None, message: str) -> None:
        """The tensors settle it: note the problem and mark the field."""
        self.problem(message)
        self.fields.contradict(path, message)
