"""Text that clients print after a run: SGLang's and SpecForge's benches, vLLM's offline example and bench, training logs.

They sum up traffic that a server's own lines tell better, so they count only where those are missing. Facts:
sgl-project/sglang benchmark/ and bench_serving.py; SpecForge#265; vllm examples/offline_inference/spec_decode.py
(vllm#26191, vllm-ascend#7290); speculators acceptance.csv; NVIDIA-NeMo/Automodel#3356 (tau_sim); TensorRT-LLM bench.
"""

from __future__ import annotations

import re
from typing import Any

from eagle3dash.formats.logs.collect import Found
from eagle3dash.formats.logs.lines import Line, number, whole
from eagle3dash.records import Window

MARKS = (
    "Acceptance length", "Accept length", "acceptance length:", "acc_length", "Output throughput", "Latency:", "#questions",
    "num_drafts", "num_draft_tokens:", "num_accepted_tokens", "total_num_output_tokens", "acceptance at token", "tau_sim",
    "Acceptance rate (%)", "Drafts:", "Draft tokens:", "Accepted tokens:", "Position ",
    "] AVERAGE", "accept_length", "acceptance_length",
)  # fmt: skip
PART = re.compile(
    r"(#questions|(?:Output (?:token )?t|T|\bt)hroughput(?: \(tok(?:en)?/s\))?|[Ll]atency"
    r"|[Aa]ccept(?:ance)?[ _][Ll]ength|acc_length)\s{0,4}[:=]\s{0,40}([\d.]{1,20})"
)
OFFLINE = re.compile(
    r"^\s{0,8}(total_num_output_tokens|num_drafts|num_draft_tokens|num_accepted_tokens|mean acceptance length"
    r"|acceptance at token \d{1,3})\s{0,4}:\s{0,8}([\d.]{1,20}|nan)\s{0,8}$"
)
TABLE = re.compile(
    r"^\s{0,8}(Acceptance rate \(%\)|Acceptance length|Drafts|Draft tokens|Accepted tokens|Position \d{1,3}(?: \(%\))?)"
    r"\s{0,4}:\s{1,60}([\d.]{1,20})\s{0,8}$"
)
REPORT = re.compile(r"^\s{0,8}\[(DT|ADT|DAR|AL)\] AVERAGE\s{0,4}: {0,4}([\d.]{1,20})")
TRAIN = re.compile(r"\b(step|train_acc|train_tau_sim|train_loss|tau_sim)=([\d.eE+-]{1,20})")
LATE = 40  # lines within which the parts of one summary stand


def read(line: Line, found: Found) -> None:
    text = line.text
    if "tau_sim" in text:
        _training(line, found)
    elif match := REPORT.match(text):
        _report(line, match.group(1), number(match.group(2)), found)
    elif match := OFFLINE.match(text):
        _offline(line, match.group(1), match.group(2), found)
    elif match := TABLE.match(text):
        _table(line, match.group(1), match.group(2), found)
    elif "SpecDecoding metrics" not in text and "Decode batch" not in text and "draft acceptance" not in text:
        _parts(line, found)


def _parts(line: Line, found: Found) -> None:
    """Throughput, latency and length stand on one line or on neighbouring ones; the length closes a summary."""
    waiting = found.state.setdefault("bench", {})
    if line.number - waiting.get("line", line.number) > LATE:
        waiting.clear()
    for name, text in PART.findall(line.text):
        name = name.lower()
        kind = next((k for k in ("questions", "throughput", "latency") if k in name), "length")
        waiting[kind] = number(text)
        waiting["line"] = line.number
    length = waiting.pop("length", None)
    if length is None:
        return
    if not 1.0 <= length <= 1000:
        found.problem(f"line {line.number}: accept length is {length:g}; expected 1 or more. Left out.")
        return
    extra: dict[str, Any] = {"kind": "bench"}
    extra |= {"questions": int(waiting["questions"])} if waiting.get("questions") is not None else {}
    extra |= {"latency_s": waiting["latency"]} if waiting.get("latency") is not None else {}
    found.state["bench engine"] = "sglang"
    found.definitions.setdefault("accept_length", "as printed by the benchmark, bonus counted")
    found.bench.add(Window(line.number, accept_length=length, throughput=waiting.get("throughput"), extra=extra))
    waiting.clear()


def _report(line: Line, name: str, value: float | None, found: Found) -> None:
    """trtllm-bench: averages over requests of drafted, accepted, rate; the acceptance length closes them."""
    waiting = found.state.setdefault("bench report", {})
    waiting[name] = value
    if name != "AL":
        return
    found.state["bench engine"] = "trtllm"
    found.definitions.setdefault("accept_length", "mean over requests of tokens per iteration, bonus counted")
    if value is not None and value >= 1.0:
        found.bench.add(
            Window(line.number, accept_length=value, acceptance_rate=waiting.get("DAR"), extra={"kind": "bench"})
        )
    waiting.clear()


