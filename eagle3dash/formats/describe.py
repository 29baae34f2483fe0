"""The JSON documents of `inspect`: what a file is, in the words of the command line's contract (ARCHITECTURE.md, command
line).

Works on the plain JSON that the parsing child reports; knows no files.
"""

from __future__ import annotations

from typing import Any

from eagle3dash.formats.engines import portability
from eagle3dash.records import Drafter, from_json

WINDOW = (
    "line", "time", "rank", "accept_length", "acceptance_rate", "accepted", "drafted", "rounds", "survival", "running",
    "throughput", "cumulative", "warmup", "extra",
)  # fmt: skip


def document(thing: dict[str, Any], names: list[str], layers: int | None = None) -> dict[str, Any]:
    """One thing of the child's answer -> one document. `names`: labels of the request's files. layers: N of the target."""
    if thing["kind"] == "unknown":
        return {"kind": "unknown", "format": None, "names": thing["names"], "problems": thing["problems"]}
    record = thing["record"]
    if thing["kind"] == "drafter":
        record = record | {"engines": portability.document(from_json(Drafter, record), layers)}
    mine = [names[i] for i in thing["files"]]
    head = {key: thing[key] for key in ("kind", "name", "problems", "inferred")}
    head |= {"format": _format(record, mine[0]), "names": mine}
    return head | {"drafter": _drafter, "capture": _capture, "log": _log, "target": _target}[thing["kind"]](record)


def _format(record: dict[str, Any], name: str) -> str:
    return record.get("format") or record.get("flavour") or ("gguf" if name.endswith(".gguf") else "weights")


def _drafter(record: dict[str, Any]) -> dict[str, Any]:
    kept = ("flavour", "spec", "reading", "readings", "layer_ids", "layer_ids_at", "states", "steps", "target_name")
    found = {key: record[key] for key in (*kept, "has_embedding", "has_head")}
    tables = {"fields": "fields", "tensors": "tensor_list", "vocabulary": "map_checks", "engines": "engines"}
    return found | {key: record[name] for key, name in tables.items()}


def _capture(record: dict[str, Any]) -> dict[str, Any]:
    sequences = record["sequences"]
    counted = [sequence["loss_tokens"] for sequence in sequences]
    states = [f"s{i}" if state is None else state for i, state in enumerate(record["states"])]
    return {
        "role": record["role"], "sequences": len(sequences), "tokens": sum(sequence["tokens"] for sequence in sequences),
        "states": states, "width": record["width"], "dtype": record["dtype"], "aux": record["aux"], "last": record["last"],
        "loss_tokens": None if None in counted else sum(counted),
    }  # fmt: skip


def _log(record: dict[str, Any]) -> dict[str, Any]:
    found = {key: record[key] for key in ("engine", "version", "steps", "settings", "definitions")}
    found["windows"] = [{key: window[key] for key in WINDOW} for window in record["windows"]]
    found["requests"] = len(record["requests"])
    return found | ({"kind": "metrics"} if record["format"].startswith("prometheus") else {})


def _target(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "tensors"}
