"""The command line: exit codes, what goes to stdout and what to stderr, and the numbers of the demo."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

DEMO = Path(__file__).parents[2] / "data" / "demo"


def document(done):
    assert not done.stderr, done.stderr
    return json.loads(done.stdout)


def test_the_story_is_diagnosed_with_exit_code_1(eagle3dash, process, demo_store):
    done = process("diagnose", "story-as-served", "--store", demo_store, "--json")
    assert done.returncode == 1
    found = document(done)
    assert found["findings"][0]["id"] == "wrong-aux-states"
    assert found["steps"] == 4
    assert round(found["numbers"]["served"], 4) == 1.0653
    text = eagle3dash("diagnose", "story-as-served", "--store", demo_store)
    assert text.returncode == 1
    assert "wrong-aux-states" in text.stdout
    assert "1.0728" in text.stdout
    words = " ".join(text.stdout.split())
    assert re.search(r"replayed on training features +1\.7473 +1\.2923 +2\.2022 +736 rounds", text.stdout)
    assert "Expected: validation accuracy by step (cumulative)" in words
    assert "with states 0, 2, 15; states 2, 15, 27 (declared and served) give 1.07" in words
    assert "No single change and no pair gains beyond doubt: the best single change" in words
    lines = [line.strip() for line in text.stdout.splitlines()]
    assert any(line.startswith("unchanged, states 0, 2, 15 ") for line in lines)
    assert any(line.startswith("- TensorRT-LLM: ") for line in lines)  # a line for each engine


def test_the_fixed_story_is_healthy(eagle3dash, demo_store):
    done = eagle3dash("diagnose", "story-fixed", "--store", demo_store, "--json")
    assert done.returncode == 0
    found = document(done)
    assert (round(found["numbers"]["served"], 4), found["reading"]) == (1.7717, "as trained by speculators")


def test_diagnose_of_files_needs_no_store(process, tmp_path):
    files = [
        *("--drafter", DEMO / "drafter", "--training", DEMO / "training"),
        *("--serving", DEMO / "story-as-served" / "serving", "--log", DEMO / "story-as-served" / "server"),
        *("--target", DEMO / "target", "--expected", "0.479,0.262,0.150,0.094", "--expected-kind", "cumulative"),
    ]
    done = process("diagnose", *files, "--json", EAGLE3DASH_STORE=str(tmp_path / "none"))
    assert done.returncode == 1
    found = document(done)
    assert found["findings"][0]["id"] == "wrong-aux-states"
    assert round(found["numbers"]["expected"], 3) == 1.985
    assert not (tmp_path / "none").exists()


def test_temperature_is_said_for_files(eagle3dash, tmp_path):
    log = DEMO / "story-as-served" / "server"
    found = document(eagle3dash("diagnose", "--log", log, "--temperature", "0.7", "--json"))
    assert found["acceptance"]["temperature"] == 0.7
    assert "0.7 (by the run's settings)" in found["acceptance"]["text"]
    refused = eagle3dash("diagnose", "--log", log, "--temperature", "-1")
    assert refused.returncode == 2 and "temperature is -1.0" in refused.stderr


def test_a_run_keeps_what_is_said_of_it(eagle3dash, tmp_path):
    where = ("--store", tmp_path / "store")
    eagle3dash("import", DEMO / "story-as-served" / "server" / "server.log", "--run", "mine", *where)
    assert eagle3dash("settings", "mine", *where).stdout == "no settings\n"
    assert document(eagle3dash("settings", "mine", "--temperature", "0.7", "--expected", "0.5", *where, "--json")) == {
        "expected": 0.5,
        "temperature": 0.7,
    }
    assert document(eagle3dash("diagnose", "mine", *where, "--json"))["acceptance"]["temperature"] == 0.7
    told = eagle3dash("diagnose", "mine", "--temperature", "1", *where)
    assert told.returncode == 2 and "settings mine --temperature" in told.stderr
    assert eagle3dash("settings", "mine", "--unset", "expected", "temperature", *where).stdout == "no settings\n"
    assert document(eagle3dash("diagnose", "mine", *where, "--json"))["acceptance"]["temperature"] is None
    assert eagle3dash("settings", "nobody", *where).returncode == 2


def test_replay_sweep_and_features(eagle3dash, demo_store):
    where = ("--store", demo_store, "--json")
    replay = document(eagle3dash("replay", "story-as-served", "--capture", "training", "--states", "2,15,27", *where))
    assert (round(replay["row_accept_length"], 4), round(replay["accept_length"], 4)) == (1.0694, 1.0719)
    assert document(eagle3dash("replay", "story-fixed", "--steps", "2", *where))["steps"] == 2
    assert document(eagle3dash("sweep", "story-as-served", *where))["rows"][0]["states"] == [0, 2, 15]
    assert document(eagle3dash("features", "story-as-served", *where))["best"] == [2, 15, 27]
    for command in ("replay", "sweep", "features"):
        assert eagle3dash(command, "story-as-served", "--store", demo_store).returncode == 0


def test_a_reading_by_its_name(eagle3dash, demo_store):
    where = ("--store", demo_store, "--json")
    named = document(eagle3dash("replay", "story-fixed", "--reading", "as served by SGLang", *where))
    assert named["reading"] == "as served by SGLang"
    for command in ("replay", "sweep", "diagnose"):
        done = eagle3dash(command, "story-fixed", "--reading", "mine", *where)
        assert done.returncode == 2 and "it has 'as trained by speculators'" in done.stderr


def test_runs_and_a_second_demo(eagle3dash, demo_store):
    found = document(eagle3dash("runs", "--store", demo_store, "--json"))["runs"]
    assert {run["name"] for run in found} == {"story-as-served", "story-fixed"}
    assert document(eagle3dash("demo", "--store", demo_store, "--json"))["runs"] == ["story-as-served", "story-fixed"]


def test_an_import_says_what_is_known_already(eagle3dash, tmp_path):
    store = ("--store", tmp_path / "store")
    first = eagle3dash("import", DEMO / "drafter", "--run", "mine", *store, "--json")
    assert first.returncode == 0, first.stderr
    assert [one["known"] for one in document(first)["added"]] == [False]
    again = eagle3dash("import", DEMO / "drafter", "--run", "other", *store)
    assert "known already" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("diagnose",), "Say what to diagnose"),
        (("diagnose", "nobody"), "nobody"),
        (("import", "no/such/file"), "file: cannot be opened"),
        (("import", DEMO / "README.md"), "README.md"),
        (("replay", "nobody", "--steps", "0"), "nobody"),
    ],
)
def test_bad_input_is_exit_code_2_and_one_sentence(eagle3dash, tmp_path, arguments, text):
    done = eagle3dash(*arguments, "--store", tmp_path / "store", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [(), ("guess",), ("replay",), ("replay", "r", "--steps", "many")])
def test_bad_usage_is_exit_code_2(eagle3dash, arguments):
    assert eagle3dash(*arguments).returncode == 2


def test_inspect_says_what_things_are(eagle3dash, tmp_path):
    drafter = document(eagle3dash("inspect", DEMO / "drafter", "--json"))
    assert (drafter["kind"], drafter["problems"]) == ("drafter", [])
    capture = document(eagle3dash("inspect", DEMO / "training", "--json"))
    assert (capture["kind"], capture["states"], capture["width"]) == ("capture", [0, 2, 15, 27], 576)
    unknown = tmp_path / "unknown.bin"
    unknown.write_bytes(b"\0\1\2" * 99)
    done = eagle3dash("inspect", unknown, "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["kind"] == "unknown"


def test_inspect_as_text_says_what_engines_do_and_lists_everything(eagle3dash):
    folder = DEMO.parents[1] / "tests" / "golden" / "modelopt-base"
    done = eagle3dash("inspect", folder / "config.json", folder / "model.safetensors")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    for said in (
        "vLLM 0.25.0 to 0.32.0, V1 runner: Runs, but not as the config says: states fed to fc: HF[1, 3, 4]",
        "no engine norms twice",
        "reading as served by SGLang: the hidden half is normed once",
        "passed distinct: Every draft id has a target id of its own.",
        "used eagle_config.eagle_aux_hidden_state_layer_ids = [1, 3, 4]",
        "ignored rope_scaling.factor = 32.0 (ModelOpt adds this at export",
        "missing embed_tokens.weight",
    ):
        assert said in text, said
    assert max(map(len, done.stdout.splitlines())) <= 110


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("training", "training: 8 texts, 1,623 tokens, 1,306 of them with loss"),
        ("story-as-served/serving", "states s0, s1, s2 of width 576"),
        ("story-fixed/server", "vllm 0.32.0, K = 4, 6 windows"),
        ("target", "vocabulary 49,152, hidden 576, layers 30"),
    ],
)
def test_inspect_as_text(eagle3dash, path, said):
    done = eagle3dash("inspect", DEMO / path)
    assert done.returncode == 0 and said in done.stdout
    assert "no data of them" not in done.stdout and "{" not in done.stdout


def test_trace_writes_what_the_drafter_computes(eagle3dash, tmp_path):
    out = tmp_path / "trace.safetensors"
    files = ("--drafter", DEMO / "drafter", "--capture", DEMO / "training" / "data_0.pt", "--target", DEMO / "target")
    done = eagle3dash("trace", *files, "--steps", "2", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    made = load_file(out)
    length = made["tokens"].shape[1]
    assert made["logits"].shape == (2, length, 4096)
    assert made["hidden"].shape == (2, length, 576)
    assert made["valid"].dtype.is_floating_point is False
    many = eagle3dash("trace", "--drafter", DEMO / "drafter", "--capture", DEMO / "training", "--out", out)
    assert many.returncode == 2
    assert "8 texts" in many.stderr


def test_backup_makes_a_store(eagle3dash, demo_store, tmp_path):
    assert eagle3dash("backup", tmp_path / "copy", "--store", demo_store).returncode == 0
    assert len(document(eagle3dash("runs", "--store", tmp_path / "copy", "--json"))["runs"]) == 2


def test_doctor(eagle3dash, demo_store, tmp_path):
    found = document(eagle3dash("doctor", "--store", demo_store, "--json"))
    assert found["healthy"]
    assert {"python", "torch", "duckdb", "disk", "store", "cpu"} <= {one["what"] for one in found["findings"]}
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "catalog.duckdb").write_text("no database")
    done = eagle3dash("doctor", "--store", broken)
    assert done.returncode == 1
    assert "bad" in done.stdout


def test_ctrl_c_stores_nothing(tmp_path):
    store = tmp_path / "store"
    command = [sys.executable, "-m", "eagle3dash", "demo", "--store", str(store)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=DEMO.parents[1])
    while not (store / "staging").exists() or not list((store / "staging").iterdir()):
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in told
    assert "Traceback" not in told
    assert not list((store / "staging").iterdir())
    assert not list((store / "tensors").iterdir())
