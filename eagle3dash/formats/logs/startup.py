"""Start-up lines: model, version, speculative settings, parallel sizes, dtypes, backends. Facts by name, never whole lines.

Names are the same for all engines (`num_speculative_tokens`, `num_draft_tokens`, `tp`, ...). Warnings: warnings.py.
Facts: ServerArgs of sgl-project/sglang, EngineArgs and VllmConfig of vllm-project/vllm, LlmArgs of NVIDIA/TensorRT-LLM,
the options of ggml-org/llama.cpp's server.
"""

from __future__ import annotations

import re
from typing import Any

from eagle3dash.formats.logs.collect import Found
from eagle3dash.formats.logs.lines import Line

MARKS = (
    "ServerArgs(", "server_args=", "non-default args", "args: Namespace", "Initializing a V", "LLM engine (v",
    "speculative_config", "--speculative", "server version", "  version ", "auxiliary layers", "attention_backend",
    "auxiliary hidden state layers", "ttention backend", "FLASH_ATTN", "FlashInfer", "TensorRT-LLM version", "build: ",
    "TensorRT LLM Version", "--draft-max", "temperature", "decoding_type", "max_draft_len", "sglang version",
    "SGLang version", "SIMULATE_ACC",
)  # fmt: skip
NAMES = {  # their name -> ours
    "model_path": "model",
    "model": "model",
    "model_tag": "model",
    "served_model_name": "served_model",
    "dtype": "dtype",
    "kv_cache_dtype": "kv_cache_dtype",
    "quantization": "quantization",
    "tensor_parallel_size": "tp",
    "tp_size": "tp",
    "data_parallel_size": "dp",
    "dp_size": "dp",
    "pipeline_parallel_size": "pp",
    "pp_size": "pp",
    "ep_size": "ep",
    "enable_dp_attention": "enable_dp_attention",
    "attention_backend": "attention_backend",
    "prefill_attention_backend": "prefill_attention_backend",
    "decode_attention_backend": "decode_attention_backend",
    "speculative_algorithm": "method",
    "speculative_draft_model_path": "drafter",
    "speculative_num_steps": "num_steps",
    "speculative_eagle_topk": "topk",
    "speculative_num_draft_tokens": "num_draft_tokens",
    "speculative_token_map": "token_map",
    "speculative_attention_mode": "speculative_attention_mode",
    "speculative_draft_attention_backend": "draft_attention_backend",
    "speculative_draft_model_quantization": "draft_quantization",
    "speculative_accept_threshold_single": "accept_threshold_single",
    "speculative_accept_threshold_acc": "accept_threshold_acc",
    "method": "method",
    "num_speculative_tokens": "num_speculative_tokens",
    "num_spec_tokens": "num_speculative_tokens",
    "draft_tensor_parallel_size": "draft_tp",
    "enforce_eager": "enforce_eager",
    "disable_cuda_graph": "disable_cuda_graph",
    "disable_overlap_schedule": "disable_overlap_schedule",
    "disable_radix_cache": "disable_radix_cache",
    "disaggregation_mode": "disaggregation_mode",
    "enable_prefix_caching": "enable_prefix_caching",
    "enable_chunked_prefill": "enable_chunked_prefill",
    "chunked_prefill_size": "chunked_prefill_size",
    "max_model_len": "max_model_len",
    "max_seq_len": "max_model_len",
    "context_length": "max_model_len",
    "max_running_requests": "max_running_requests",
    "max_num_seqs": "max_running_requests",
    "mem_fraction_static": "mem_fraction_static",
    "page_size": "page_size",
    "seed": "seed",
    "random_seed": "seed",
    "decoding_type": "method",
    "max_draft_len": "num_speculative_tokens",
    "temperature": "temperature",
}
DRAFT_NAMES = {"model": "drafter", "quantization": "draft_quantization", "tensor_parallel_size": "draft_tp"}
PAIR = re.compile(
    r"""(?<![\w.])['"]?([a-z][a-z_]{1,40})['"]?\s?[=:]\s?('[^']{0,300}'|"[^"]{0,300}"|\['[^']{0,300}'\]|-?[\w./+-]{1,200}(?![\w./+-]|\s?[=:]))"""
)
OPTION = re.compile(r"--([a-z][a-z-]{1,50})(?:[ =]('[^']{0,300}'|\"[^\"]{0,300}\"|[^\s-]\S{0,300}))?")
SPECULATIVE = re.compile(r"speculative_config'?\s?[=:]\s?(?:SpeculativeConfig)?[({]([^(){}]{0,2000})")
VERSIONS = (
    (re.compile(r"LLM engine \(v(\d[\w.+-]{0,40})\)"), "vllm"),
    (re.compile(r"vLLM (?:API )?server version (\d[\w.+-]{0,40})"), "vllm"),
    (re.compile(r"[█▀▄ ]{2} {1,4}version (\d[\w.+-]{0,40})"), "vllm"),
    (re.compile(r"TensorRT[- ]LLM [vV]ersion:?\s{1,4}(\d[\w.+-]{0,40})"), "trtllm"),
    (re.compile(r"(?:sglang|SGLang)(?: version)?[ :=v]{1,4}(\d{1,2}\.\d{1,3}\.[\w.+-]{1,30})"), "sglang"),
    (re.compile(r"\bbuild: (\d{1,6} \([0-9a-f]{6,12}\))"), "llama.cpp"),
)
AUX = re.compile(r"auxiliary (?:hidden state )?layers[^(\[]{0,60}[(\[]([\d, ]{1,200})[)\]]")
BACKEND = re.compile(
    r"(?:Using|Selected|Use) {1,2}([\w.-]{2,40}(?: Attention)?) (?:attention )?backend"
    r"|[Aa]ttention backend(?: is|:) ([\w.-]{2,40})"
)
TEMPERATURE = re.compile(r"\btemperature['\"]?\s?[=:]\s?(\d{1,2}(?:\.\d{1,6})?)")


