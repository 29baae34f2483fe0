"""Frozen records that everyone shares. Standard library only.

What is here: what a file is (`Import` and the four kinds it can hold), what a run is, and what an analysis answers.
What is not: where files lie, how they are read, how numbers are computed.
Words and dims (B, S, H, Ht, A, K, V, DV, HF[k]) are those of the glossary in ARCHITECTURE.md.
Tensors never sit in a record: a record names a tensor file by the SHA-256 of its content.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from dataclasses import dataclass, field
from typing import Any, Callable, Literal, Union

Kind = Literal["drafter", "capture", "log", "target"]
Role = Literal["training", "serving"]
Severity = Literal["error", "warning", "info"]
Progress = Callable[[float, float, str], None]
"""progress(done, total, message). May raise `errors.Cancelled`."""


def no_progress(done: float, total: float, message: str) -> None:
    """The progress callback of somebody who does not watch."""


# ---- files ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """One original file as it was brought in. `name` is a label only, never used as a path."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Inferred:
    """Something the file does not say outright: the field, the value taken, and why."""

    field: str
    value: str
    why: str


@dataclass(frozen=True)
class Rope:
    """Rotary embedding. `kind`: default, linear, llama3, yarn, dynamic. `interleaved`: pairs (0,1),(2,3).. instead of halves."""

    kind: str = "default"
    theta: float = 10000.0
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position: int = 0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    mscale: float | None = None
    mscale_all_dim: float | None = None
    attention_factor: float | None = None
    interleaved: bool = False


@dataclass(frozen=True)
class Mla:
    """Ranks and head widths of a multi-head latent attention (DeepSeek) drafter."""

    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int


@dataclass(frozen=True)
class DrafterSpec:
    """All that the forward pass needs to know besides the tensors. Switch names follow the maths, not one tool's config:

    residual_norm   the residual is hidden_norm(g) instead of g           (norm_before_residual)
    input_norm      one RMSNorm over the A*Ht input of fc                 (norm_before_fc)
    fc_norm         one RMSNorm over each of the A aux states             (fc_norm, EAGLE-3.1)
    feedback_norm   norm(out) is fed to the next step instead of out      (norm_output in speculators, vLLM, SGLang)
    head_norm       norm before lm_head                                   (norm_output in SpecForge; use_last_layernorm)
    double_norm     hidden half is hidden_norm(input_layernorm(g))        (ModelOpt)
    """

    hidden: int  # H
    target_hidden: int  # Ht
    num_aux: int  # A
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int  # V
    draft_vocab: int  # DV
    depth: int = 1
    rms_eps: float = 1e-6
    rope: Rope = Rope()
    mla: Mla | None = None
    activation: str = "silu"
    residual_norm: bool = False
    input_norm: bool = False
    fc_norm: bool = False
    feedback_norm: bool = False
    head_norm: bool = True
    double_norm: bool = False
    qk_norm: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    fc_bias: bool = False


@dataclass(frozen=True)
class ConfigField:
    """One field of a drafter's config: where it stood (dotted path), its value, and what was made of it."""

    path: str
    value: str
    use: Literal["used", "ignored", "contradicting"]
    note: str = ""


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of a checkpoint under the name it had in the file."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    use: Literal["used", "unused", "missing"]


@dataclass(frozen=True)
class Drafter:
    """An EAGLE-3 checkpoint. `tensors` names a file with canonical names (layers.{i}.*, fc.weight, norm.weight, d2t, ...).

    `readings`: other ways in which public code reads the same file, by name; `spec` is the default one (`reading`).
    `layer_ids`: as the config prints them; `states`: the same as HF[k] under the flavour's own convention, or None.
    """

    flavour: str
    spec: DrafterSpec
    tensors: str
    reading: str = "as stored"
    readings: dict[str, DrafterSpec] = field(default_factory=dict)
    layer_ids: tuple[int, ...] | None = None
    layer_ids_at: str | None = None
    states: tuple[int, ...] | None = None
    steps: int | None = None  # K that the config proposes
    target_name: str | None = None
    has_embedding: bool = False
    has_head: bool = True
    fields: tuple[ConfigField, ...] = ()
    tensor_list: tuple[TensorInfo, ...] = ()


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
class Window:
    """Acceptance over a span of serving, from one log line or metrics snapshot. None where the line does not say.

    accept_length counts the bonus token; acceptance_rate = accepted / drafted in 0..1; survival[i] unconditional.
    `rounds` is the number of draft-verify cycles. `cumulative`: totals since the server started, not since the last line.
    """

    line: int
    time: str | None = None
    rank: str | None = None
    accept_length: float | None = None
    acceptance_rate: float | None = None
    accepted: int | None = None
    drafted: int | None = None
    rounds: int | None = None
    survival: tuple[float, ...] | None = None
    running: int | None = None
    throughput: float | None = None
    cumulative: bool = False
    warmup: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """One served request with the accepted count of each of its rounds: the true distribution. Bonus not counted."""

    name: str
    accepted: tuple[int, ...]
    drafted: tuple[int, ...]
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class Log:
    """What a server wrote about acceptance. `settings`: start-up facts by name (model, dtype, tp, method, temperature...)."""

    format: str
    engine: str | None
    version: str | None = None
    steps: int | None = None  # K
    windows: tuple[Window, ...] = ()
    requests: tuple[Request, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)


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