def _offline(line: Line, name: str, text: str, found: Found) -> None:
    """vLLM's block: counts, mean length, then acceptance by position, which may be padded beyond K."""
    block = found.state.setdefault("offline", {})
    if name in block:
        _close_offline(found)
        block = found.state.setdefault("offline", {})
    block.setdefault("line", line.number)
    block[name] = number(text)


def _close_offline(found: Found) -> None:
    block = found.state.pop("offline", None)
    if not block:
        return
    rounds, drafted, accepted = (
        whole(str(block.get(n))) for n in ("num_drafts", "num_draft_tokens", "num_accepted_tokens")
    )
    positions = [v for n, v in block.items() if n.startswith("acceptance at token")]
    steps = drafted // rounds if rounds and drafted and drafted % rounds == 0 else (len(positions) or None)
    survival = tuple(positions[:steps]) if positions and None not in positions else None
    length = block.get("mean acceptance length")
    if length is not None and length < 1.0:
        length += 1.0
    if rounds and accepted is not None and length is not None and abs(1 + accepted / rounds - length) > 0.011:
        if abs(accepted / rounds - length) <= 0.011:
            length += 1.0
            found.definitions["accept_length"] = "printed without the bonus token: 1 added"
        else:
            found.problem(
                f"line {block['line']}: inconsistent: 1 + accepted / drafts is {1 + accepted / rounds:.3f}, "
                f"printed {length:g}."
            )
    extra: dict[str, Any] = {"kind": "bench"} | ({"positions": positions} if positions else {})
    if (tokens := whole(str(block.get("total_num_output_tokens")))) is not None:
        extra["output_tokens"] = tokens
    rate = accepted / drafted if accepted is not None and drafted else None
    found.state["bench engine"] = "vllm"
    found.steps = found.steps or steps
    found.definitions.setdefault("accept_length", "1 + accepted / drafts, bonus counted")
    found.bench.add(Window(block["line"], None, None, length, rate, accepted, drafted, rounds, survival, extra=extra))


def _table(line: Line, name: str, text: str, found: Found) -> None:
    """`vllm bench serve`: a table with the length, counts and positions in per cent."""
    table = found.state.setdefault("bench table", {})
    if name in table or line.number - table.get("line", line.number) > LATE:
        _close_table(found)
        table = found.state.setdefault("bench table", {})
    table.setdefault("line", line.number)
    table[name.removesuffix(" (%)")] = number(text)


def _close_table(found: Found) -> None:
    table = found.state.pop("bench table", None)
    if not table or not (table.get("Acceptance length") or 0) >= 1.0:
        return
    positions = tuple(round(v / 100, 9) for n, v in table.items() if n.startswith("Position") and v is not None)
    rate = table.get("Acceptance rate")
    counts = [whole(str(table.get(name))) for name in ("Accepted tokens", "Draft tokens", "Drafts")]
    found.state["bench engine"] = "vllm" if "Acceptance rate" in table or positions else "sglang"
    found.steps = found.steps or len(positions) or None
    found.definitions.setdefault("accept_length", "as printed by the benchmark, bonus counted")
    found.bench.add(
        Window(
            table["line"],
            None,
            None,
            table["Acceptance length"],
            None if rate is None else round(rate / 100, 9),
            *counts,
            positions or None,
            extra={"kind": "bench"},
        )
    )


def _training(line: Line, found: Found) -> None:
    """A trainer's own numbers: expectation, not acceptance; never an accept length."""
    numbers = {name: number(text) for name, text in TRAIN.findall(line.text)}
    tau = numbers.pop("train_tau_sim", numbers.pop("tau_sim", None))
    step = numbers.pop("step", None)
    extra = numbers | {"tau_sim": tau, "step": None if step is None else int(step)}
    found.state["bench engine"] = "automodel"
    found.kind = found.kind or "training-log"
    found.definitions["tau_sim"] = "accept length simulated by the trainer, not served"
    found.settings["trained_tau_sim"] = tau
    found.bench.add(Window(line.number, extra=extra))


def finish(found: Found) -> None:
    """Close open blocks; a client's summary stands for the log only where the server wrote nothing."""
    _close_offline(found)
    _close_table(found)
    if not found.bench.kept:
        return
    found.engine = found.engine or found.state.get("bench engine")
    if not found.server.accepting:
        found.server.kept += found.bench.kept
        found.kind = found.kind or "bench"
    else:
        found.infer("windows", f"without {len(found.bench.kept)} summary lines of a client", "they sum up the same traffic")
