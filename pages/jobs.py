"""What is the machine doing? Devices, the queue, what ran before."""

import streamlit as st

from eagle3dash.web import joblist, panels

panels.title(
    "What is the machine doing?",
    "One job at a time on each device, in order; imports have a lane of their own. Jobs go on without a browser.",
)
joblist.devices()
st.subheader("Queue", anchor=False)
joblist.queue()
st.subheader("Before", anchor=False)
joblist.history()
