"""Which files belong to a run? Bring them in, see what was read from them, correct what a person knows better."""

import streamlit as st

from eagle3dash.web import glossary, imports, inventory, panels

panels.title(
    "Which files belong to a run?",
    "Drafter, captures, logs, target: what each file is, is read from its content. The same content is stored once.",
)
glossary.words("aux states", "capture", "drafter", "HF[k]", "K", "slot", "target", "window")
source = imports.source()
if source is not None:
    imports.form(source)
imports.result()
st.subheader("What each run has", anchor=False)
inventory.inventory()
