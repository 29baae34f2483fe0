"""A backup is a store: equal, whole, and honest about what was damaged."""

import threading

import pytest
from pandas import DataFrame
from store_samples import add, capture, content, drafter, log, request, sha, windows

from eagle3dash.errors import BadInput, StoreDamaged
from eagle3dash.store import Store
from eagle3dash.store.queries import QUERIES


@pytest.fixture
def filled(store):
    add(store, "a", lambda s: drafter(s, 1), lambda s: capture(s, 2), lambda s: log(3, windows(70), [request(1, 0, 2)]))
    store.update_run("a", settings={"steps": 3}, tags=["x"], notes="n")
    frame = DataFrame({"sequence": 0, "row": range(50), "num_accepted": 1, "visited": True})
    store.add_result("k", "replay", "a", {"n": 1}, {"replay_row": frame})
    store.add_job("replay", "a", {"steps": 5}, "k")
    add(store, "deleted", lambda s: capture(s, 4))
    store.delete_run("deleted")
    return store


def test_a_backup_opens_as_an_equal_store(filled, tmp_path):
    assert filled.backup(tmp_path / "new" / "copy") == []
    with Store.open(tmp_path / "new" / "copy") as copy:
        assert copy.runs() == filled.runs() and copy.trash() == filled.trash() and copy.verify() == []
        assert copy.result("k") == {"n": 1} and copy.job(1)["args"] == {"steps": 5}
        params = {"log": log(3).sha256, "result_key": "k", "training_slot": 0, "serving_slot": 0}
        for name, sql in QUERIES.items():
            used = {key: value for key, value in params.items() if f"${key}" in sql}
            assert copy.frame(name, **used).equals(filled.frame(name, **used)), name
        assert add(copy, "b", lambda s: capture(s, 2))[0].known
        assert copy.add_job("replay", "a", {}, "l") == 2
        copy.restore_run("deleted")
        assert copy.run("deleted").imports


def test_a_damaged_file_is_told_and_left_out(filled, tmp_path):
    filled.tensor_path(sha(content(2))).unlink()
    [problem] = filled.backup(tmp_path / "copy")
    assert "capture 2" in problem and "is missing" in problem
    with Store.open(tmp_path / "copy") as copy:
        assert len(copy.verify()) == 1 and copy.tensor_path(copy.run("a").drafter.tensors[0])


def test_nothing_is_purged_while_a_backup_copies(filled, tmp_path):
    purging = threading.Thread(target=filled.purge)
    waited = []

    def start(done, total, message):
        if not waited:
            purging.start()
            purging.join(0.3)
            add(filled, "during", lambda s: capture(s, 5))
            waited.append(purging.is_alive())

    assert filled.backup(tmp_path / "copy", start) == []
    purging.join()
    assert waited == [True] and filled.trash() == []
    with Store.open(tmp_path / "copy") as copy:
        assert copy.verify() == [] and [name for name, _ in copy.trash()] == ["deleted"]
        assert [run.name for run in copy.runs()] == ["a"]  # the moment at which it began


def test_where_a_backup_cannot_go(filled, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for target, says in [
        (tmp_path / "full", "not empty"),
        (filled.folder / "copy", "inside the store"),
        (filled.folder, "inside the store"),
        (tmp_path / "full" / "file", "cannot take a backup"),
    ]:
        with pytest.raises(BadInput, match=says):
            filled.backup(target)


def test_a_backup_cut_short_is_no_store(filled, tmp_path):
    def stop(done, total, message):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        filled.backup(tmp_path / "copy", stop)
    with pytest.raises(StoreDamaged, match="catalog.duckdb is missing"):
        Store.open(tmp_path / "copy")
    assert filled.verify() == [] and filled.purge() == len(content(4))
