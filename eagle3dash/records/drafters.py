"""What a drafter is: the sizes and switches of its forward pass, and the checkpoint that they were read from.

Switch names follow the maths, not one tool's config; which config key means which switch is the business of `formats`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Rope:
    """Rotary embedding. `kind`: default, linear, llama3, yarn, dynamic. `interleaved`: pairs (0,1),(2,3).. not halves."""

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
class MapCheck:
    """One check of the draft vocabulary's map (d2t, t2d): what it looked at, whether that is right, and what it found."""

    what: str
    passed: bool
    found: str


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
    map_checks: tuple[MapCheck, ...] = ()
