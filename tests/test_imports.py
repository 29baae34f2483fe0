"""The house's import rules (ARCHITECTURE.md), read from the code with `ast`."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "eagle3dash"
MAY = {  # package -> packages of ours that it may import
    "records": set(),
    "errors": set(),
    "formats": set(),
    "store": {"formats"},
    "drafter": {"formats"},
    "analysis": {"formats", "store", "drafter"},
    "jobs": {"formats", "store", "drafter", "analysis"},
    "charts": {"analysis"},
    "web": {"formats", "store", "drafter", "analysis", "jobs", "charts"},
    "cli": {"formats", "store", "drafter", "analysis", "jobs", "charts"},
    "__main__": {"cli"},
    "__init__": set(),
}
ONLY_IN = {
    "duckdb": {"store"},
    "plotly": {"charts"},
    "torch": {"formats", "drafter", "analysis", "jobs"},
    "streamlit": {"web", "pages", "app"},
    "transformers": {"formats"},
    "gguf": {"formats"},
}


def modules():
    yield from PACKAGE.rglob("*.py")
    yield from (ROOT / "pages").glob("*.py")
    yield ROOT / "app.py"


def room(path: Path) -> str:
    inside = path.relative_to(ROOT).parts
    name = inside[1] if inside[0] == "eagle3dash" else inside[0]
    return name.removesuffix(".py")


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", sorted(modules()), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_house(path):
    here = room(path)
    for name in imported(path):
        top = name.split(".")[0]
        if top in ONLY_IN:
            assert here in ONLY_IN[top], f"{path} imports {top}"
        if top == "eagle3dash" and "." in name and here not in ("pages", "app"):
            other = name.split(".")[1]
            assert other in {here, "records", "errors", "__version__"} | MAY[here], f"{path} imports {name}"


@pytest.mark.parametrize("path", sorted((ROOT / "pages").glob("*.py")), ids=lambda p: p.name)
def test_pages_have_no_logic(path):
    lines = path.read_text().count("\n")
    assert lines <= 60, f"{lines} lines"
    for name in imported(path):
        assert name.split(".")[0] not in {"pandas", "numpy", "duckdb", "plotly", "torch"}, name


@pytest.mark.parametrize("path", sorted(modules()), ids=lambda p: str(p.relative_to(ROOT)))
def test_files_stay_small(path):
    assert path.read_text().count("\n") <= 300