def read(line: Line, found: Found) -> None:
    """Facts of one line; a line that only looks like one gives none."""
    text = line.text
    for pattern, engine in VERSIONS:
        if match := pattern.search(text):
            found.engine = found.engine or engine
            found.version = found.version or match.group(1)
    if "ServerArgs(" in text or "server_args=" in text:
        found.engine = found.engine or "sglang"
        _pairs(text[max(text.find("ServerArgs("), text.find("server_args=")) :], NAMES, found)
    elif "non-default args" in text or "args: Namespace" in text or "LLM engine (v" in text or "Initializing a V" in text:
        found.engine = found.engine or "vllm"
        _vllm(text, found)
    elif "--speculative" in text or "--draft-max" in text:
        _options(text, found)
    elif "decoding_type" in text or "max_draft_len" in text:
        _pairs(text, {key: NAMES[key] for key in ("decoding_type", "max_draft_len")}, found)
    if match := AUX.search(text):
        found.set("aux_layers", [int(part) for part in match.group(1).split(",") if part.strip().isdigit()])
        found.set("aux_layers_from", "config" if "from speculative config" in text else "engine")
    if (match := BACKEND.search(text)) and ("ttention" in text or "FLASH" in text or "FlashInfer" in text):
        found.set("attention_backend", (match.group(1) or match.group(2)).lower())
    if match := TEMPERATURE.search(text):
        found.set("temperature", float(match.group(1)))
    if "SIMULATE_ACC" in text and (match := re.search(r"SIMULATE_ACC_LEN[ =:]{1,3}([\d.]{1,10})", text)):
        found.set("simulate_acc_len", float(match.group(1)))


def _vllm(text: str, found: Found) -> None:
    """The speculative part first: its `model` is the drafter; what is left is the target's."""
    match = SPECULATIVE.search(text)
    if match:
        _pairs(match.group(1), NAMES | DRAFT_NAMES, found)
        text = text[: match.start()] + text[match.end() :]
    _pairs(text, {k: v for k, v in NAMES.items() if k not in ("method", "temperature")}, found)


def _pairs(text: str, names: dict[str, str], found: Found) -> None:
    for key, raw in PAIR.findall(text):
        if key in names:
            found.set(names[key], value(raw))


def _options(text: str, found: Found) -> None:
    """A command line: --speculative-num-steps 3, --speculative-config '{...}'."""
    for key, raw in OPTION.findall(text):
        name = key.replace("-", "_")
        if name == "speculative_config":
            _pairs(raw.replace('\\"', '"').strip("'"), NAMES | DRAFT_NAMES, found)
        elif name in NAMES:
            found.set(NAMES[name], value(raw) if raw else True)
        elif name in ("draft_max", "draft_n"):
            found.set("num_speculative_tokens", value(raw))


def value(raw: str) -> Any:
    """'x' -> x, 8 -> 8, 0.9 -> 0.9, True -> True, None and null -> None, torch.bfloat16 -> bfloat16."""
    raw = raw.strip("[]'\" ").removeprefix("torch.")
    if raw in ("None", "null", ""):
        return None
    if raw in ("True", "true", "False", "false"):
        return raw in ("True", "true")
    if re.fullmatch(r"-?\d{1,15}", raw):
        return int(raw)
    if re.fullmatch(r"-?\d{1,15}\.\d{1,15}", raw):
        return float(raw)
    return raw[:300]


def take_settings(obj: dict[str, Any], found: Found) -> None:
    """SGLang's server_info: its arguments as JSON."""
    for key, name in NAMES.items():
        if isinstance(obj.get(key), (str, int, float, bool)):
            found.set(name, obj[key])
    if isinstance(obj.get("version"), str):
        found.version = found.version or obj["version"][:40]


def finish(found: Found) -> None:
    """K and the words for it from the settings."""
    said = found.settings
    size, steps, topk = (said.get(name) for name in ("num_draft_tokens", "num_steps", "topk"))
    if isinstance(said.get("num_speculative_tokens"), int):
        found.steps = said["num_speculative_tokens"]
    elif isinstance(size, int) and size > 1 and topk in (None, 1):
        found.steps = size - 1
        found.infer("steps", size - 1, f"a chain of {size} draft tokens drafts {size - 1} and a bonus")
    elif isinstance(steps, int) and steps > 0:
        found.steps = steps
        found.infer("steps", steps, f"speculative_num_steps with topk {topk}")
    if isinstance(said.get("method"), str):
        said["method"] = said["method"].lower()
