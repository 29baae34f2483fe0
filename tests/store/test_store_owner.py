"""One owner: others are told who and where; a lock outlives nobody."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from store_samples import add, log

from eagle3dash.errors import BadInput, Eagle3Error, StoreBusy
from eagle3dash.store import Store

SCRIPT = Path(__file__).parent / "crash_script.py"


@pytest.fixture
def other(tmp_path):
    """Another process that owns tmp_path."""
    process = subprocess.Popen(
        [sys.executable, SCRIPT, "hold", tmp_path], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_owner_is_told_where_the_first_is_and_gets_in_when_it_is_killed(tmp_path, other):
    with pytest.raises(StoreBusy, match=f"process {other.pid}.*http://127.0.0.1:8501") as busy:
        Store.open(tmp_path)
    assert (busy.value.url, busy.value.token) == ("http://127.0.0.1:8501", "secret")
    assert "secret" not in str(busy.value)
    other.kill()
    other.wait()
    assert "secret" in (tmp_path / "owner.lock").read_text()  # what a killed owner leaves behind locks nobody out
    with Store.open(tmp_path, url="http://127.0.0.1:9") as store:
        told = json.loads((tmp_path / "owner.lock").read_text())
        assert told == {"pid": os.getpid(), "url": "http://127.0.0.1:9", "token": None}
        assert store.runs() == []


def test_the_same_process_cannot_open_it_twice_either(store):
    with pytest.raises(StoreBusy) as busy:
        Store.open(store.folder)
    assert busy.value.url is None and "Wait" in str(busy.value)


def test_the_lock_file_is_for_the_owner_s_eyes_and_empty_when_nobody_owns(tmp_path):
    (tmp_path / "owner.lock").touch(0o666)
    with Store.open(tmp_path) as store:
        store.announce("http://127.0.0.1:8501", "a much longer token than before")
        store.announce("http://127.0.0.1:8501", "short")
        assert stat.S_IMODE((tmp_path / "owner.lock").stat().st_mode) == 0o600
        assert json.loads((tmp_path / "owner.lock").read_text())["token"] == "short"
    assert (tmp_path / "owner.lock").read_text() == ""


def test_a_new_store_is_closed_to_others(tmp_path):
    with Store.open(tmp_path / "deep" / "store") as store:
        assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


def test_a_catalogue_open_in_another_program_is_busy(tmp_path):
    Store.open(tmp_path).close()
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "catalog.duckdb"], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    process.stdout.readline()
    with pytest.raises(StoreBusy, match="another program"):
        Store.open(tmp_path)
    process.communicate("")
    Store.open(tmp_path).close()


def test_a_place_that_cannot_be_a_store_says_so(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "trap").mkdir()
    (tmp_path / "target").touch()
    (tmp_path / "trap" / "owner.lock").symlink_to(tmp_path / "target")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "trap"):
        with pytest.raises(BadInput, match="cannot be used as a store"):
            Store.open(folder)


def test_a_closed_store_answers_nobody(tmp_path):
    store = Store.open(tmp_path)
    add(store, "a", lambda s: log(1))
    store.close()
    with pytest.raises(Eagle3Error, match="closed"):
        store.runs()
    with pytest.raises(Eagle3Error, match="closed"):
        store.update_run("a", notes="n")
    with duckdb.connect(str(tmp_path / "catalog.duckdb")) as free:
        assert free.execute("SELECT name FROM run").fetchall() == [("a",)]
