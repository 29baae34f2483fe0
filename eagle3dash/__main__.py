"""`python -m eagle3dash`."""

import sys

from eagle3dash.cli import main

if __name__ == "__main__":
    sys.exit(main())
