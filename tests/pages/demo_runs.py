"""Names that the page tests share."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
ANSWERED, UNASKED = "story-as-served", "story-fixed"
