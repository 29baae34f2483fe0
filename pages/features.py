"""Do the serving features equal the training features? Each state of training against each fed in serving."""

import streamlit as st

from eagle3dash.charts import features
from eagle3dash.jobs.questions import Question
from eagle3dash.web import asking, cards, panels, pickers, views

panels.title(
    "Do the serving features equal the training features?",
    "The same texts, token by token: what the drafter learned on, and what the server feeds it.",
)
run = pickers.run()
question = Question("features", run.name)
document = asking.answer(question, "Compare the two captures")
if document is None:
    st.stop()
cards.matches(document)
quantity = pickers.choice(
    "Shown in the cells", list(features.QUANTITIES), "quantity", features.QUANTITIES.get, features.MEANING
)
panels.show(features.heatmap(document, quantity), "heatmap")
points = views.position_points(question, document, quantity)
panels.show(features.over_position(points, quantity, views.breaks(document)), "position")
