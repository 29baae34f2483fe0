"""Killed at any moment, or out of disk: what was acknowledged is whole, what was not is gone without a trace."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from store_samples import content

from eagle3dash.store import Store

SCRIPT = Path(__file__).parent / "crash_script.py"


def start(what, folder):
    return subprocess.Popen(
        [sys.executable, SCRIPT, what, folder], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )


def assert_whole(store, names):
    """Every run of `names` is there with all its parts, and nothing else is, neither rows nor files."""
    assert {run.name for run in store.runs()} == set(names)
    for name in names:
        number = int(name.split()[1])
        held, logged = store.run(name).imports
        assert store.tensor_path(held.tensors[0]).read_bytes() == content(number, 200_000)
        assert store.frame("log_windows", log=logged.sha256).windows.sum() == 50
        assert store.frame("rounds_histogram", log=logged.sha256).rounds.sum() == 2
    assert store.verify() == []
    assert len(list((store.folder / "tensors").iterdir())) == len(names)
    assert list((store.folder / "staging").iterdir()) == []


@pytest.mark.parametrize("what", ["files staged", "file moved", "files moved", "half the rows", "rows not committed"])
def test_an_import_killed_before_its_commit_leaves_nothing(tmp_path, what):
    process = start(what, tmp_path)
    told = process.communicate(timeout=60)[0]
    assert process.returncode == -signal.SIGKILL and told.splitlines() == ["run 1"]
    with Store.open(tmp_path) as store:
        assert_whole(store, ["run 1"])


def test_an_import_killed_after_its_commit_is_there(tmp_path):
    process = start("committed", tmp_path)
    told = process.communicate(timeout=60)[0]
    assert process.returncode == -signal.SIGKILL and told.splitlines() == ["run 1"]
    with Store.open(tmp_path) as store:
        assert_whole(store, ["run 1", "run 2"])


def test_a_purge_killed_between_rows_and_files_is_finished_at_the_next_opening(tmp_path):
    process = start("purge committed", tmp_path)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL and len(list((tmp_path / "tensors").iterdir())) == 1
    with Store.open(tmp_path) as store:
        assert_whole(store, [])
        assert store.trash() == []


def test_killed_at_any_moment_nothing_acknowledged_is_lost(tmp_path):
    acknowledged = []
    for round_ in range(3):
        folder = tmp_path / str(round_)
        process = start("loop", folder)
        acknowledged = [process.stdout.readline().strip()]
        time.sleep(0.15 * round_)
        process.kill()
        acknowledged += [line for line in process.communicate()[0].splitlines() if line]
        with Store.open(folder) as store:
            names = {run.name for run in store.runs()}
            assert set(acknowledged) <= names and len(names) <= len(acknowledged) + 1  # the last may be stored but not told
            assert_whole(store, sorted(names))


def test_a_full_disk_is_said_and_costs_nothing(tmp_path):
    process = start("full", tmp_path)
    told = process.communicate(timeout=60)[0].splitlines()
    assert process.returncode == 0
    assert [line.split(":")[0] for line in told] == ["run 1", "full", "full", "run 4"]
    assert all("Free some space" in line for line in told[1:3])
    with Store.open(tmp_path) as store:
        assert_whole(store, ["run 1", "run 4"])


def test_a_disk_full_after_the_commit_costs_nothing_and_the_store_goes_on(tmp_path):
    process = start("full at checkpoint", tmp_path)
    told = process.communicate(timeout=60)[0].splitlines()
    assert process.returncode == 0
    assert told == ["run 1", "['run 1', 'run 2']", "['run 1', 'run 2', 'run 3']"]
    assert (tmp_path / "catalog.duckdb.wal").stat().st_size > 100_000  # no checkpoint could take it in
    with Store.open(tmp_path) as store:
        assert [len(run.logs[0].record.windows) for run in store.runs()] == [4000, 4000, 50]
