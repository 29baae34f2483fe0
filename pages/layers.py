"""Which layer combination fits? The drafter replayed with every ordered choice of the captured states."""

import streamlit as st

from eagle3dash.charts import layers
from eagle3dash.jobs.questions import Question
from eagle3dash.web import asking, glossary, panels, pickers, views

panels.title(
    "Which layer combination fits the drafter?",
    "Each ordered choice of captured states through the drafter's fc; the one it was trained on stands out.",
)
glossary.words(*glossary.NUMBERS, "aux states", "HF[k]", "slot")
run = pickers.run()
role = pickers.capture(run)
question = Question("sweep", run.name, {"capture": role, "reading": pickers.reading(run)})
document = asking.answer(question, "Try every combination")
if document is None:
    st.stop()
trained, served = views.marked(run)
everything = st.toggle(f"Show all {len(document['rows'])} combinations", key="all", bind="query-params")
chosen = views.top(document["rows"], trained, served, everything)
panels.show(layers.combinations(chosen, document["steps"], trained, served, role), "layers")
