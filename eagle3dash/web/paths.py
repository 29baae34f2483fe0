"""The page files, by name: for the navigation and for links between pages."""

from __future__ import annotations

from pathlib import Path

PAGES = Path(__file__).parents[2] / "pages"
OVERVIEW = PAGES / "overview.py"
DIAGNOSIS = PAGES / "diagnosis.py"
ACCEPTANCE = PAGES / "acceptance.py"
FEATURES = PAGES / "features.py"
LAYERS = PAGES / "layers.py"
DRAFTER = PAGES / "drafter.py"
COMPARE = PAGES / "compare.py"
IMPORTS = PAGES / "imports.py"
JOBS = PAGES / "jobs.py"
