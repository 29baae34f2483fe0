"""The lock-down, and many threads at once."""

import threading
from pathlib import Path

import duckdb
import pytest
from pandas import DataFrame
from store_samples import add, capture, log, windows

from eagle3dash.errors import BadInput
from eagle3dash.store.database import Database

SECRET = DataFrame({"password": ["hunter2"]})


@pytest.mark.parametrize(
    "sql",
    [
        *("SELECT * FROM read_text('/etc/passwd')", "SELECT * FROM '/etc/passwd'", "SELECT * FROM glob('/*')"),
        *("COPY (SELECT 1) TO 'out.csv'", "ATTACH 'other.duckdb'", "INSTALL httpfs", "SELECT * FROM SECRET"),
        *(
            "SET enable_external_access = true",
            "SET memory_limit = '99GB'",
            "EXPORT DATABASE 'out'",
            "CREATE SECRET (TYPE s3)",
        ),
    ],
)
def test_sql_reaches_nothing_outside(tmp_path, sql):
    database = Database(tmp_path / "c.duckdb")
    cursor = database._root.cursor()
    with pytest.raises(duckdb.Error):
        cursor.execute(sql)
    cursor.close()
    database.close()
    assert [p.name for p in tmp_path.iterdir()] == ["c.duckdb"] and not Path("out.csv").exists()


def test_the_file_has_a_storage_version_that_other_releases_read(tmp_path):
    database = Database(tmp_path / "c.duckdb")
    with database.read() as cursor:
        assert "v1.5.0" in str(cursor.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 'c'").fetchall())
    database.close()


def test_a_read_sees_one_moment_and_cannot_write(tmp_path):
    database = Database(tmp_path / "c.duckdb")
    with database.read() as reader:
        count = "SELECT count(*) FROM job"
        assert reader.execute(count).fetchone() == (0,)
        with database.write() as writer:
            writer.execute("INSERT INTO job SELECT 1, '', '', '', '', '', 0, 0, '', '', now()::TIMESTAMP, NULL, NULL")
        database.checkpoint()
        assert reader.execute(count).fetchone() == (0,)
        with pytest.raises(duckdb.TransactionException):
            reader.execute("DELETE FROM job")
    with database.read() as reader:
        assert reader.execute(count).fetchone() == (1,)
    database.close()


def test_a_write_that_raises_leaves_nothing_and_the_next_one_works(tmp_path):
    database = Database(tmp_path / "c.duckdb")
    insert = "INSERT INTO tensor VALUES (?, ?)"
    with pytest.raises(duckdb.ConstraintException), database.write() as cursor:
        cursor.execute(insert, ["a" * 64, 1])
        cursor.execute(insert, ["a" * 64, 1])
    with pytest.raises(KeyboardInterrupt), database.write() as cursor:
        cursor.execute(insert, ["b" * 64, 1])
        raise KeyboardInterrupt
    with database.write() as cursor:
        cursor.execute(insert, ["c" * 64, 1])
    with database.read() as cursor:
        assert cursor.execute("SELECT sha256 FROM tensor").fetchall() == [("c" * 64,)]
    database.close()


def test_it_serves_again_after_a_fatal_error(tmp_path):
    database = Database(tmp_path / "c.duckdb")
    with database.write() as cursor:
        cursor.execute("INSERT INTO tensor VALUES (?, 1)", ["a" * 64])
    database._root.close()  # what a checkpoint without room leaves: a connection that serves nobody
    with database.read() as cursor:
        assert cursor.execute("SELECT count(*) FROM tensor").fetchone() == (1,)
    database.close()


def test_eight_threads_each_get_their_own_answers(store):
    """Writers of runs, results and jobs beside readers that know what they must see."""
    for name in "ab":
        add(store, name, lambda s, n=name: log(ord(n), windows(ord(n))))
    wrong, rounds = [], 6

    def check(got, wanted):
        if got != wanted:
            wrong.append((got, wanted))

    def work(me):
        for step in range(rounds):
            name, number = "ab"[(me + step) % 2], me * 1000 + step
            check(store.frame("log_windows", log=log(ord(name)).sha256).windows.sum(), ord(name))
            check(len(store.run(name).logs[0].record.windows), ord(name))
            key = f"key {number}"
            store.add_result(key, "replay", name, {"n": number})
            check(store.result(key), {"n": number})
            job = store.add_job("replay", name, {"n": number}, key)
            store.update_job(job, state="running", done=float(number))
            check((store.job(job)["args"], store.job(job)["done"]), ({"n": number}, number))
            store.update_run("a", settings={f"thread {me}": step})
        try:
            add(store, f"thread {me}", lambda s: capture(s, me))
            add(store, "b", lambda s: log(me, windows(2, accepted=10**30)))
            wrong.append("a bad log was stored")
        except BadInput:
            check(store.run(f"thread {me}").imports[0].name, f"capture {me}")

    threads = [threading.Thread(target=work, args=(me,)) for me in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(store.jobs(1000)) == 8 * rounds and len({job["id"] for job in store.jobs(1000)}) == 8 * rounds
    assert store.run("a").settings == {f"thread {me}": rounds - 1 for me in range(1, 9)}
    assert len(store.runs()) == 10 and store.verify() == []
