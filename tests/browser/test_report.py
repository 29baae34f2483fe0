"""The HTML report in a real browser: it asks nobody, runs nothing of a file's text, and shows its pictures."""

from datetime import UTC, datetime

import pytest

from eagle3dash.analysis.findings import Evidence, diagnose
from eagle3dash.analysis.report import markdown
from eagle3dash.charts import report
from eagle3dash.jobs.summary import about
from eagle3dash.records import Import, Log, Run, Source, Window

HOSTILE = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>$\\href{javascript:window.hacked=1}{x}$"
SPEC = {"line": 1, "accept_length": 2.5, "rounds": 400, "survival": (0.7, 0.5, 0.3)}


def hostile_report():
    """Of a run whose every text is hostile: its name, its files, its settings, the facts of its log."""
    fact = {"id": "ranks-disagree", "line": 3, "rank": "TP1", "fact": HOSTILE}
    log = Log("vllm", "vllm", HOSTILE, 3, (Window(**SPEC),), (), {"warnings": [fact], "model": f"</script>{HOSTILE}"})
    item = Import("log", HOSTILE, "0" * 64, (Source(f"{HOSTILE}|`", 12, "0" * 64),), log)
    run = Run(HOSTILE, "today", (item,), {HOSTILE: HOSTILE, "expected": 0.7}, (), HOSTILE)
    document = diagnose(Evidence(3, logs=(item,), settings=run.settings))
    return document, about(run, datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def alone(chromium):
    """A page without network; what it asks for, what its console says."""
    context = chromium.new_context(viewport={"width": 1200, "height": 900}, offline=True)
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page, said, asked
    context.close()


def test_a_hostile_run_makes_an_inert_report(alone, tmp_path):
    page, said, asked = alone
    document, told = hostile_report()
    assert document["findings"][0]["id"] == "ranks-differ"
    file = tmp_path / "report.html"
    file.write_text(report.page(document, told, report.pictures(document, {})), encoding="utf-8")
    page.goto(file.as_uri())
    drawn = page.locator(".chart .main-svg")
    drawn.first.wait_for(timeout=60_000)
    assert page.locator(".chart.js-plotly-plot").count() == 2
    box = page.locator(".chart").first.bounding_box()
    assert box["width"] > 300 and box["height"] > 300
    assert page.get_by_text("Ranks were loaded differently").count() > 0
    assert page.evaluate("window.hacked === undefined")
    assert page.locator("a, img, iframe, form").count() == 0
    assert page.locator("text=window.hacked=1").count() > 0  # shown as it is
    assert not said, said
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_the_policy_of_the_report_stops_what_is_not_its_own(alone, tmp_path):
    page, said, _ = alone
    text = report.page(*hostile_report())
    file = tmp_path / "report.html"
    file.write_text(text.replace("</body>", "<script>window.hacked=1</script></body>"), encoding="utf-8")
    page.goto(file.as_uri())
    page.locator(".chart .main-svg").first.wait_for(timeout=60_000)
    assert page.evaluate("window.hacked === undefined")
    assert any("Content Security Policy" in line for line in said)


def test_markdown_of_a_hostile_run_has_no_markup_of_it():
    text = markdown(*hostile_report())
    assert "<script" not in text.replace("\\<script", "")
    assert "$\\href" not in text.replace("\\$\\\\href", "")
    assert "ranks-differ" in text
