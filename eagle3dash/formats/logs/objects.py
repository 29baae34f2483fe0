"""One JSON object with acceptance in it -> a window, and a request where its rounds are known. One function a tool.

It doesn't know files. Definitions: vLLM's mean counts the bonus; SGLang's spec_accept_length is completion_tokens / verify
steps and so counts the token of the prefill too, which is why counts are preferred; a histogram's index = accepted drafts.
Facts: vllm#48915 (speculative_decoding); sgl-project/sglang#18332, #33518 (meta_info); NVIDIA/TensorRT-LLM#17082
(specDecodingStats); ggml-org/llama.cpp#12603 (timings); vllm bench serve, sglang bench_serving, SpecForge benchmark.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

from eagle3dash.formats.logs.collect import Found
from eagle3dash.formats.logs.startup import take_settings
from eagle3dash.records import Request, Window

ACCEPTED = ("num_accepted_draft_tokens", "spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
DRAFTED = ("num_draft_tokens", "spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
ROUNDS = ("num_spec_steps", "spec_verify_ct")
HISTOGRAM = ("acceptance_histogram", "spec_correct_drafts_histogram", "spec_accept_histogram")
LENGTH = ("mean_acceptance_length", "spec_accept_length")
RATE = ("draft_acceptance_rate", "spec_accept_rate")
PER_REQUEST = {
    *ACCEPTED,
    *ROUNDS,
    *HISTOGRAM,
    *LENGTH,
    *RATE,
    "per_step_accepted",
    "spec_num_proposed_drafts",
    "spec_proposed_drafts",
}
TIMINGS = {"draft_n_accepted"}
TENSORRT = {"numAcceptedTokens", "numDraftTokens", "avgNumDecodedTokensPerIter", "avg_decoded_tokens_per_iter"}
SUMMARY = {
    "accept_length": "accept_length",
    "acc_length": "accept_length",
    "average_acceptance_length": "accept_length",
    "avg_spec_accept_length": "accept_length",
    "spec_decode_acceptance_length": "accept_length",
    "acceptance_length": "accept_length",
}
COUNTS = (("num_accepted_tokens", "accepted_tokens"), ("num_draft_tokens", "draft_tokens"), ("num_drafts", "drafts"))
KEYS = frozenset(PER_REQUEST | TIMINGS | TENSORRT | set(SUMMARY) | {"speculative_algorithm"})


def take(obj: dict[str, Any], context: dict[str, Any], line: int, name: str, found: Found) -> None:
    """Windows and requests of one object; `context`: id, usage, ... of the reply around it; `name`: how to call it else."""
    if PER_REQUEST & obj.keys():
        _per_request(obj, context, line, name, found)
    elif TIMINGS & obj.keys():
        _timings(obj, line, found)
    elif TENSORRT & obj.keys():
        _tensorrt(obj, line, found)
    elif SUMMARY.keys() & obj.keys():
        _summary(obj, line, found)
    if "speculative_algorithm" in obj:
        found.engine = found.engine or "sglang"
        take_settings(obj, found)


def _count(obj: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = obj.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12:
            return value
    return None


def _real(obj: dict[str, Any], *names: str) -> float | None:
    for name in names:
        value = obj.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
            return float(value)
    return None


def _counts(obj: dict[str, Any], *names: str) -> tuple[int, ...]:
    for name in names:
        value = obj.get(name)
        listed = isinstance(value, list) and 0 < len(value) <= 1_000_000
        if listed and all(type(v) is int and 0 <= v <= 10**9 for v in value):
            return tuple(value)
    return ()


def _per_request(obj: dict[str, Any], context: dict[str, Any], line: int, name: str, found: Found) -> None:
    sglang = any(key.startswith("spec_") for key in obj)
    found.engine = found.engine or ("sglang" if sglang else "vllm")
    name = str(context.get("id") or context.get("rid") or context.get("request_id") or obj.get("id") or name)[:100]
    steps_list, histogram = _counts(obj, "per_step_accepted"), _counts(obj, *HISTOGRAM)
    accepted, drafted, rounds = _count(obj, *ACCEPTED), _count(obj, *DRAFTED), _count(obj, *ROUNDS)
    _agree(obj, steps_list, histogram, accepted, rounds, line, found)
    if not steps_list and histogram and sum(histogram) <= 1_000_000:
        found.definitions["rounds"] = "from histograms: the order of rounds within a request is unknown"
        steps_list = tuple(i for i, n in enumerate(histogram) for _ in range(n))
    if steps_list:
        accepted, rounds = sum(steps_list), len(steps_list)
    steps = _count(obj, "num_spec_tokens") or (len(histogram) - 1 if len(histogram) > 1 else None)
    if steps:
        found.steps = max(found.steps or 0, steps)
    drafts = _counts(obj, "per_step_drafted")
    if not drafts and steps and rounds and drafted == steps * rounds:
        drafts = (steps,) * rounds
    drafted = drafted if drafted is not None else (sum(drafts) or None)
    prompt, completion = (_count(obj | context, key) for key in ("prompt_tokens", "completion_tokens"))
    if steps_list:
        found.request(Request(name, steps_list, drafts, prompt, completion))
    length = 1 + accepted / rounds if rounds and accepted is not None else _real(obj, *LENGTH)
    if length is not None and length < 1.0:
        found.problem(f"line {line}: accept length is {length:g}; expected 1 or more. Left out.")
        length = None
    if length is None and rounds and completion and completion >= rounds:
        length = completion / rounds  # SGLang 0.5.3 says only this much; the token of the prefill is in it
    rate = accepted / drafted if drafted and accepted is not None else _real(obj, *RATE)
    extra = {"request": name} | ({"histogram": list(histogram)} if histogram else {})
    extra |= {key: context[key] for key in ("created", "repeated") if key in context}
    found.server.add(
        Window(line, None, None, length, rate, accepted, drafted, rounds, _survival(steps_list, steps), extra=extra)
    )  # fmt: skip
    _describe(context, sglang, found)


def _describe(context: dict[str, Any], sglang: bool, found: Found) -> None:
    found.set("served_model", context.get("model"))
    mark = str(context.get("system_fingerprint") or "")
    if mark.startswith("vllm-") and mark.count("-") >= 1:
        found.version = found.version or mark.split("-")[1][:30]
    found.definitions["acceptance_rate"] = "accepted / drafted tokens"
    found.definitions["accept_length"] = "1 + accepted / rounds, bonus counted" + (
        "; SGLang's own spec_accept_length counts the token of the prefill too" if sglang else ""
    )
    found.definitions["survival"] = "unconditional: accepted at position i / rounds"


def _survival(rounds: tuple[int, ...], steps: int | None) -> tuple[float, ...] | None:
    if not rounds or not steps:
        return None
    tally = [0] * (max(steps, max(rounds)) + 1)
    for accepted in rounds:
        tally[accepted] += 1
    above = list(accumulate(reversed(tally)))[::-1]  # rounds that accepted at least i
    return tuple(n / len(rounds) for n in above[1:])


def _agree(
    obj: dict[str, Any], rounds_list: tuple[int, ...], histogram: tuple[int, ...], accepted: int | None, rounds: int | None,
    line: int, found: Found,
) -> None:  # fmt: skip
    """Say where the parts of one object contradict each other; the listed rounds are believed."""
    said = []
    listed = rounds_list and (len(rounds_list), sum(rounds_list))
    tallied = histogram and (sum(histogram), sum(i * n for i, n in enumerate(histogram)))
    for words, values in (("listed rounds", listed), ("histogram", tallied)):
        if values and rounds is not None and values[0] != rounds:
            said.append(f"{values[0]} rounds by the {words}, {rounds} by the count")
        if values and accepted is not None and values[1] != accepted:
            said.append(f"{values[1]} accepted by the {words}, {accepted} by the count")
    mean = _real(obj, "mean_acceptance_length")
    if mean is not None and rounds and accepted is not None and abs(1 + accepted / rounds - mean) > 0.011:
        said.append(f"1 + accepted / rounds is {1 + accepted / rounds:.3f}, the mean says {mean:.3f}")
    if said:
        found.problem(f"line {line}: inconsistent: {'; '.join(said)}.")


def _timings(obj: dict[str, Any], line: int, found: Found) -> None:
    """llama.cpp's `timings`: rounds are the tokens that no draft gave, one each."""
    found.engine = found.engine or "llama.cpp"
    accepted, drafted, predicted = (_count(obj, key) for key in ("draft_n_accepted", "draft_n", "predicted_n"))
    rate = accepted / drafted if drafted and accepted is not None else None
    rounds = predicted - accepted if predicted and accepted is not None and predicted > accepted else None
    length = predicted / rounds if rounds else None
    if rounds:
        found.definitions["accept_length"] = "predicted_n / (predicted_n - draft_n_accepted), bonus counted (derived)"
    found.definitions["acceptance_rate"] = "accepted / drafted tokens"
    speed = _real(obj, "predicted_per_second")
    found.server.add(Window(line, None, None, length, rate, accepted, drafted, rounds, throughput=speed))


