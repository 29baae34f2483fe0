"""The main job in a real browser: files in, replay, sweep, verdict. Then bad files and big files."""

import re
import time
from pathlib import Path

from playwright.sync_api import Page, expect

DEMO = Path(__file__).parents[2] / "data" / "demo"
RUN = "from the browser"
SERVED = DEMO / "story-as-served"


def story_files() -> list[Path]:
    """What somebody would drop in one go: drafter, target's embeddings, both captures, the server's log and numbers."""
    folders = [DEMO / "drafter", DEMO / "target", DEMO / "training", SERVED / "serving", SERVED / "server"]
    return [path for folder in folders for path in sorted(folder.iterdir())]


def upload(page: Page, files: list[Path]) -> None:
    page.goto("/imports")
    expect(page.get_by_role("heading", name="Which files belong to a run?")).to_be_visible()
    page.locator("input.pick-files").set_input_files(files)


def bring_in(page: Page, run: str) -> None:
    """Fills the form that appears when the files have arrived, and starts the import."""
    page.get_by_label("Name of a new run").fill(run)
    page.get_by_role("button", name="Import", exact=True).click()


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])


def test_from_files_to_the_reason(page):
    upload(page, story_files())
    bring_in(page, RUN)
    expect(page.get_by_text("Added to the run from the browser")).to_be_visible()

    page.goto(f"/acceptance?run={RUN}")
    page.get_by_role("button", name="Replay the drafter on this run's captures").click()
    expect(page.get_by_text("replayed on serving features").first).to_be_visible()
    expect(page.locator(".js-plotly-plot").first).to_be_visible()

    page.goto(f"/layers?run={RUN}")
    page.get_by_role("button", name="Try every combination").click()
    chart = page.locator(".js-plotly-plot").first
    expect(chart).to_be_visible()
    expect(chart).to_contain_text(re.compile("0 · 2 · 15 .* trained"))

    page.goto(f"/diagnosis?run={RUN}")
    page.get_by_role("button", name="Diagnose this run").click()
    verdict = page.get_by_text("The drafter was trained on states 0, 2, 15; the server feeds 2, 15, 27").first
    expect(verdict).to_be_visible()
    expect(page.get_by_text("wrong-aux-states").first).to_be_visible()
    expect(page.get_by_text(re.compile(r'"eagle_aux_hidden_state_layer_ids": \[0, 2, 15\]')).first).to_be_visible()

    page.reload()  # the answer is kept
    expect(verdict).to_be_visible()


def test_the_same_files_again_are_stored_once(page):
    upload(page, [SERVED / "server" / "server.log"])
    bring_in(page, RUN)
    expect(page.get_by_text("known already, stored once")).to_be_visible()


def test_a_truncated_file_is_a_message_and_nothing_else(page, server, tmp_path):
    whole = (SERVED / "serving" / "0-b8e4c8b7.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[: len(whole) // 2])
    upload(page, [tmp_path / "cut.safetensors"])
    bring_in(page, "never stored")
    expect(page.get_by_text("cut.safetensors").first).to_be_visible()
    expect(page.get_by_text("Nothing was stored")).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)
    page.goto("/")
    expect(page.get_by_text(RUN).first).to_be_visible()
    expect(page.get_by_text("never stored")).to_have_count(0)


def test_a_large_upload_leaves_the_servers_memory_alone(page, server, tmp_path):
    large, size = tmp_path / "large.bin", 400 << 20
    with large.open("wb") as file:
        file.truncate(size)
    upload(page, [])
    before, most = resident(server.pid), 0
    page.locator("input.pick-files").set_input_files(large)
    ready = page.get_by_role("button", name="Import", exact=True)
    deadline = time.monotonic() + 300
    while not ready.is_visible() and time.monotonic() < deadline:
        most = max(most, resident(server.pid))
        page.wait_for_timeout(50)
    expect(ready).to_be_visible()
    assert most - before < 150 << 20, f"{(most - before) >> 20} MiB more for a file of {size >> 20} MiB"
