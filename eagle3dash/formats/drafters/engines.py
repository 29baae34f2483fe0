"""What each engine would do with a drafter as it is: the switches, weights and ids that it drops or reads in another way.

Facts by source: vLLM 0.32 `model_executor/models/llama_eagle3.py`, SGLang 0.5.23 `srt/models/llama_eagle3.py`,
TensorRT-LLM `_torch/models/modeling_speculative.py`.
"""

from __future__ import annotations

from eagle3dash.formats.drafters.names import LATER_NORM, plain
from eagle3dash.formats.drafters.readings import SGLANG, TENSORRT, VLLM
from eagle3dash.records import Drafter, DrafterSpec

ENGINES = {"vLLM": VLLM, "SGLang": SGLANG, "TensorRT-LLM": TENSORRT}
SWITCHES = {
    "residual_norm": "norm_before_residual (the residual is the normed state)",
    "input_norm": "norm_before_fc (input_norm over all aux states)",
    "fc_norm": "fc_norm (a norm for each aux state)",
    "feedback_norm": "the normed state fed back between steps",
    "head_norm": "the norm before lm_head",
    "double_norm": "the second norm of the hidden half",
    "qk_norm": "the norms of queries and keys",
    "attention_bias": "the attention biases",
}


def engines(record: Drafter) -> dict[str, list[str]]:
    """Engine -> what it would compute differently from the record's own reading, in words; empty: serves it as it is."""
    served = {engine: _differences(record, record.readings.get(reading)) for engine, reading in ENGINES.items()}
    return {engine: differences + _stored(record, engine) for engine, differences in served.items()}


def _differences(record: Drafter, served: DrafterSpec | None) -> list[str]:
    if served is None:
        return ["needs norm.weight, which the file doesn't have"]
    own = record.spec
    found = [
        f"{'drops' if getattr(own, name) else 'adds'} {what}"
        for name, what in SWITCHES.items()
        if getattr(own, name) != getattr(served, name)
    ]
    if own.rope != served.rope:
        found.append(f"builds RoPE as {_rope(served)}, the drafter needs {_rope(own)}")
    return found


def _rope(spec: DrafterSpec) -> str:
    rope = spec.rope
    factor = f", factor {rope.factor:g}" if rope.factor != 1 else ""
    scale = f", cos and sin times {rope.attention_factor:.4g}" if rope.attention_factor else ""
    return f"{rope.kind} (theta {rope.theta:g}{factor}{scale})"


def _stored(record: Drafter, engine: str) -> list[str]:
    names = {plain(tensor.name) for tensor in record.tensor_list if tensor.use == "used"}
    found = []
    later = {bool(LATER_NORM.match(name)) for name in names if name.startswith("layers.") and _later_norm(name)}
    if engine == "vLLM" and True in later:
        found.append("looks for layers.1.input_layernorm, the file calls it hidden_norm")
    if engine != "vLLM" and False in later:
        found.append("looks for layers.1.hidden_norm, the file calls it input_layernorm")
    if engine == "vLLM" and "d2t" in names and record.spec.draft_vocab == record.spec.vocab:
        found.append("refuses a d2t when nothing is left out of the vocabulary")
    if engine == "vLLM" and record.spec.num_aux != 3 and record.flavour == "speculators" and not record.spec.qk_norm:
        found.append(f"assumes 3 aux states for a llama drafter, this one reads {record.spec.num_aux}")
    trained = any(field.path == "embed_requires_grad" and field.value == "true" for field in record.fields)
    if engine == "SGLang" and record.has_embedding and trained and record.spec.target_hidden == record.spec.hidden:
        found.append("replaces the embeddings that the drafter has trained by the target's")
    return found


def _later_norm(name: str) -> bool:
    return not name.startswith("layers.0.") and name.endswith(("input_layernorm.weight", "hidden_norm.weight"))
