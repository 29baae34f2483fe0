"""The upload field of the Imports page: a Streamlit component whose browser side sends files to `web.upload`.

st.file_uploader is not used: it holds every file in the server's memory, twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

HERE = Path(__file__).parent
_component = st.components.v2.component(
    "eagle3dash_uploader",
    html=(HERE / "uploader.html").read_text(),
    css=(HERE / "uploader.css").read_text(),
    js=(HERE / "uploader.js").read_text(),
)


def uploader() -> dict[str, Any] | None:
    """{"id", "files": [{name, size}]} once all chosen files have arrived whole, else None."""
    generation = st.session_state.setdefault("upload_generation", 0)
    result = _component(
        key=f"upload_{generation}",
        data={"generation": generation, "told": st.session_state.get("upload_told", "")},
        on_upload_change=lambda: None,
    )
    upload = result.upload
    st.session_state["upload_told"] = upload["told"] if upload else ""
    return upload


def forget() -> None:
    """Empties the field: its files were imported."""
    st.session_state["upload_generation"] = st.session_state.get("upload_generation", 0) + 1
    st.session_state["upload_told"] = ""
