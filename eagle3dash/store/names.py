"""What a run may be called, tagged and annotated with. Names are data: never part of a path or of SQL."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable

from eagle3dash.errors import BadInput

LONGEST_NAME = 120
LONGEST_TAG = 40
LONGEST_NOTES = 20_000


def tidy(text: str) -> str:
    """Trimmed and composed (NFC), so that two spellings of one name are one name."""
    return unicodedata.normalize("NFC", text).strip()


def shown(text: str) -> str:
    """What anybody typed, fit for a message."""
    return "".join(c if c.isprintable() else "?" for c in tidy(text))[:60]


def clean_name(name: str, what: str = "run name", longest: int = LONGEST_NAME) -> str:
    """`tidy`, and fit to be shown. Raises BadInput on empty, too long or unprintable text."""
    text = tidy(name)
    if not text or len(text) > longest or not text.isprintable():
        raise BadInput(f'"{shown(text)}" is no {what}: 1 to {longest} printable characters are expected.')
    return text


def clean_tags(tags: Iterable[str]) -> list[str]:
    """Each tag cleaned, without repeats, in the order given."""
    return list(dict.fromkeys(clean_name(tag, "tag", LONGEST_TAG) for tag in tags))


def clean_notes(notes: str) -> str:
    text = notes.strip()
    if len(text) > LONGEST_NOTES:
        raise BadInput(f"The notes have {len(text):,} characters; at most {LONGEST_NOTES:,} are kept. Shorten them.")
    return "".join(c for c in text if c.isprintable() or c in "\n\t")


def free_name(wish: str, taken: Collection[str]) -> str:
    """`wish` made printable and distinct: a second one gets " 2"."""
    shown = tidy("".join(c for c in wish if c.isprintable()))
    name = base = shown[: LONGEST_NAME - 8].strip() or "run"
    number = 1
    while name in taken:
        number += 1
        name = f"{base} {number}"
    return name
