"""Cards: an error, a finding, a gap. Sentences first, then what to do.

Text out of files is shown by st.code and st.text, or escaped (`words.safe`).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from typing import Any

import streamlit as st

from eagle3dash.errors import Eagle3Error, Missing
from eagle3dash.web import paths, words
from eagle3dash.web.words import name_of, safe, value

log = logging.getLogger("eagle3dash")
SEVERITY = {
    "error": (":red-badge[:material/error: error]", "costs acceptance now"),
    "warning": (":orange-badge[:material/warning: warning]", "likely, or latent"),
    "info": (":gray-badge[:material/info: info]", "worth knowing"),
}


def error(problem: Eagle3Error) -> None:
    """What an error of ours says, and the way to the Imports page when a file is missing."""
    if isinstance(problem, Missing):
        st.info(safe(problem), icon=":material/upload_file:")
        st.page_link(paths.IMPORTS, label="Add it on the Imports page", icon=":material/arrow_forward:")
    else:
        st.error(safe(problem), icon=":material/error:")


def on_script_error(problem: Exception) -> bool:
    """Called by Streamlit for whatever a page did not catch. Of a fault of ours only a number reaches the browser."""
    if isinstance(problem, Eagle3Error):
        error(problem)
        return True
    number = secrets.token_hex(4)
    log.error("fault %s", number, exc_info=problem)
    st.error(
        f"Something went wrong on our side. The server's log has the details under the number `{number}`. "
        "Nothing of yours was changed; reload the page, and report the number if it happens again.",
        icon=":material/report:",
    )
    return True


def findings(found: Sequence[dict[str, Any]]) -> None:
    """Each finding as a card: what, the evidence in numbers, what to change."""
    for finding in found:
        badge, meaning = SEVERITY[finding["severity"]]
        with st.container(border=True):
            st.markdown(f"{badge} &nbsp;**{safe(finding['title'])}**", help=f"{finding['severity']}: {meaning}")
            evidence, fix = st.columns([3, 2], gap="medium")
            with evidence:
                st.caption(f"Evidence · `{finding['id']}`")
                st.table(
                    {name_of(key): safe(value(item)) for key, item in finding["evidence"].items()}, border="horizontal"
                )
            with fix:
                st.caption("What to change")
                st.code(finding["fix"], language=None, wrap_lines=True)


def gaps(missing: Sequence[dict[str, Any]]) -> None:
    """Checks that could not be made, and the file that would allow each."""
    if not missing:
        return
    with st.expander(f"Could not check: {len(missing)}", icon=":material/help:"):
        st.table([{"check": safe(gap["id"]), "needs": safe(gap["needs"])} for gap in missing], border="horizontal")


def matches(document: dict[str, Any]) -> None:
    """What the features say, in one sentence: which training state each slot of serving holds."""
    held = "; ".join(
        f"slot {cell['serving_slot']} ({words.state(cell['serving_state'])} by its name) holds "
        + (f"**{words.state(cell['training_state'])}**" if cell["matches"] else "**no captured training state**")
        for cell in document["best_cells"]
    )
    lag = document["lag"]
    shift = "" if not lag else f" Serving lags by {lag} token{'s' if abs(lag) != 1 else ''}."
    st.markdown(f"Over {document['aligned_tokens']:,} aligned tokens: {held}.{shift}")
