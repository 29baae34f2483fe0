"""A real dashboard in a process of its own, and a real Chromium that looks at it.

The store was used before and is empty: a store that was never used would be given the demo, and these tests bring the
files in themselves. Chromium's own chatter with the network is off.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from eagle3dash.store import Store

ROOT = Path(__file__).parents[2]
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 240_000  # ms; a replay of the demo takes seconds on a free machine, minutes on a busy one
expect.set_options(timeout=PATIENCE)


@dataclass(frozen=True)
class Server:
    url: str
    pid: int
    store: Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_up(url: str, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=5) as reply:
                if reply.status == 200:
                    return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"the dashboard did not come up:\n{log.read_text()}")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    store = folder / "store"
    with Store.open(store) as fresh:
        fresh.update_job(fresh.add_job("demo", None, {}, "demo"), state="cancelled")
    port, log = free_port(), folder / "server.log"
    command = [sys.executable, "-m", "streamlit", "run", "app.py"]
    options = ["--server.port", str(port), "--server.address", "127.0.0.1"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command + options, cwd=ROOT, env={**os.environ, "EAGLE3DASH_STORE": str(store)}, stdout=out, stderr=out
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_up(url, process, log)
        yield Server(url, process.pid, store)
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture(scope="session")
def chromium():
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    assert found, "no Chromium on the PATH: run `make install`"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, server):
    """A page that fails the test when it asks anybody but the dashboard, or when a script of a page fails."""
    context = chromium.new_context(viewport={"width": 1400, "height": 1000}, base_url=server.url)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    foreign, broken = [], []
    page.on("request", lambda r: None if r.url.startswith((server.url, "data:", "blob:")) else foreign.append(r.url))
    page.on("pageerror", lambda error: broken.append(str(error)))
    yield page
    context.close()
    assert not foreign, f"requests to others: {foreign}"
    assert not broken, f"errors in the page: {broken}"
