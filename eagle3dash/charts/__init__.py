"""Numbers -> plotly figures. The only package that imports plotly; it knows no Streamlit, no store and no torch.

Every function takes plain data (dicts, tuples, lists of dicts) and returns a `Chart`: the figure with its caption, its
alternative text and the numbers behind it.
"""
