"""Cases on all cores, each worker with a healthy run of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from tests.lab.cases import everything
from tests.lab.healthy import Healthy
from tests.lab.table import Row, tried

LAB: dict[bool, Healthy] = {}  # of this process: on some texts, and on the whole demo


def prepare(folder: str, texts: Sequence[int]) -> None:
    """The healthy runs of a worker."""
    torch.set_num_threads(1)
    LAB[False] = Healthy(Path(tempfile.mkdtemp(dir=folder)), texts)
    LAB[True] = Healthy(Path(tempfile.mkdtemp(dir=folder)))


def one(title: str) -> Row:
    """The case of this title; without its change, a closure, which no process can be sent."""
    fault = next(fault for fault in everything() if fault.title == title)
    row = tried(LAB[fault.whole], [fault])[0]
    print(row.text(), flush=True)
    return row.bare()


def run(titles: Sequence[str], texts: Sequence[int]) -> list[Row]:
    """The rows of these cases, in this order."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=prepare, initargs=(folder, texts)) as pool,
    ):
        return list(pool.map(one, titles))