def _tensorrt(obj: dict[str, Any], line: int, found: Found) -> None:
    """TensorRT-LLM: numAcceptedTokens without the bonus; acceptanceLength = 1 + accepted / requests with drafts."""
    found.engine = found.engine or "trtllm"
    accepted, drafted = _count(obj, "numAcceptedTokens"), _count(obj, "numDraftTokens")
    rounds = _count(obj, "numRequestsWithDraftTokens")
    printed = _real(obj, "acceptanceLength", "avgNumDecodedTokensPerIter", "avg_decoded_tokens_per_iter")
    length = 1 + accepted / rounds if rounds and accepted is not None else printed
    if drafted == 0 and not accepted:
        return
    if rounds and printed is not None and abs(length - printed) > 0.011:
        found.problem(
            f"line {line}: inconsistent: 1 + accepted / requests is {length:.3f}, acceptanceLength says {printed:g}."
        )
    if (
        not rounds
        and accepted
        and printed
        and printed > 1
        and abs(accepted / (printed - 1) - round(accepted / (printed - 1))) > 0.02
    ):
        found.problem(
            f"line {line}: inconsistent: acceptanceLength {printed:g} with {accepted} accepted tokens gives no whole "
            "number of requests if the bonus is counted; numRequestsWithDraftTokens would decide."
        )
    if length is not None and length < 1.0:
        found.problem(f"line {line}: accept length is {length:g}; expected 1 or more. Left out.")
        length = None
    rate = accepted / drafted if drafted and accepted is not None else None
    extra = {} if printed is None else {"acceptanceLength": printed}
    found.definitions["accept_length"] = "1 + accepted / requests with drafts, bonus counted"
    found.definitions["acceptance_rate"] = "accepted / drafted tokens"
    found.server.add(Window(line, None, None, length, rate, accepted, drafted, rounds, extra=extra))


