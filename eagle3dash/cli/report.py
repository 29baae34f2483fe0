"""`diagnose --report FILE`: the diagnosis as one HTML file or as Markdown, to attach to a ticket."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from eagle3dash.analysis.report import markdown
from eagle3dash.errors import BadInput, Eagle3Error

ENDINGS = (".html", ".htm", ".md", ".markdown")
Ask = Callable[[str, dict[str, Any]], dict[str, Any]]


def check(path: Path) -> None:
    """BadInput when no report can be written there; said before anything is computed."""
    if path.suffix.lower() not in ENDINGS:
        raise BadInput(f"--report {path}: a report is HTML or Markdown. Give a name that ends in .html or .md.")
    if not path.absolute().parent.is_dir():
        raise BadInput(f"The folder of --report {path} does not exist. Make it, or give another name.")


def write(path: Path, document: dict[str, Any], about: dict[str, Any], ask: Ask) -> None:
    """Writes the report. ask(kind, args): the answers that the diagnosis rests on, for the pictures of the HTML."""
    if path.suffix.lower() in (".md", ".markdown"):
        text = markdown(document, about)
    else:
        from eagle3dash.charts import report  # here: it loads plotly, which no other command needs

        text = report.page(document, about, report.pictures(document, _parts(document, ask)))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"The report cannot be written to {path}: {error.strerror}.") from None


def _parts(document: dict[str, Any], ask: Ask) -> dict[str, dict[str, Any]]:
    steps = {"steps": document["steps"]}
    wanted = {
        "training": ("replay", {"capture": "training", **steps}),
        "serving": ("replay", {"capture": "serving", **steps}),
        "sweep": ("sweep", {"capture": "training", **steps}),
        "features": ("features", {}),
    }
    found = {}
    for name, (kind, args) in wanted.items():
        try:
            found[name] = ask(kind, args)
        except Eagle3Error:  # the run lacks the files for it; the report says so under "What was checked"
            continue
    return found
