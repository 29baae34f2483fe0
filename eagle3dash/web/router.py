"""The frame around every page: page configuration, the menu, and what happens to an error.

The script of the app. The pages lie in another folder than this script on purpose: a pages/ folder beside it would make
Streamlit run a page without this frame for the first visitor of a deep link.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from eagle3dash.errors import Eagle3Error
from eagle3dash.web import cards, paths

MENU = {
    "": [
        st.Page(paths.OVERVIEW, title="Overview", icon=":material/monitor_heart:", default=True),
        st.Page(paths.DIAGNOSIS, title="Diagnosis", icon=":material/troubleshoot:"),
    ],
    "Evidence": [
        st.Page(paths.ACCEPTANCE, title="Acceptance", icon=":material/bar_chart:"),
        st.Page(paths.FEATURES, title="Features", icon=":material/grid_on:"),
        st.Page(paths.LAYERS, title="Layers", icon=":material/layers:"),
        st.Page(paths.DRAFTER, title="Drafter", icon=":material/psychology:"),
        st.Page(paths.COMPARE, title="Compare", icon=":material/compare_arrows:"),
    ],
    "Workshop": [
        st.Page(paths.IMPORTS, title="Imports", icon=":material/upload_file:"),
        st.Page(paths.JOBS, title="Jobs", icon=":material/pending_actions:"),
    ],
}

HERE = Path(__file__).parent
st.set_page_config(page_title="eagle3dash", page_icon=str(HERE / "icon.svg"), layout="wide")
st.logo(str(HERE / "logo.svg"), icon_image=str(HERE / "icon.svg"), size="large")
page = st.navigation(MENU)
try:
    page.run()
except Eagle3Error as problem:
    cards.error(problem)
