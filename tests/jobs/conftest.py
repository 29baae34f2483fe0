"""A store with the demo in it, made once; every test that changes something takes a copy."""

import os
import shutil

import pytest
import torch

from eagle3dash.jobs import demo
from eagle3dash.store import Store

torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"  # for the worker processes: tests may run on a busy machine


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "store"
    with Store.open(folder) as store:
        demo.load(store)
    return folder


def copied(folder, to):
    """A store of its own; tensor files never change and are shared by hard links."""

    def copy(source, dest):
        return os.link(source, dest) if source.endswith(".safetensors") else shutil.copy2(source, dest)

    return shutil.copytree(folder, to, copy_function=copy)


@pytest.fixture
def demo_copy(demo_folder, tmp_path):
    return copied(demo_folder, tmp_path / "store")


@pytest.fixture
def store(demo_copy):
    """For a test that changes it."""
    with Store.open(demo_copy) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(demo_folder, tmp_path_factory):
    """For tests that only ask: what one of them computed, the others find."""
    with Store.open(copied(demo_folder, tmp_path_factory.mktemp("shared") / "store")) as opened:
        yield opened
