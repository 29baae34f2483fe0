"""The report as one HTML file: charts inside, plotly.js once, no request to anybody, nothing of a file's text is markup.

A strict policy stands in the file itself: only the two scripts whose hashes it names may run, nothing may be loaded. The
figures are JSON in data blocks that no browser runs. What stands in the report is the business of `analysis.report`.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from typing import Any

from plotly.offline import get_plotlyjs

from eagle3dash.analysis.report import Section, Table, sections, short
from eagle3dash.charts import waterfall
from eagle3dash.charts.acceptance import by_position, by_role
from eagle3dash.charts.changes import changes
from eagle3dash.charts.features import heatmap
from eagle3dash.charts.layers import combinations
from eagle3dash.charts.theme import Chart

MOST_BARS = 12  # combinations of states drawn, the trained and the served ones besides

DRAW = """
const options = {responsive: true, displaylogo: false, showSendToCloud: false,
                 modeBarButtonsToRemove: ["select2d", "lasso2d"]};
for (const box of document.querySelectorAll(".chart")) {
  const figure = JSON.parse(document.getElementById(box.dataset.figure).textContent);
  if (box.clientWidth < 520) {
    figure.layout.font.size = 10;
    figure.layout.title.font.size = 13;
    for (const note of figure.layout.annotations || []) note.font = {...note.font, size: 10};
  }
  Plotly.newPlot(box, figure.data, figure.layout, options);
}
"""
STYLE = """
:root { color-scheme: light }
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2328; background: #fff; max-width: 60rem; margin: 2rem auto;
       padding: 0 1rem; overflow-wrap: break-word }
h1 { font-size: 1.6rem } h2 { font-size: 1.25rem; margin-top: 2.5rem } h3 { font-size: 1.05rem; margin-top: 2rem }
.verdict { border-left: 4px solid #8A8F98; padding: .5rem 1rem; background: #f6f8fa; font-weight: 600 }
.error { border-color: #D55E00 } .warning { border-color: #E69F00 } .healthy { border-color: #009E73 }
.wide { overflow-x: auto } table { border-collapse: collapse; margin: 1rem 0; font-size: .9rem }
.many { min-width: 42rem } th, td:first-child { overflow-wrap: normal }
td, th { border-bottom: 1px solid #d8dee4; padding: .3rem .7rem .3rem 0; text-align: left; vertical-align: top }
figure { margin: 1.5rem 0 } figcaption, .note { color: #59636e; font-size: .9rem }
@media print { .chart { break-inside: avoid } }
"""


def page(document: dict[str, Any], about: dict[str, Any], more: Sequence[Chart] = ()) -> str:
    """The whole file as text (about 5 MB, nearly all of it plotly.js). more: pictures besides the waterfall."""
    library = get_plotlyjs().replace("\r\n", "\n").replace("</script", "<\\/script")
    charts = {"waterfall": [waterfall.of_diagnosis(document)], "more": list(more)}
    charts |= {
        f"changes of {role}": [changes(rows, document["steps"], role)] for role, rows in document["changes"].items() if rows
    }
    body = "\n".join(_section(one, charts.get(one.chart, []), document) for one in sections(document, about))
    policy = (
        f"default-src 'none'; script-src {_hash(library)} {_hash(DRAW)}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">'
        f"<title>eagle3dash: {_text(about['run'])}</title><style>{STYLE}</style>"
    )
    scripts = f"<script>{library}</script>\n<script>{DRAW}</script>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n{scripts}\n</body></html>\n'


def pictures(document: dict[str, Any], parts: dict[str, dict[str, Any]]) -> list[Chart]:
    """The pictures that prove the verdict, of those answers that are there (training, serving, sweep, features)."""
    known = {**parts, "served": document["served"]}
    series = [by_role(role, known[role]) for role in ("training", "serving", "served") if known.get(role)]
    charts = [by_position(series, document["steps"])] if series else []
    if rows := parts.get("sweep", {}).get("rows"):
        trained, served = (document["wiring"][f"{which}_states"] for which in ("trained", "served"))
        shown = [row for rank, row in enumerate(rows) if rank < MOST_BARS or row["states"] in (trained, served)]
        charts.append(combinations(shown, document["steps"], trained, served))
    if parts.get("features", {}).get("cells"):
        charts.append(heatmap(parts["features"], "relative_error"))
    return charts


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _section(section: Section, charts: Sequence[Chart], document: dict[str, Any]) -> str:
    if section.chart == "more" and not charts:
        return ""
    parts = [f"<h{section.level}>{_text(section.title)}</h{section.level}>", *map(_figure, charts)]
    blocks = list(section.blocks)
    if section.chart.startswith("changes"):  # what the caption says already
        blocks = [block for block in blocks if not isinstance(block, tuple)]
    if section.level == 1:
        parts.append(f'<p class="verdict {_severity(document)}">{_text(blocks.pop(0))}</p>')
    return "\n".join([*parts, *map(_block, blocks)])


def _severity(document: dict[str, Any]) -> str:
    found = {finding["severity"] for finding in document["findings"]}
    return next((severity for severity in ("error", "warning") if severity in found), "healthy")


def _figure(chart: Chart) -> str:
    chart.figure.update_layout(template="plotly_white", font={"family": "system-ui, sans-serif", "size": 12})
    found = str(chart.figure.to_json())
    for sign in "<>&\u2028\u2029":  # so that no text of a figure can end the block
        found = found.replace(sign, f"\\u{ord(sign):04x}")
    rows = chart.rows
    head = tuple(dict.fromkeys(key for row in rows for key in row))
    table = Table(head, tuple(tuple(_cell(row.get(key)) for key in head) for row in rows[:200]))
    name, height = _text(chart.name), int(chart.figure.layout.height or 340)
    return (
        f'<figure><div class="chart" role="img" aria-label="{_text(chart.alt)}" data-figure="{name}" '
        f'style="height: {height}px"></div><figcaption>{_text(chart.caption)}</figcaption>'
        f'<script type="application/json" id="{name}">{found}</script>'
        f"<details><summary>Numbers</summary>{_block(table)}</details></figure>"
    )


def _cell(value: Any) -> str:
    return "no data" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _block(block: str | tuple[str, ...] | Table) -> str:
    if isinstance(block, str):
        return f"<p>{_text(block)}</p>"
    if isinstance(block, tuple):
        return "<ul>" + "".join(f'<li class="note">{_text(item)}</li>' for item in block) + "</ul>"
    if not block.rows:
        return '<p class="note">none</p>'
    head = "".join(f"<th>{_text(cell)}</th>" for cell in block.head) if any(block.head) else ""
    rows = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in block.rows)
    more = f'<p class="note">and {block.left_out} more</p>' if block.left_out else ""
    many = ' class="many"' if len(block.head) > 3 else ""  # such a table scrolls sideways on a narrow page
    return f'<div class="wide"><table{many}>{"<tr>" + head + "</tr>" if head else ""}{rows}</table></div>{more}'


def _text(text: object) -> str:
    return html.escape(short(str(text)))