def _summary(obj: dict[str, Any], line: int, found: Found) -> None:
    """A benchmark's summary, or SGLang's server_info (average since the server started)."""
    length = _real(obj, *SUMMARY)
    if length is None or not 1.0 <= length <= 1000:
        return
    if {"spec_decode_acceptance_length", "num_drafts"} & obj.keys():
        found.engine = found.engine or "vllm"
    elif {"accept_length", "acc_length", "avg_spec_accept_length"} & obj.keys():
        found.engine = found.engine or "sglang"
    rate = _real(obj, "spec_decode_acceptance_rate")
    rate = round(rate / 100, 9) if rate is not None and rate <= 100 else None
    positions = obj.get("spec_decode_per_position_acceptance_rates")
    survival = tuple(map(float, positions)) if _fractions(positions) else None
    if survival:
        found.steps = found.steps or len(survival)
    speed = _real(obj, "output_throughput", "throughput")
    found.definitions["accept_length"] = "as printed, bonus counted"
    since = "avg_spec_accept_length" in obj
    accepted, drafted, rounds = (_count(obj, *(f"spec_decode_{n}" for n in names)) for names in COUNTS)
    rounds = rounds if rounds is not None else _count(obj, "spec_verify_count")
    window = Window(line, None, None, length, rate, accepted, drafted, rounds, survival, throughput=speed, cumulative=since)
    (found.server if since else found.bench).add(window)


def _fractions(values: Any) -> bool:
    return (
        isinstance(values, list)
        and 0 < len(values) <= 64
        and all(isinstance(v, (int, float)) and 0 <= v <= 1 for v in values)
    )
