"""`python -m eagle3dash.web`: Streamlit's server with app.py. Ctrl-C is the usual way to end it, and no error."""

import sys

import click
from streamlit.web.cli import main

try:
    main(["run", "app.py", *sys.argv[1:]], standalone_mode=False)
except click.Abort:
    print("\n  eagle3dash has stopped.", flush=True)
except click.ClickException as error:
    error.show()
    sys.exit(error.exit_code)
