"""A store with the demo, filled by the command line itself, and the command line as a user starts it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments, **more):
    """The finished process of `python -m eagle3dash ...`."""
    command = [sys.executable, "-m", "eagle3dash", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **more.pop("env", {})}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=300, **more)


@pytest.fixture(scope="session")
def eagle3dash():
    return run


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "store"
    done = run("demo", "--store", folder)
    assert done.returncode == 0, done.stderr
    assert "story-as-served, story-fixed" in done.stdout
    return folder
