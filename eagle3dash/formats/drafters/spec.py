"""DrafterSpec of a checkpoint: sizes, RoPE as transformers reads it, and the switches that tensors show.

Switches without a trace in the weights (norm_before_residual, norm_output) are left to `readings`.
"""

from __future__ import annotations

from eagle3dash.errors import BadInput
from eagle3dash.formats.drafters import rope, sizes
from eagle3dash.formats.drafters.checkpoint import Checkpoint
from eagle3dash.records import DrafterSpec

ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_pytorch_tanh",
    "gelu_pytorch_tanh": "gelu_pytorch_tanh",
    "relu": "relu",
}


def spec_of(checkpoint: Checkpoint, ids: int | None) -> DrafterSpec:
    """ids: how many layer ids the config names."""
    if not checkpoint.fields.given:
        checkpoint.infer("config", "absent", "no config.json: RoPE, epsilon and what leaves no weights take their defaults")
    hidden = sizes.hidden(checkpoint)
    heads = sizes.attention(checkpoint)
    vocab, draft_vocab = sizes.vocabulary(checkpoint)
    num_aux, target_hidden = sizes.aux(checkpoint, hidden, ids)
    spec = DrafterSpec(
        hidden=hidden,
        target_hidden=target_hidden,
        num_aux=num_aux,
        intermediate=sizes.intermediate(checkpoint),
        heads=heads.heads,
        kv_heads=heads.kv_heads,
        head_dim=heads.head_dim,
        mla=heads.mla,
        vocab=vocab,
        draft_vocab=draft_vocab,
        depth=sizes.depth(checkpoint),
        rms_eps=_epsilon(checkpoint),
        rope=rope.parse(checkpoint.fields, heads.mla is not None),
        activation=_activation(checkpoint),
        input_norm=checkpoint.has("input_norm.weight"),
        fc_norm=checkpoint.has("fc_norm.0.weight"),
        head_norm=checkpoint.has("norm.weight"),
        qk_norm=checkpoint.has("layers.0.self_attn.q_norm.weight"),
        attention_bias=checkpoint.ends("self_attn", "bias"),
        mlp_bias=checkpoint.ends("mlp", "bias"),
        fc_bias=checkpoint.has("fc.bias"),
    )
    _check_flags(checkpoint, spec)
    _check_window(checkpoint)
    return spec


def _epsilon(checkpoint: Checkpoint) -> float:
    value = checkpoint.fields.number(f"{checkpoint.fields.block}rms_norm_eps", low=1e-12, high=0.1)
    if value is None:
        checkpoint.infer("rms_eps", 1e-6, "the config has no rms_norm_eps; transformers' default")
    return 1e-6 if value is None else value


def _activation(checkpoint: Checkpoint) -> str:
    said = checkpoint.fields.text(f"{checkpoint.fields.block}hidden_act") or "silu"
    if said not in ACTIVATIONS:
        raise BadInput(f"config.json: hidden_act is {said[:40]!r}; supported are {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[said]


def _check_flags(checkpoint: Checkpoint, spec: DrafterSpec) -> None:
    """The tensors win over the flags that should agree with them."""
    block = checkpoint.fields.block
    flags = {
        "norm_before_fc": (spec.input_norm, "input_norm.weight"),
        "eagle_config.norm_before_fc": (spec.input_norm, "input_norm.weight"),
        "fc_norm": (spec.fc_norm, "fc_norm weights"),
        "use_aux_norm": (spec.fc_norm, "fc_norm weights"),
        f"{block}attention_bias": (spec.attention_bias, "attention biases"),
        f"{block}mlp_bias": (spec.mlp_bias, "MLP biases"),
        "eagle_config.use_last_layernorm": (spec.head_norm, "norm.weight"),
    }
    for path, (found, what) in flags.items():
        said = checkpoint.fields.flag(path)
        if said is not None and said != found:
            has = "has" if found else "has no"
            checkpoint.contradict(path, f"config.json says {path} {str(said).lower()}, but the file {has} {what}.")


def _check_window(checkpoint: Checkpoint) -> None:
    block = checkpoint.fields.block
    kinds, path = checkpoint.fields.find(f"{block}layer_types")
    window = checkpoint.fields.integer(f"{block}sliding_window", low=0, high=1 << 40)
    on = checkpoint.fields.flag(f"{block}use_sliding_window")
    sliding = isinstance(kinds, list) and "sliding_attention" in kinds
    if window and (sliding or on):
        checkpoint.problem(
            f"The drafter attends to a sliding window of {window} tokens ({path or 'use_sliding_window'}); "
            "replays use full attention, which is the same up to that length."
        )
