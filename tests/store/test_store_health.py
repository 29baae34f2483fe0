"""Damage is named with the way out, and costs only what it hit. A newer or foreign catalogue is left untouched."""

import os

import duckdb
import pytest
from store_samples import add, capture, content, sha

from eagle3dash.errors import NotFound, StoreDamaged
from eagle3dash.store import Store
from eagle3dash.store.database import Database
from eagle3dash.store.schema import MIGRATIONS


def remove(path):
    path.unlink()


def cut(path):
    os.chmod(path, 0o644)
    os.truncate(path, 100)


@pytest.mark.parametrize(("harm", "says"), [(remove, "is missing"), (cut, "has 100 bytes where 5,000 were stored")])
def test_a_missing_or_cut_file_costs_its_own_run_only_until_it_is_brought_in_again(tmp_path, harm, says):
    with Store.open(tmp_path) as store:
        add(store, "a", lambda s: capture(s, 1))
        add(store, "b", lambda s: capture(s, 2))
        harm(store.tensor_path(sha(content(1))))
    with Store.open(tmp_path) as store:
        with pytest.raises(StoreDamaged, match=f"{sha(content(1))}.*capture 1.*{says}.*Import it again"):
            store.tensor_path(sha(content(1)))
        assert store.tensor_path(sha(content(2))).read_bytes() == content(2)
        assert len(store.runs()) == 2 and len(store.verify()) == 1
        assert add(store, "a", lambda s: capture(s, 1))[0].known
        assert store.verify() == [] and store.tensor_path(sha(content(1))).read_bytes() == content(1)


def test_a_changed_bit_is_found_by_verify(store):
    add(store, "a", lambda s: capture(s, 1), lambda s: capture(s, 2))
    path = store.tensor_path(sha(content(1)))
    os.chmod(path, 0o644)
    path.write_bytes(bytes([content(1)[0] ^ 1]) + content(1)[1:])
    seen = []
    [problem] = store.verify(lambda done, total, message: seen.append((done, total)))
    assert "was altered" in problem and str(path) in problem and "'capture 1'" in problem
    assert seen == [(5000, 10_000), (10_000, 10_000)]


def test_a_file_that_was_never_brought_in(store):
    with pytest.raises(NotFound, match="purged, or never imported"):
        store.tensor_path("0" * 64)
    with pytest.raises(NotFound):
        store.tensor_path("../../etc/passwd")


def test_files_without_rows_are_swept_at_opening(tmp_path):
    with Store.open(tmp_path) as store:
        add(store, "a", lambda s: capture(s, 1))
    (tmp_path / "tensors" / f"{'0' * 64}.safetensors").write_bytes(b"left by a kill")
    (tmp_path / "staging" / "half").mkdir()
    (tmp_path / "staging" / "half" / "x.safetensors").touch()
    (tmp_path / "staging" / "link").symlink_to(tmp_path / "tensors")
    with Store.open(tmp_path) as store:
        assert [p.name for p in (tmp_path / "tensors").iterdir()] == [f"{sha(content(1))}.safetensors"]
        assert list((tmp_path / "staging").iterdir()) == [] and store.verify() == []


def test_a_lost_catalogue_does_not_cost_the_tensor_files(tmp_path):
    with Store.open(tmp_path) as store:
        add(store, "a", lambda s: capture(s, 1))
    (tmp_path / "catalog.duckdb").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreDamaged, match="is missing, but .* holds 1 files"):
        Store.open(tmp_path)
    assert len(list((tmp_path / "tensors").iterdir())) == 1 and not (tmp_path / "catalog.duckdb").exists()
    (tmp_path / "elsewhere").rename(tmp_path / "catalog.duckdb")
    with Store.open(tmp_path) as store:
        assert store.verify() == []


@pytest.mark.parametrize("damage", ["text", "cut", "flip"])
def test_a_damaged_catalogue_is_refused_and_left_as_it_is(tmp_path, damage):
    with Store.open(tmp_path) as store:
        add(store, "a", lambda s: capture(s, 1))
    path = tmp_path / "catalog.duckdb"
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 255
        data[4200] ^= 255
    path.write_bytes({"text": b"not a database", "cut": data[: len(data) // 2], "flip": data}[damage])
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match="catalog.duckdb cannot be used.*backup"):
        Store.open(tmp_path)
    assert path.read_bytes() == before and len(list((tmp_path / "tensors").iterdir())) == 1


def test_a_newer_schema_is_refused_untouched(tmp_path):
    with Store.open(tmp_path) as store:
        add(store, "a", lambda s: capture(s, 1))
    with duckdb.connect(str(tmp_path / "catalog.duckdb")) as newer:
        newer.execute("INSERT INTO schema_version VALUES (7, now()::TIMESTAMP)")
    (tmp_path / "tensors" / "of the newer one").touch()
    before = (tmp_path / "catalog.duckdb").read_bytes()
    with pytest.raises(StoreDamaged, match=r"schema version 7.*up to 1"):
        Store.open(tmp_path)
    assert (tmp_path / "catalog.duckdb").read_bytes() == before
    assert len(list((tmp_path / "tensors").iterdir())) == 2 and not (tmp_path / "catalog.duckdb.wal").exists()


def test_an_older_schema_is_brought_up_to_date_step_by_step_or_not_at_all(tmp_path):
    with Store.open(tmp_path) as store:
        add(store, "a", lambda s: capture(s, 1))
    path = tmp_path / "catalog.duckdb"
    bad = (*MIGRATIONS, "ALTER TABLE run ADD COLUMN star BOOLEAN; ALTER TABLE nowhere ADD COLUMN x INTEGER")
    with pytest.raises(duckdb.Error, match="nowhere"):
        Database(path, bad)
    good = (
        *MIGRATIONS,
        "ALTER TABLE run ADD COLUMN star BOOLEAN DEFAULT false",
        "ALTER TABLE run ADD COLUMN colour VARCHAR",
    )
    database = Database(path, good)
    with database.read() as cursor:
        assert cursor.execute("SELECT name, star, colour FROM run").fetchall() == [("a", False, None)]
        assert cursor.execute("SELECT version FROM schema_version ORDER BY 1").fetchall() == [(1,), (2,), (3,)]
    database.close()
