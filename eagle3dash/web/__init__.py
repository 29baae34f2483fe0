"""The dashboard's own parts: its server side (routes, guard, state) and what pages share (widgets, pickers, answers).

With pages/ and app.py the only importer of Streamlit. Computes nothing: numbers come from jobs, pictures from charts.
"""
