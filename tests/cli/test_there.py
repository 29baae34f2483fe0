"""The command line while a dashboard owns the store: the same answers, over HTTP."""

import json
import socket
import threading
import time

import pytest
import uvicorn
from starlette.applications import Starlette

from eagle3dash.web import api, state


@pytest.fixture(scope="module")
def busy(demo_store):
    """The folder of a store that a server owns. The server is the one that serves the dashboard, without its pages."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=api.ROUTES), port=port, log_level="error"))
    thread = threading.Thread(target=server.run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EAGLE3DASH_STORE", str(demo_store))
        state.start(f"http://127.0.0.1:{port}")
        thread.start()
        while not server.started:
            time.sleep(0.02)
        yield demo_store
        server.should_exit = True
        thread.join()
        state.close()


def test_questions_go_through_the_dashboard(eagle3dash, busy):
    done = eagle3dash("replay", "story-as-served", "--store", busy, "--json")
    assert done.returncode == 0, done.stderr
    assert round(json.loads(done.stdout)["accept_length"], 4) == 1.7473
    found = eagle3dash("diagnose", "story-as-served", "--store", busy, "--json")
    assert found.returncode == 1
    assert json.loads(found.stdout)["findings"][0]["id"] == "wrong-aux-states"


def test_imports_runs_demo_and_backup_too(eagle3dash, busy, tmp_path):
    log = tmp_path / "server.log"
    line = "[2026-01-01 10:00:00] Decode batch. #running-req: 1, accept len: 1.60, accept rate: 0.40, cuda graph: True\n"
    log.write_text(line)
    done = eagle3dash("import", log, "--run", "remote", "--store", busy)
    assert done.returncode == 0, done.stderr
    assert "added to remote" in done.stdout
    assert "remote" in eagle3dash("runs", "--store", busy).stdout
    assert eagle3dash("settings", "remote", "--temperature", "0.7", "--store", busy).stdout == "temperature: 0.7\n"
    assert "story-fixed" in eagle3dash("demo", "--store", busy).stdout
    assert eagle3dash("backup", tmp_path / "copy", "--store", busy).returncode == 0
    assert (tmp_path / "copy" / "catalog.duckdb").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(("replay", "nobody"), "nobody"), (("import", "no/such/file"), "cannot be opened")],
)
def test_errors_are_the_same_sentences(eagle3dash, busy, arguments, text):
    done = eagle3dash(*arguments, "--store", busy)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr


def test_the_doctor_says_who_owns_it(eagle3dash, busy):
    done = eagle3dash("doctor", "--store", busy)
    assert done.returncode == 0
    assert "runs the dashboard at http://127.0.0.1" in done.stdout
