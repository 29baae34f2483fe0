"""The words of the dashboard, each in one sentence, for whoever meets them for the first time."""

from __future__ import annotations

import streamlit as st

from eagle3dash.web.words import safe

WORDS = {
    "accept length": "tokens that a round gives: 1 + the mean of the accepted drafted tokens; the target's own token, the "
    "bonus, counts",
    "acceptance rate": "accepted drafted tokens / drafted tokens, 0 to 1; the bonus token does not count",
    "alpha": "how often a position is accepted, of the rounds in which all positions before it were",
    "aux states": "the states that the drafter's fc reads, usually three, in order",
    "capture": "hidden states of the target over some texts: written in training, or by the server while it serves",
    "d2t": "the map from draft ids to target ids: target id = i + d2t[i]",
    "drafter": "the small EAGLE-3 model that proposes tokens; the target checks them",
    "HF[k]": "the target's hidden state after k of its layers; HF[0] is the output of the embeddings. Layer ids of every "
    "tool are turned into these numbers",
    "K": "the most tokens that a round may draft",
    "per round": "over the rounds that a server would start: after a round the next one starts past what was accepted. "
    "What servers report",
    "per row": "over every position of the text. What training reports. Higher than per round where easy stretches "
    "are long, and no fault",
    "position": "place in the draft, from 0",
    "replay": "the drafter run here, on captured states, step by step as a server runs it, greedily",
    "round": "one cycle of drafting and checking",
    "slot": "a place among the states that a capture holds, counted from 0; which HF[k] lies in it may have to "
    "be found out",
    "survival": "how often a position and all before it are accepted; accept length = 1 + the sum over positions",
    "target": "the large model that is served",
    "window": "one line of a log: what was accepted since the line before",
}
NUMBERS = ("accept length", "drafter", "K", "per round", "per row", "replay", "round", "target")
DIAGNOSIS = (*NUMBERS, "acceptance rate", "aux states", "capture", "d2t", "HF[k]", "position", "slot", "survival", "window")


def words(*names: str) -> None:
    """A button that shows what these words mean, in alphabetical order."""
    with st.popover("Words", icon=":material/dictionary:", type="tertiary", help="What the words on this page mean"):
        st.markdown("\n".join(f"- **{safe(name)}**: {safe(WORDS[name])}" for name in sorted(names, key=str.lower)))
