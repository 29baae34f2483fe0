"""The real server, as `streamlit run app.py` starts it: its address, its guard, its memory under an upload, its end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from eagle3dash.store import Store

ROOT = Path(__file__).parents[2]
MB = 1 << 20


def resident(pid):
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A running dashboard: (process, address, token)."""
    store = tmp_path_factory.mktemp("server") / "store"
    log = (store.parent / "log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", "0"],
        cwd=ROOT,
        env={**os.environ, "EAGLE3DASH_STORE": str(store)},
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    told, lock = {}, store / "owner.lock"
    for _ in range(600):
        told = json.loads(lock.read_text() or "{}") if lock.exists() else {}
        if told.get("url") or process.poll() is not None:
            break
        time.sleep(0.1)
    assert told.get("url"), (store.parent / "log").read_text()
    yield process, told["url"], told["token"]
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def http(server):
    with httpx.Client(base_url=server[1], timeout=30, trust_env=False) as client:
        for _ in range(100):  # the address is announced a moment before the socket is served
            try:
                client.get("/_stcore/health")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield client


def test_pages_are_served_and_the_demo_comes_by_itself(http, server):
    assert "<title>" in http.get("/").text
    names = set()
    for _ in range(300):
        names = {run["name"] for run in http.get("/api/runs", headers={"X-Eagle3dash-Token": server[2]}).json()["runs"]}
        if len(names) == 2:
            break
        time.sleep(0.2)
    assert names == {"story-as-served", "story-fixed"}


def test_other_names_and_pages_are_refused(http):
    assert http.get("/", headers={"host": "evil.com"}).status_code == 403
    upgrade = {
        "connection": "upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    for foreign in ("http://evil.com", "http://localhost:9999"):
        assert http.get("/_stcore/stream", headers={**upgrade, "origin": foreign}).status_code == 403
        assert (
            http.put(f"/api/upload/{'a' * 32}/x?offset=0&size=1", content=b"1", headers={"origin": foreign}).status_code
            == 403
        )


def test_a_large_upload_leaves_the_memory_flat(http, server):
    piece, count, upload = os.urandom(8 * MB), 48, "b" * 32
    size = len(piece) * count
    http.put(f"/api/upload/{upload}/warm.bin?offset=0&size=1", content=b"1")
    before = resident(server[0].pid)
    most = before
    for n in range(count):
        answer = http.put(f"/api/upload/{upload}/big.bin?offset={n * len(piece)}&size={size}", content=piece)
        assert answer.json() == {"have": (n + 1) * len(piece)}
        most = max(most, resident(server[0].pid))
    assert most - before < 100 * MB  # of 384 MB sent
    http.delete(f"/api/upload/{upload}")


def test_the_server_ends_with_its_children(server):
    process = server[0]
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True
    ).stdout.split()
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)
    for _ in range(100):
        left = [child for child in children if Path(f"/proc/{child}").exists()]
        if not left:
            break
        time.sleep(0.1)
    assert children and not left


def test_ctrl_c_is_no_error(tmp_path):
    store = tmp_path / "store"
    with Store.open(store) as used:  # else it would be given the demo
        used.update_job(used.add_job("demo", None, {}, "demo"), state="cancelled")
    process = subprocess.Popen(
        [sys.executable, "-m", "eagle3dash", "serve"],
        cwd=ROOT,
        env={**os.environ, "EAGLE3DASH_STORE": str(store), "STREAMLIT_SERVER_PORT": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said = [process.stdout.readline() for _ in range(2)]
        assert "eagle3dash: http" in "".join(said)
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        rest, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0
    assert "has stopped" in rest and "Abort" not in rest and "Traceback" not in rest
