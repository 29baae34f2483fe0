"""What `inspect` found, as text: what a thing is in one line, then what a person checks first, then everything in it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from eagle3dash.cli.text import NO_DATA, number, table
from eagle3dash.formats.engines.switches import differences, shown
from eagle3dash.records import DrafterSpec, from_json

WIDTH = 110
SHOWN = 12  # windows of a log, files of a thing
USES = ("contradicting", "missing", "unused", "used", "ignored")
WINDOW = ("line", "time", "rank", "accept_length", "acceptance_rate", "accepted", "drafted")


def inspected(document: dict[str, Any]) -> str:
    """One thing: head, its own parts, what was inferred, problems."""
    kind = document["kind"]
    own: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
        "drafter": _drafter, "capture": _capture, "log": _log, "metrics": _log, "target": _target,
    }  # fmt: skip
    names = document.get("names") or []
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    form = f", {document['format']}" if document.get("format") else ""
    lines = [f"{kind} {document.get('name', '')}".strip() + form, *_wrapped(f"files: {', '.join(names[:SHOWN])}{more}")]
    for part in own.get(kind, lambda _: iter(()))(document):
        lines.append(part)
    for one in document.get("inferred", ()):
        lines += _wrapped(f"inferred {one['field']}: {one['value']} ({one['why']})")
    for problem in document.get("problems", ()):
        lines += _wrapped(f"problem: {problem}")
    return "\n".join(lines)


def _drafter(document: dict[str, Any]) -> Iterator[str]:
    spec = from_json(DrafterSpec, document["spec"])
    attention = "MLA" if spec.mla else f"{spec.heads} heads, {spec.kv_heads} of keys, of {spec.head_dim}"
    yield from _wrapped(
        f"hidden {spec.hidden} (target {spec.target_hidden}), fc reads {spec.num_aux} states, depth {spec.depth}, "
        f"{attention}, MLP {spec.intermediate}, RoPE {shown(spec)}, eps {spec.rms_eps:g}, "
        f"drafts {spec.draft_vocab:,} of {spec.vocab:,} tokens"
    )
    ids, states = document["layer_ids"], document["states"]
    named = f"layer ids {_list(ids)} at {document['layer_ids_at']}" if ids else "no layer ids in the config"
    yield from _wrapped(f"{named}: " + (f"HF[{_list(states)}]" if states else "states unknown"))
    yield from _readings(document, spec)
    yield from _engines(document["engines"])
    yield "\ndraft vocabulary"
    for check in document["vocabulary"]:
        yield from _wrapped(f"{'passed' if check['passed'] else 'FAILED'}  {check['what']}: {check['found']}")
    yield from _items("config.json", document["fields"], _field)
    yield from _items("tensors", document["tensors"], _tensor)
    yield ""


def _engines(engines: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    yield "\nwhat each engine will do with it (N: layers of the target)"
    changes: dict[str, list[str]] = {}
    columns = [(f"{engine} {column['versions']}", column) for engine, found in engines.items() for column in found]
    for name, column in columns:
        yield from _wrapped(f"{name}: {column['summary']}")
        for change in column["changes"]:
            changes.setdefault(change, []).append(name)
    yield from ["\nwhat to change for them"] if changes else []
    for change, names in changes.items():
        told = "for all" if len(names) == len(columns) else f"for {'; '.join(names)}"
        yield from _wrapped(f"- {change} [{told}]")


def _readings(document: dict[str, Any], spec: DrafterSpec) -> Iterator[str]:
    yield from _wrapped(f"reading {document['reading']} (default)")
    for name, other in document["readings"].items():
        if name != document["reading"]:
            told = "; ".join(differences(spec, from_json(DrafterSpec, other))) or "computes the same"
            yield from _wrapped(f"reading {name}: {told}")


def _items(title: str, items: list[dict[str, Any]], line: Callable[[dict[str, Any]], str]) -> Iterator[str]:
    by_use = {use: [item for item in items if item["use"] == use] for use in USES}
    yield f"\n{title}: " + ", ".join(f"{len(found)} {use}" for use, found in by_use.items() if found)
    for use, found in by_use.items():
        for item in found:
            yield from _wrapped(f"{use:<{14 if by_use['contradicting'] else 8}}{line(item)}")


def _field(field: dict[str, Any]) -> str:
    value = field["value"] if len(field["value"]) <= 60 else field["value"][:57] + "..."
    return f"{field['path']} = {value}" + (f" ({field['note']})" if field["note"] else "")


def _tensor(tensor: dict[str, Any]) -> str:
    return f"{tensor['name']} {tensor['shape'] or ''} {tensor['dtype']}".strip()


def _capture(document: dict[str, Any]) -> Iterator[str]:
    loss = document["loss_tokens"]
    yield from _wrapped(
        f"{document['role'] or 'role unknown (say --as training or --as serving)'}: {document['sequences']} texts, "
        f"{document['tokens']:,} tokens, {'no loss mask' if loss is None else f'{loss:,} of them with loss'}"
    )
    aux = "unknown" if document["aux"] is None else _list(document["aux"])
    yield from _wrapped(
        f"states {_list(document['states'])} of width {document['width']}, {document['dtype']}; slots fed to fc: {aux}; "
        f"last state of the target: {document['last']}"
    )


def _log(document: dict[str, Any]) -> Iterator[str]:
    engine = " ".join(part for part in (document["engine"], document["version"]) if part) or "engine unknown"
    steps = "K unknown" if document["steps"] is None else f"K = {document['steps']}"
    yield from _wrapped(f"{engine}, {steps}, {len(document['windows'])} windows, {document['requests']} requests")
    for name, definition in document["definitions"].items():
        yield from _wrapped(f"{name}: {definition}")
    plain = {name: value for name, value in document["settings"].items() if not isinstance(value, list | dict)}
    if plain:
        yield from _wrapped(", ".join(f"{name} {value}" for name, value in plain.items()))
    for warning in document["settings"].get("warnings", ()):
        yield from _wrapped(f"warning of the server: {warning.get('fact', warning)}")
    if document["windows"]:
        rows = [[window[name] for name in WINDOW] for window in document["windows"][-SHOWN:]]
        yield "\n" + textwrap.indent(table([name.replace("_", " ") for name in WINDOW], rows), "  ")


def _target(document: dict[str, Any]) -> Iterator[str]:
    layers = NO_DATA if document["layers"] is None else document["layers"]
    yield from _wrapped(f"vocabulary {document['vocab']:,}, hidden {document['hidden']}, layers {layers}")
    told = {"tied": "tied head", "has_head": "head of its own", "has_norm": "final norm", "has_text": "text of tokens"}
    yield from _wrapped("; ".join(f"{what}: {'yes' if document[key] else 'no'}" for key, what in told.items()))


def _list(items: list[Any]) -> str:
    return ", ".join(number(item) for item in items)


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)
