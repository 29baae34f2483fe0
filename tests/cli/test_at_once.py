"""Commands that run at the same time on one store wait for each other; one that is killed leaves nothing behind."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "data" / "demo"


def started(store, *words):
    command = [sys.executable, "-m", "eagle3dash", *map(str, words), "--store", str(store)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_three_imports_of_the_same_files_at_once(tmp_path):
    running = [started(tmp_path / "store", "import", DEMO / "drafter", "--run", "same", "--json") for _ in range(3)]
    answers = [process.communicate(timeout=240) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], answers
    assert sorted(json.loads(out)["added"][0]["known"] for out, _ in answers) == [False, True, True]
    assert len(list((tmp_path / "store" / "tensors").iterdir())) == 1


def test_killed_in_the_middle_of_an_import(tmp_path):
    store = tmp_path / "store"
    for kind, code, says in ((signal.SIGKILL, -9, ""), (signal.SIGINT, 130, "interrupted; what was not finished")):
        process = started(store, "import", DEMO / "training", DEMO / "drafter", "--run", "r")
        until = time.monotonic() + 120
        while not list(store.glob("staging/*/.reading-*/*")) and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(kind)
        _, told = process.communicate(timeout=60)
        assert process.returncode == code and says in told
        assert list((store / "tensors").iterdir()) == []
        again = started(store, "runs", "--json")
        assert json.loads(again.communicate(timeout=120)[0]) == {"runs": []}
        assert list((store / "staging").iterdir()) == []
