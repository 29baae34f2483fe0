"""The command line, and a store with the demo that it filled itself."""

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from eagle3dash.cli import main

ROOT = Path(__file__).parents[2]
torch.set_num_threads(1)


@dataclass
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def inside(*arguments):
    """The command line in this process: what most tests need, and fast."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:  # argparse on bad usage
            code = ended.code
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def eagle3dash():
    return inside


@pytest.fixture(scope="session")
def process():
    """The command line as a user starts it."""

    def start(*arguments, **environment):
        command = [sys.executable, "-m", "eagle3dash", *map(str, arguments)]
        env = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, timeout=300)

    return start


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "store"
    done = inside("demo", "--store", folder)
    assert done.returncode == 0, done.stderr
    assert "story-as-served, story-fixed" in done.stdout
    return folder
