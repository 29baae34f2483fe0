"""What differs between runs? Two to four runs on the same axes, and the settings in which they are not the same."""

import streamlit as st

from eagle3dash.charts import acceptance, compare
from eagle3dash.web import asking, glossary, overview, panels, pickers, views

panels.title(
    "What differs between these runs?", "The same numbers on the same axes, and the settings that are not the same."
)
glossary.words(*glossary.NUMBERS, "position", "survival", "d2t")
runs = pickers.runs()
known = asking.ask(overview.diagnoses(runs), "Diagnose the runs that have no verdict yet")
steps = overview.most_steps(runs)
panels.show(compare.numbers([(run.name, overview.numbers_of(run, known.get(run.name))) for run in runs], steps), "numbers")
served = compare.run_series([run.name for run in runs], [views.served_of(run) or {} for run in runs])
left, right = st.columns(2)
with left:
    panels.show(acceptance.histogram(served, steps, "served"), "histogram")
with right:
    panels.show(acceptance.by_position(served, steps, "survival", "served"), "survival")
st.subheader("Settings", anchor=False)
only = st.toggle("Only differences", value=True, key="differences", bind="query-params")
panels.table(views.differences(runs, only), "These runs have the same settings.", "settings")
