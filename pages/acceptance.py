"""How many tokens are accepted? The distribution, by position, over time; served against replayed on the same axes."""

import streamlit as st

from eagle3dash.charts import acceptance
from eagle3dash.web import asking, glossary, panels, pickers, views

panels.title(
    "How many tokens are accepted?",
    "What the server reported beside what the drafter does when we run it, on the same axes.",
)
glossary.words(*glossary.NUMBERS, "position", "survival", "alpha", "window")
run = pickers.run()
steps = views.steps_of(run)
known = asking.ask(views.replays(run, steps, pickers.reading(run)), "Replay the drafter on this run's captures")
series = views.acceptance_series(run, known)
panels.metrics(series, steps)
panels.show(acceptance.histogram(series, steps), "histogram")
left, right = st.columns(2)
with left:
    panels.show(acceptance.by_position(series, steps, "survival"), "survival")
with right:
    panels.show(acceptance.by_position(series, steps, "alpha"), "alpha")
log = pickers.log(run)
if log is not None:
    points = views.log_points(log)
    panels.show(acceptance.over_time(points, steps, views.replayed(series), views.point_of(log)), "time")
