"""Cards: an error, the verdict, a finding, what was checked. Sentences first, then what to do.

Text out of files is shown by st.code and st.text, or escaped (`words.safe`).
"""

from __future__ import annotations

import logging
import secrets
from typing import Any

import streamlit as st

from eagle3dash.analysis.held import SLOTS, rows_of
from eagle3dash.analysis.report import OUTCOMES
from eagle3dash.analysis.wording import by_engine, how_sure
from eagle3dash.errors import Eagle3Error, Missing
from eagle3dash.web import paths
from eagle3dash.web.words import name_of, safe, value

log = logging.getLogger("eagle3dash")
MOST_LINES = 20
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


def findings(document: dict[str, Any]) -> None:
    """Each finding as a card: what, the evidence in numbers, what to change (of the worst it stands under the verdict)."""
    told = worst(document)
    for finding in document["findings"]:
        badge, meaning = SEVERITY[finding["severity"]]
        with st.container(border=True):
            st.markdown(f"{badge} &nbsp;**{safe(finding['title'])}**", help=f"{finding['severity']}: {meaning}")
            left, right = st.columns([3, 2], gap="medium") if finding is not told else (st.container(), None)
            with left:
                st.caption(f"Evidence · `{finding['id']}`")
                evidence(finding["evidence"])
                st.caption(safe(how_sure(finding), 800))
            if right is not None:
                with right:
                    st.caption("What to change")
                    fix(finding["fix"])


def worst(document: dict[str, Any]) -> dict[str, Any] | None:
    """The finding that the verdict is about."""
    return next((finding for finding in document["findings"] if finding["severity"] != "info"), None)


def evidence(found: dict[str, Any]) -> None:
    """Numbers by name; where one is a list of records, a table of its own."""
    tables = {name: rows for name, rows in found.items() if isinstance(rows, list) and rows and isinstance(rows[0], dict)}
    plain = {name_of(name): safe(value(item)) for name, item in found.items() if name not in tables}
    st.table(plain, border="horizontal")
    for name, rows in tables.items():
        st.caption(name_of(name))
        told = rows_of(rows) if name in SLOTS else [{name_of(k): value(v) for k, v in row.items()} for row in rows]
        lines = [{key: safe(item) for key, item in row.items()} for row in told[:MOST_LINES]]
        st.table(lines, border="horizontal", hide_index=True)


def fix(text: str) -> None:
    """What to change, a line for each engine that it names."""
    st.markdown("\n".join(f"- {safe(part, 1000)}" for part in by_engine(text)))


def verdict(document: dict[str, Any]) -> None:
    """The sentence first. Its colour says how bad, and so do its icon and its words."""
    severities = {finding["severity"] for finding in document["findings"]}
    if "error" in severities:
        st.error(f"**{safe(document['verdict'], 800)}**", icon=":material/error:")
    elif "warning" in severities:
        st.warning(f"**{safe(document['verdict'], 800)}**", icon=":material/warning:")
    elif document["numbers"]["served"] is None or document["numbers"]["replayed_serving"] is None:
        st.info(f"**{safe(document['verdict'], 800)}**", icon=":material/info:")
    else:
        st.success(f"**{safe(document['verdict'], 800)}**", icon=":material/check_circle:")
    told = worst(document)
    if told:
        with st.container(border=True):
            st.caption("What to change")
            fix(told["fix"])


def notes(document: dict[str, Any]) -> None:
    """How to read the numbers of this run."""
    st.caption("\n".join(f"- {safe(note)}" for note in document["notes"]))


def checked(document: dict[str, Any]) -> None:
    """Every check that was made, with its outcome in words."""
    icons = {"passed": ":material/check:", "failed": ":material/close:", "noted": ":material/info:"}
    rows = sorted(document["checked"], key=lambda row: OUTCOMES.index(row["status"]))
    counts = [f"{sum(row['status'] == outcome for row in rows)} {outcome}" for outcome in OUTCOMES]
    with st.expander(f"What was checked: {', '.join(counts)}", icon=":material/checklist:"):
        lines = [
            {
                "outcome": f"{icons.get(row['status'], ':material/help:')} {row['status']}",
                "check": f"`{row['id']}`",
                "looks at": safe(row["looks_at"]),
                "to be checked": safe(row["needs"] or ""),
            }
            for row in rows
        ]
        st.table(lines, border="horizontal", hide_index=True)
