"""What each serving engine does with a drafter's file, version by version: the only place where these facts stand.

Read in the engines' own releases: SGLang 0.5.9, 0.5.11, 0.5.12, 0.5.15, 0.5.18 and 0.5.23 (`srt/models/llama_eagle3.py`,
`kimi_k25_eagle3.py`, `srt/model_executor/`), vLLM 0.18.1, 0.25.0 and 0.32.0 (`model_executor/models/llama_eagle3.py`,
`qwen3_eagle3.py`, `deepseek_eagle3.py`, `transformers_utils/configs/speculators/algos.py`, `v1/worker/`), TensorRT-LLM
(`_torch/models/modeling_speculative.py`, `_torch/speculative/eagle3.py`, June 2026). Versions between those were not read.
"""

from __future__ import annotations

from dataclasses import dataclass

SGLANG, VLLM, TENSORRT = "SGLang", "vLLM", "TensorRT-LLM"


@dataclass(frozen=True)
class Server:
    """One engine from version `first` to `last`, both read. Switches are named as in `DrafterSpec`.

    drops      switches that it leaves out without a word       refuses    switches whose weights stop it while loading
    forgets    switches that it drops from a speculators config only
    ids_at     where it looks for layer ids: top, nested or layer_ids (both in eagle_config), setting (the server's own)
    widths_at  where it learns how many states fc reads, first hit wins: count (num_aux_hidden_states), nested, top; else 3
    later_norm the norm before attention of every layer but the first
    latent     it has MLA drafters         identity_map  it takes a d2t that leaves nothing out
    """

    engine: str
    first: str
    last: str
    runner: str = ""
    drops: frozenset[str] = frozenset()
    refuses: frozenset[str] = frozenset()
    forgets: frozenset[str] = frozenset()
    ids_at: tuple[str, ...] = ("nested",)
    widths_at: tuple[str, ...] = ("count", "nested")
    later_norm: str = "input_layernorm"
    deepest: int | None = None
    latent: bool = True
    speculators: bool = True
    only_midlayer: bool = False
    own_embedding: bool = True
    identity_map: bool = True
    architectures: tuple[str, ...] | None = None


_RAW = frozenset({"residual_norm", "attention_bias", "qk_norm"})
_SGLANG = {
    "engine": SGLANG,
    "ids_at": ("nested",),
    "later_norm": "hidden_norm",
    "speculators": False,
    "own_embedding": False,
    "architectures": ("LlamaForCausalLMEagle3", "Eagle3DeepseekV2ForCausalLM"),
}
_SGLANG_OLD = {**_SGLANG, "deepest": 1, "latent": False, "only_midlayer": True, "widths_at": ()}
_VLLM = {"engine": VLLM}
SERVERS = (
    Server(first="0.5.9", last="0.5.11", drops=_RAW | {"input_norm", "fc_norm", "feedback_norm"}, **_SGLANG_OLD),
    Server(first="0.5.12", last="0.5.12", drops=_RAW | {"input_norm"}, **_SGLANG),
    Server(first="0.5.15", last="0.5.15", drops=_RAW | {"input_norm"}, **_SGLANG),
    Server(first="0.5.18", last="0.5.23", drops=_RAW, **_SGLANG),
    Server(
        first="0.18.1", last="0.18.1", drops=frozenset({"feedback_norm"}), refuses=frozenset({"fc_norm", "qk_norm"}),
        forgets=frozenset({"input_norm"}), ids_at=("top",), widths_at=(), **_VLLM,
    ),
    Server(first="0.25.0", last="0.25.0", runner="V1", ids_at=("top", "nested"), **_VLLM),
    Server(first="0.32.0", last="0.32.0", runner="V1", ids_at=("top", "nested"), identity_map=False, **_VLLM),
    Server(first="0.25.0", last="0.25.0", runner="V2", ids_at=("top",), **_VLLM),
    Server(first="0.32.0", last="0.32.0", runner="V2", ids_at=("top", "layer_ids"), identity_map=False, **_VLLM),
    Server(
        TENSORRT, "mid-2026", "mid-2026", drops=frozenset({"residual_norm"}), ids_at=("setting",), later_norm="hidden_norm",
        own_embedding=False,
    ),
)  # fmt: skip


def latest(engine: str) -> Server:
    """The newest version of an engine that was read."""
    return [server for server in SERVERS if server.engine == engine][-1]
