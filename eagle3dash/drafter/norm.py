"""RMSNorm as Llama computes it: the mean square in float32 (or wider), the weight applied after going back.

Facts: transformers `modeling_llama.LlamaRMSNorm`, read the same in SGLang, vLLM, speculators and SpecForge.
"""

from __future__ import annotations

import torch
from torch import Tensor


def widened(x: Tensor) -> Tensor:
    """`x` in float32, or as it is when that is wider."""
    return x if x.dtype == torch.float64 else x.float()


def inverse_rms(x: Tensor, eps: float) -> Tensor:
    """1 / sqrt(mean(x^2) + eps) of the last dimension, kept as 1, in float32 or float64."""
    return torch.rsqrt(widened(x).square().mean(-1, keepdim=True) + eps)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return (widened(x) * inverse_rms(x, eps)).to(x.dtype) * weight
