"""Where did the accepted tokens go? The verdict, the four numbers that prove it, what to change."""

import streamlit as st

from eagle3dash.charts import waterfall
from eagle3dash.charts.changes import changes
from eagle3dash.jobs.questions import Question
from eagle3dash.web import asking, cards, glossary, panels, pickers, reports

panels.title(
    "Where did the accepted tokens go?",
    "Four accept lengths on one scale; the drop between two neighbours locates the fault.",
)
glossary.words(*glossary.DIAGNOSIS)
run = pickers.run()
reading = pickers.reading(run)
document = asking.answer(Question("diagnose", run.name, {"reading": reading}), "Diagnose this run")
if document is None:
    st.stop()
cards.verdict(document)
panels.show(waterfall.of_diagnosis(document), "waterfall")
cards.notes(document)
cards.findings(document)
for role, rows in document["changes"].items():
    panels.show(changes(rows, document["steps"], role), f"changes {role}")
cards.checked(document)
with st.container(horizontal=True):
    reports.downloads(run, document, reading)
    panels.copy_link()