@dataclass(frozen=True)
class Import:
    """One thing brought in: a record with its sources. `sha256` identifies the content, whatever the file was called."""

    kind: Kind
    name: str
    sha256: str
    sources: tuple[Source, ...]
    record: Drafter | Capture | Log | Target
    inferred: tuple[Inferred, ...] = ()
    problems: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()  # every tensor file that belongs to it, by SHA-256


# ---- runs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One configuration under study. Imports in the order they were attached; the newest of a kind is the one in use."""

    name: str
    created: str
    imports: tuple[Import, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)  # expected, expected_kind, steps, engine, temperature
    tags: tuple[str, ...] = ()
    notes: str = ""

    def _newest(self, kind: Kind, role: Role | None = None) -> Import | None:
        fits = [i for i in self.imports if i.kind == kind and (role is None or i.record.role == role)]
        return fits[-1] if fits else None

    @property
    def drafter(self) -> Import | None:
        return self._newest("drafter")

    @property
    def target(self) -> Import | None:
        return self._newest("target")

    def capture(self, role: Role) -> Import | None:
        return self._newest("capture", role)

    @property
    def logs(self) -> tuple[Import, ...]:
        return tuple(i for i in self.imports if i.kind == "log")


# ---- answers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """Outcome of a chain replay, as counts. Index of a histogram = num_accepted (0..K), bonus not counted.

    row_*: over every counted row. histogram: over the rounds that a server would have started (see DESIGN, replay).
    step_right[j]: counted rows whose step j is right, whatever came before. in_vocab: counted (row, step) tokens that the
    draft vocabulary holds, out of rows * K.
    """

    steps: int
    row_histogram: tuple[int, ...]
    histogram: tuple[int, ...]
    step_right: tuple[int, ...]
    in_vocab: int

    @property
    def rows(self) -> int:
        return sum(self.row_histogram)

    @property
    def rounds(self) -> int:
        return sum(self.histogram)


@dataclass(frozen=True)
class Finding:
    """A broken link. `evidence`: numbers by name; `fix`: what to change, per engine where it differs."""

    id: str
    severity: Severity
    title: str
    evidence: dict[str, Any]
    fix: str


@dataclass(frozen=True)
class Gap:
    """A check that could not be made, and the file that would allow it."""

    id: str
    needs: str


# ---- to and from JSON ----------------------------------------------------------------------------------------------


def to_json(record: Any) -> Any:
    """Record -> plain JSON values (tuples become lists)."""
    return dataclasses.asdict(record)


def from_json(cls: Any, value: Any) -> Any:
    """The inverse of `to_json` for any record of this module. Raises TypeError on a key that `cls` lacks."""
    if value is None or cls is Any:
        return value
    origin, args = typing.get_origin(cls), typing.get_args(cls)
    if origin in (Union, types.UnionType):
        return from_json(_choose(args, value), value)
    if origin is tuple:
        return tuple(from_json(args[0], item) for item in value)
    if origin is dict:
        return {key: from_json(args[1], item) for key, item in value.items()}
    if dataclasses.is_dataclass(cls):
        hints = _hints(cls)
        if cls is Import:  # the kind says which of the four records it holds
            holds = {"drafter": Drafter, "capture": Capture, "log": Log, "target": Target}
            hints = {**hints, "record": holds[value["kind"]]}
        return cls(**{key: from_json(hints[key], item) if key in hints else item for key, item in value.items()})
    return value


@functools.cache  # a log has 100,000 windows of the same class
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _choose(args: tuple[Any, ...], value: Any) -> Any:
    options = [a for a in args if a is not type(None)]
    fits = [a for a in options if isinstance(a, type) and isinstance(value, a)]
    return fits[0] if fits else options[0]
