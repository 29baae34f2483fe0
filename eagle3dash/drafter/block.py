"""One decoder layer of a drafter. Layer 0 reads [embedding, state]; deeper layers are ordinary ones.

    x   = concat(input_layernorm(e), hidden_norm(g))    layer 0;  input_layernorm(h) in layers >= 1
    h1  = r + o_proj(attention(x))                      r = g, or hidden_norm(g) with `residual_norm`
    out = h1 + mlp(post_attention_layernorm(h1))

Facts: SGLang and vLLM `llama_eagle3.py`, speculators `models/eagle3/model_definitions.py`, SafeAILab `cnets.py`;
`double_norm`: ModelOpt `torch/speculative/plugins/modeling_eagle.py`.
"""

from __future__ import annotations

from functools import partial

import torch.nn.functional as F
from torch import Tensor

from eagle3dash.drafter.attention import GroupedQuery
from eagle3dash.drafter.mla import Latent
from eagle3dash.drafter.norm import rms_norm
from eagle3dash.drafter.weights import Weights
from eagle3dash.errors import BadInput
from eagle3dash.records import DrafterSpec

ACTIVATIONS = {
    "silu": F.silu,
    "swish": F.silu,
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
}


class Layer:
    """Everything of layer `index` but the order in which rows and steps are taken.

    The first projection is split: `embedding_weight` [width, H] (layer 0 only) and `hidden_weight` [width, H], so that
    the embedding's half can be computed once for all steps. `width`: queries first, then what keys and values need.
    """

    def __init__(self, spec: DrafterSpec, weights: Weights, index: int):
        name = f"layers.{index}"
        self.first, self.eps, self.double = index == 0, spec.rms_eps, spec.double_norm
        self.attention = (Latent if spec.mla else GroupedQuery)(spec, weights, f"{name}.self_attn")
        self.input_norm = weights[f"{name}.input_layernorm.weight"]
        self.hidden_norm = weights[f"{name}.hidden_norm.weight"] if self.first else self.input_norm
        self.residual_norm = self.first and spec.residual_norm
        self.after_norm = weights[f"{name}.post_attention_layernorm.weight"]
        self.mlp = [weights[f"{name}.mlp.{x}_proj.weight"] for x in ("gate", "up", "down")]
        biases = [f"{name}.mlp.{x}_proj.bias" for x in ("gate", "up", "down")]
        self.mlp_bias = [weights[x] if spec.mlp_bias else None for x in biases]
        if spec.activation not in ACTIVATIONS:
            raise BadInput(f"The drafter's activation is {spec.activation!r}; known: {', '.join(ACTIVATIONS)}.")
        self.activation = ACTIVATIONS[spec.activation]
        width = self.attention.weight.shape[1]
        if width != spec.hidden * (2 if self.first else 1):
            raise BadInput(f"{name} reads {width} values a row, expected {spec.hidden * (2 if self.first else 1)}.")
        self.embedding_weight, self.hidden_weight = self.attention.weight.split([width - spec.hidden, spec.hidden], 1)
        self.query_part = slice(0, self.attention.query_width)
        self.key_part = slice(self.attention.query_width, None)

    def embedding_half(self, embedded: Tensor) -> Tensor:
        """Embeddings [R, H] -> their share of the first projection, bias included [R, width]."""
        return F.linear(rms_norm(embedded, self.input_norm, self.eps), self.embedding_weight, self.attention.bias)

    def normed(self, hidden: Tensor) -> Tensor:
        if self.first and self.double:
            hidden = rms_norm(hidden, self.input_norm, self.eps)
        return rms_norm(hidden, self.hidden_norm, self.eps)

    def hidden_half(self, hidden: Tensor, part: slice = slice(None)) -> Tensor:
        """State [R, H] -> its share of outputs `part` of the first projection. In layers >= 1 that is all of it."""
        bias = None if self.first or self.attention.bias is None else self.attention.bias[part]
        return F.linear(self.normed(hidden), self.hidden_weight[part], bias)

    def finish(self, hidden: Tensor, attended: Tensor) -> Tensor:
        """The layer's input state [R, H] and attention's answer [R, nh * hv] -> the layer's output [R, H]."""
        residual = rms_norm(hidden, self.hidden_norm, self.eps) if self.residual_norm else hidden
        hidden = residual + self.attention.out(attended)
        normed = rms_norm(hidden, self.after_norm, self.eps)
        gate, up, down = self.mlp
        inner = self.activation(F.linear(normed, gate, self.mlp_bias[0])) * F.linear(normed, up, self.mlp_bias[1])
        return hidden + F.linear(inner, down, self.mlp_bias[2])
