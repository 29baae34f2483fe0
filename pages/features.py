"""Do the serving features equal the training features? Each state of training against each fed in serving."""

import streamlit as st

from eagle3dash.charts import features
from eagle3dash.jobs.questions import Question
from eagle3dash.web import asking, panels, pickers
from eagle3dash.web import features as parts

panels.title(
    "Do the serving features equal the training features?",
    "The same texts, token by token: what the drafter learned on, and what the server feeds it.",
)
run = pickers.run()
question = Question("features", run.name)
document = asking.answer(question, "Compare the two captures")
if document is None:
    st.stop()
found = parts.judged(run, document)
parts.answer(document, found)
parts.difference(document)
parts.table(document, found)
if parts.mask_is_off(document):
    parts.mask(document)
if document["aligned_tokens"]:
    quantity = pickers.choice(
        "Shown in the cells", list(features.QUANTITIES), "quantity", features.QUANTITIES.get, features.MEANING
    )
    panels.show(features.heatmap(document, quantity, found.slots), "heatmap")
if found.slots:
    points = parts.points(question, found, document)
    where = [slot.numbers.get("break") for slot in found.slots]
    panels.show(features.over_position(points, where, document["worst"], parts.boundaries(run)), "position")
speaking, quiet = parts.charts(document, found)
for chart in speaking:
    panels.show(chart, chart.name)
with st.expander("All tests, and the loss mask of training", icon=":material/checklist:"):
    parts.tests(document)
    for chart in quiet:
        panels.show(chart, chart.name)
    if not parts.mask_is_off(document):
        parts.mask(document)
