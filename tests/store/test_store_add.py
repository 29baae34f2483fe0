"""Bringing in: what was added comes back equal, once, and entirely or not at all."""

import os
import stat

import pytest
from store_samples import add, capture, content, drafter, log, request, sha, windows, write

from eagle3dash.errors import BadInput, NotFound, StoreDamaged, StoreFull
from eagle3dash.store import Added, Store


def test_a_run_comes_back_equal_after_reopening(tmp_path):
    with Store.open(tmp_path / "s") as store, store.staging() as staging:
        given = [
            drafter(staging, 1),
            capture(staging, 2, aux=(0, 1, 2), last="pre-norm"),
            capture(staging, 3, "serving"),
            log(4, windows(5, survival=(0.5, 0.25), rank="DP0", rounds=7), [request(0, 3, 1)]),
        ]
        store.add("Kimi K2.5 ≠ fast", given, staging)
    with Store.open(tmp_path / "s") as store:
        run = store.run("Kimi K2.5 ≠ fast")
        assert run.imports == tuple(given)
        assert (run.drafter, run.capture("serving"), run.logs) == (given[0], given[2], (given[3],))
        assert store.runs() == [run]
        assert store.tensor_path(given[1].tensors[0]).read_bytes() == content(2)


def test_tensor_files_are_read_only_and_staging_is_gone(store):
    add(store, "r", lambda s: capture(s, 1))
    path = store.tensor_path(sha(content(1)))
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert list((store.folder / "staging").iterdir()) == []


def test_the_same_file_twice_is_stored_once_and_attached_to_both_runs(store):
    first = add(store, "a", lambda s: capture(s, 1))
    again = add(store, "a", lambda s: capture(s, 1))
    other = add(store, "b", lambda s: capture(s, 1))
    key = first[0].sha256
    assert first == [Added("capture", "capture 1", key, False, "a")]
    assert again == [Added("capture", "capture 1", key, True, "a")]
    assert other == [Added("capture", "capture 1", key, True, "b")]
    assert [len(store.run(name).imports) for name in "ab"] == [1, 1]
    assert len(list((store.folder / "tensors").iterdir())) == 1


def test_brought_in_again_it_is_the_newest_of_its_kind(store):
    add(store, "a", lambda s: capture(s, 1), lambda s: capture(s, 2))
    assert store.run("a").capture("training").name == "capture 2"
    add(store, "a", lambda s: capture(s, 1))
    assert store.run("a").capture("training").name == "capture 1"


def test_the_same_file_may_serve_another_run_in_another_role(store):
    add(store, "a", lambda s: capture(s, 1, "training"))
    add(store, "b", lambda s: capture(s, 1, "serving"))
    assert store.run("a").capture("training") and not store.run("a").capture("serving")
    assert store.run("b").capture("serving") and not store.run("b").capture("training")


def test_a_newer_reading_of_the_same_log_replaces_its_rows(store):
    add(store, "a", lambda s: log(1, windows(3)))
    add(store, "b", lambda s: log(1, windows(4)))
    assert [len(store.run(name).logs[0].record.windows) for name in "ab"] == [4, 4]
    assert store.frame("log_windows", log=log(1).sha256).windows.sum() == 4


def test_known_content_may_come_without_its_tensor_file(store):
    [added] = add(store, "a", lambda s: capture(s, 1))
    with store.staging() as staging, store.staging() as empty:
        item = capture(staging, 1)
        assert store.add("b", [item], empty)[0].known
    assert store.tensor_path(item.tensors[0]).exists() and store.run("b").imports[0].sha256 == added.sha256


def test_without_a_name_the_run_is_called_after_the_drafter_and_stays_distinct(store):
    names = [add(store, None, lambda s: log(1), lambda s: drafter(s, 2))[1].run for _ in range(3)]
    assert names == ["drafter 2", "drafter 2 2", "drafter 2 3"]


@pytest.mark.parametrize("name", ["", "  ", "x" * 121, "a\nb", "\x1b[31m", "\u202egnp.exe", "\udc80"])
def test_names_that_nobody_could_read_are_refused_and_nothing_is_stored(store, name):
    if name:
        with pytest.raises(BadInput, match="run name"):
            add(store, name, lambda s: capture(s, 1))
    else:
        assert add(store, name, lambda s: capture(s, 1))[0].run == "capture 1"
        return
    assert store.runs() == [] and list((store.folder / "tensors").iterdir()) == []


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "x'; DROP TABLE run; --", "<script>alert(1)</script>", "日本語", "%s ? $1"]
)
def test_names_are_data(store, name):
    add(store, f"  {name} ", lambda s: capture(s, 1))
    assert store.run(name).name == name and len(store.runs()) == 1
    assert {p.name for p in store.folder.iterdir()} <= {
        *("catalog.duckdb", "catalog.duckdb.wal", "tensors", "staging", "logs", "owner.lock")
    }


def test_a_name_that_is_not_there_says_which_are(store):
    add(store, "good", lambda s: log(1))
    with pytest.raises(NotFound, match='"bad".*"good"'):
        store.run("bad")


def test_one_bad_import_of_several_stores_none(store):
    with store.staging() as staging, pytest.raises(BadInput, match="cannot be stored"):
        store.add("r", [capture(staging, 1), log(2, windows(1, accepted=10**30))], staging)
    with store.staging() as staging, pytest.raises(StoreDamaged, match="not written"):
        item = capture(staging, 3)
        (staging / f"{item.tensors[0]}.safetensors").unlink()
        store.add("r", [capture(staging, 4), item], staging)
    with store.staging() as staging, pytest.raises(BadInput, match="nothing to store"):
        store.add("r", [], staging)
    assert store.runs() == [] and list((store.folder / "tensors").iterdir()) == []
    add(store, "r", lambda s: capture(s, 1))
    assert store.verify() == []


def test_an_import_that_cannot_fit_is_refused_before_it_starts(store):
    free = os.statvfs(store.folder)
    with pytest.raises(StoreFull, match="MB are needed"), store.staging(free.f_bavail * free.f_frsize):
        raise AssertionError("began")


def test_a_failed_add_leaves_a_file_that_another_run_uses(store):
    add(store, "a", lambda s: capture(s, 1))
    with store.staging() as staging, pytest.raises(BadInput):
        store.add("a", [capture(staging, 1), log(2, windows(1, accepted=10**30))], staging)
    assert store.verify() == [] and store.tensor_path(sha(content(1)))


def test_two_imports_may_share_a_tensor_file(store):
    with store.staging() as staging:
        name = write(staging, 1)
        store.add("r", [capture(staging, 1), drafter(staging, 1)], staging)
    store.detach("r", drafter(store.folder, 1).sha256)
    (store.folder / f"{name}.safetensors").unlink()
    store.purge()
    assert store.tensor_path(name).exists()
