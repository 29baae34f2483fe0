"""Runs: settings, tags, notes, names; the trash and what purging takes with it."""

import pytest
from pandas import DataFrame
from store_samples import add, capture, content, drafter, log, sha, windows

from eagle3dash.errors import BadInput, NotFound
from eagle3dash.store import contents


def test_settings_tags_notes_and_name(store):
    add(store, "a", lambda s: log(1))
    store.update_run(
        "a", settings={"expected": [0.8, 0.7], "steps": 5}, tags=["prod", " prod ", "kimi"], notes=" one\ntwo "
    )
    store.update_run("a", settings={"steps": None, "engine": "sglang"}, rename="b")
    run = store.run("b")
    assert run.settings == {"expected": [0.8, 0.7], "engine": "sglang"}
    assert run.tags == ("prod", "kimi") and run.notes == "one\ntwo"
    assert [r.name for r in store.runs()] == ["b"]


def test_a_name_is_taken_once_however_it_is_spelled(store):
    add(store, "caf\u00e9", lambda s: log(1))
    add(store, "b", lambda s: log(1))
    with pytest.raises(BadInput, match="already"):
        store.update_run("b", rename="cafe\u0301 ")
    assert store.run("cafe\u0301").name == "caf\u00e9"


def test_a_deleted_run_is_hidden_and_comes_back_whole(store):
    add(store, "a", lambda s: capture(s, 1), lambda s: log(2, windows(3)))
    before = store.run("a")
    store.delete_run("a")
    assert store.runs() == [] and store.frame("runs").empty and [name for name, _ in store.trash()] == ["a"]
    with pytest.raises(NotFound):
        store.run("a")
    store.restore_run("a")
    assert store.run("a") == before and store.trash() == []
    with pytest.raises(NotFound, match="deleted"):
        store.restore_run("a")


def test_a_name_in_the_trash_is_free_again_but_cannot_come_back_over_another(store):
    add(store, "a", lambda s: log(1))
    store.delete_run("a")
    add(store, "a", lambda s: log(2))
    with pytest.raises(BadInput, match="already"):
        store.restore_run("a")
    store.update_run("a", rename="b")
    store.restore_run("a")
    assert store.run("a").logs[0].name == "server 1.log" and store.run("b").logs[0].name == "server 2.log"


def test_more_records_than_are_kept_in_memory_are_read_again(store, monkeypatch):
    monkeypatch.setattr(contents, "KEPT", 3000)
    given = {str(n): add(store, str(n), lambda s, n=n: log(n, windows(4)))[0].sha256 for n in range(6)}
    for _ in range(2):
        assert {run.name: run.imports[0].sha256 for run in store.runs()} == given
        assert [len(store.run(name).logs[0].record.windows) for name in given] == [4] * 6
    assert 0 < len(store._contents._parsed) < 6


def test_purging_takes_what_nobody_uses_and_nothing_else(store):
    add(store, "a", lambda s: capture(s, 1), lambda s: drafter(s, 2), lambda s: log(3, windows(3)))
    add(store, "b", lambda s: capture(s, 1))
    store.add_result("gone", "replay", "a", {"n": 1}, {"replay_row": rows(4)})
    store.add_result("kept", "replay", "b", {"n": 2}, {"replay_row": rows(5)})
    store.delete_run("a")
    assert store.purge() == len(content(2))
    assert store.trash() == [] and [r.name for r in store.runs()] == ["b"]
    assert store.tensor_path(sha(content(1))).exists()
    with pytest.raises(NotFound):
        store.tensor_path(sha(content(2)))
    assert store.result("gone") is None and store.result("kept") == {"n": 2}
    assert store.frame("replay_sequences", result_key="gone").empty
    assert store.frame("replay_sequences", result_key="kept").rows.tolist() == [5]
    assert store.frame("log_windows", log=log(3).sha256).empty
    assert store.verify() == [] and store.purge() == 0


def test_what_is_taken_out_of_a_run_stays_until_purged(store):
    [added] = add(store, "a", lambda s: capture(s, 1))
    store.detach("a", added.sha256)
    assert store.run("a").imports == () and store.tensor_path(sha(content(1)))
    assert add(store, "a", lambda s: capture(s, 1))[0].known
    store.detach("a", added.sha256)
    assert store.purge() == len(content(1))
    assert not add(store, "a", lambda s: capture(s, 1))[0].known


def rows(count):
    return DataFrame({"sequence": 0, "row": range(count), "num_accepted": 1, "visited": True})
