"""The first difference of two texts, to be read: which tokens, as text where a vocabulary is there, and what part it is.

Token ids in, a dict out. What the part is (system prompt, thinking mode, chat template, a missing BOS) is read from the
text around it: chat templates put roles behind special tokens, as in ChatML, Llama, Gemma, Mistral, DeepSeek and Kimi.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Any

import numpy as np

Decode = Callable[[Sequence[int]], str]

BEFORE, AFTER = 10, 8  # tokens shown around the difference
WINDOW = 512  # tokens within which the two texts are to meet again
REJOIN = 4  # tokens in a row that must agree for that
SHOWN = 48  # tokens shown of a long difference
LEFT, RIGHT = "⟦", "⟧"  # around what differs, in a plain text
ROLES = ("training", "serving")
THINKING = re.compile(r"</?think(ing)?>|◁/?think▷|/no_think|<\|channel\|>analysis")
SPECIAL = re.compile(r"<\|[^|>\s]{1,40}\|>|<｜[^｜]{1,40}｜>|</?s>|<(?:bos|eos|start_of_turn|end_of_turn)>|\[/?INST\]")
BOS = re.compile(r"<s>|<bos>|\[BOS\]|\[CLS\]|<\|(begin_of_text|startoftext|endoftext)\|>|<｜begin")
ROLE = re.compile(r"(?:[>\]｜]|^)\s*(system|developer|user|human|assistant|model|tool)\b", re.IGNORECASE)
OTHER = {  # a part that differs -> what the other side has
    "system prompt": "another system prompt",
    "thinking mode": "another thinking mode",
    "chat template": "another chat template",
}
PARTS = {"system": "system prompt", "developer": "system prompt", "assistant": "answer", "model": "answer"}


def first_difference(
    training: np.ndarray, serving: np.ndarray, at: int, mask: np.ndarray | None = None, decode: Decode | None = None
) -> dict[str, Any]:
    """Two texts that part at token `at`. position; `*_span`: the tokens that differ, [start, end) of each text;
    `*_tokens`: how many; `*_ids`: those and some around, from `ids_from` on; what: the part, in words (None: not known).
    With `decode`: `*_parts`, the text before, of and after the difference, and `*_text`, the same in one with marks."""
    ends = _spans(np.asarray(training)[at:], np.asarray(serving)[at:])
    found: dict[str, Any] = {"position": at, "ids_from": max(0, at - BEFORE)}
    for role, ids, size in zip(ROLES, (training, serving), ends, strict=True):
        end = at + size
        found |= {f"{role}_span": [at, end], f"{role}_tokens": size}
        found[f"{role}_ids"] = [int(i) for i in ids[found["ids_from"] : min(end, at + SHOWN) + AFTER]]
        if decode is not None:
            found[f"{role}_parts"] = parts = _parts(ids, at, end, decode)
            found[f"{role}_text"] = f"{parts[0]}{LEFT}{parts[1]}{RIGHT}{parts[2]}"
    return found | {"what": _what(found, training, serving, mask, decode)}


def readable(text: str) -> str:
    """A text in one line: line breaks as a sign, what can't be printed as another."""
    return "".join("↵" if c == "\n" else "⇥" if c == "\t" else c if c.isprintable() else "\ufffd" for c in text)


def _spans(a: np.ndarray, b: np.ndarray) -> tuple[int, int]:
    """How many tokens differ in each, until they agree again for REJOIN tokens or to both ends; all, if they never do."""
    near = [ids[:WINDOW].tolist() for ids in (a, b)]
    blocks = SequenceMatcher(None, *near, autojunk=False).get_matching_blocks()
    for i, j, size in blocks:
        ends = i + size == len(a) and j + size == len(b)
        if i + j and (size >= REJOIN or (size and ends)):
            return i, j
    return len(a), len(b)


def _parts(ids: np.ndarray, at: int, end: int, decode: Decode) -> list[str]:
    before, after = max(0, at - BEFORE), min(len(ids), end + AFTER)
    inside = readable(decode(ids[at : min(end, at + SHOWN)].tolist())) + ("…" if end - at > SHOWN else "")
    start = ("…" if before else "") + readable(decode(ids[before:at].tolist()))
    return [start, inside, readable(decode(ids[end:after].tolist())) + ("…" if after < len(ids) else "")]


def _what(
    found: dict[str, Any], training: np.ndarray, serving: np.ndarray, mask: np.ndarray | None, decode: Decode | None
) -> str | None:
    at, texts = found["position"], dict(zip(ROLES, (training, serving), strict=True))
    for role, other in zip(ROLES, ROLES[::-1], strict=True):
        a, b = found[f"{role}_tokens"], found[f"{other}_tokens"]
        if at <= 1 and a == 1 and b == 0:  # one token more at the start
            token = int(texts[role][at])
            named = _name(token, decode)
            if at and token == int(texts[role][0]):
                return f"the first token{named} stands twice in {role}"
            return f"the first token{named} is missing in {other}" if at == 0 else None
    if mask is not None and (np.asarray(mask)[:at] == 1).any():
        return "answer"
    return None if decode is None else _part(found, training[:at].tolist(), decode)


def _name(token: int, decode: Decode | None) -> str:
    text = readable(decode([token])) if decode else ""
    bos = "BOS" if BOS.fullmatch(text) or not text else "BOS, or the template's own"
    return f" ({bos}: {text})" if text else f" ({bos})"


def _part(found: dict[str, Any], before: list[int], decode: Decode) -> str | None:
    differs = [found[f"{role}_parts"][1] for role in ROLES]
    thinking = [bool(THINKING.search(text)) for text in differs]
    if any(thinking) and not all(thinking):
        return "thinking mode"
    marks = [SPECIAL.findall(text) for text in differs]
    roles = ROLE.findall(decode(before[-WINDOW:]))
    opened = [set(ROLE.findall(text)) for text in differs]
    if any("system" in {name.lower() for name in each} for each in opened) and opened[0] != opened[1]:
        return "system prompt"  # one side has one, the other has none
    words = [SPECIAL.sub("", text).split() for text in differs]
    inside_system = bool(roles) and PARTS.get(roles[-1].lower()) == "system prompt" and words[0] != words[1]
    if marks[0] != marks[1] and not inside_system:
        return "chat template"
    return PARTS.get(roles[-1].lower(), "prompt") if roles else None


# ---- words ---------------------------------------------------------------------------------------------------------


def counted(first: dict[str, Any]) -> str:
    """17 tokens at position 3 in training, 5 in serving."""
    a, b = first["training_tokens"], first["serving_tokens"]
    return f"{a:,} token{'' if a == 1 else 's'} at position {first['position']:,} in training, {b:,} in serving"


def told(first: dict[str, Any]) -> dict[str, str]:
    """A first difference as evidence: what and where, then both sides as text and as ids, what differs in marks."""
    if not first:
        return {}
    found = {"first_difference": ": ".join(part for part in (first["what"], counted(first)) if part)}
    for role in ROLES:
        if f"{role}_text" in first:
            found[f"{role}_text"] = first[f"{role}_text"]
    for role in ROLES:
        start, (low, high) = first["ids_from"], first[f"{role}_span"]
        ids = [str(i) for i in first[f"{role}_ids"]]
        cut = min(high - start, low - start + SHOWN)
        inside = [*ids[low - start : cut], *(["…"] if high - low > SHOWN else [])]
        found[f"{role}_ids"] = " ".join([*ids[: low - start], LEFT, *inside, RIGHT, *ids[cut:]])
    return found
