"""Uploads: pieces arrive whole and in order, resume where they stopped, and no name leads out of their folder."""

import os
import time
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from eagle3dash.errors import BadInput
from eagle3dash.web import upload

ID = "0123456789abcdef" * 2


@pytest.fixture
def client(own_store):
    return TestClient(Starlette(routes=upload.ROUTES))


def put(client, name, content, offset=0, size=None, upload_id=ID):
    size = len(content) if size is None else size
    return client.put(f"/api/upload/{upload_id}/{name}?offset={offset}&size={size}", content=content)


def test_pieces_make_the_file(client):
    content = os.urandom(300_000)
    for offset in range(0, 300_000, 100_000):
        answer = put(client, "a/model.safetensors", content[offset : offset + 100_000], offset, 300_000)
        assert answer.json() == {"have": offset + 100_000}
    folder = upload.finished(ID, [{"name": "a/model.safetensors", "size": 300_000}])
    assert (folder / "a" / "model.safetensors").read_bytes() == content


def test_a_wrong_offset_is_told_where_to_go_on(client):
    put(client, "x.pt", b"12345", 0, 10)
    answer = put(client, "x.pt", b"abc", 7, 10)
    assert (answer.status_code, answer.json()["have"]) == (409, 5)
    assert client.get(f"/api/upload/{ID}/x.pt").json() == {"have": 5}
    assert put(client, "x.pt", b"67890", 5, 10).json() == {"have": 10}


def test_offset_zero_starts_anew(client):
    put(client, "x.pt", b"a long first attempt")
    put(client, "x.pt", b"short")
    assert (upload.files_of(ID) / "x.pt").read_bytes() == b"short"


def test_an_unfinished_file_is_not_imported(client):
    put(client, "x.pt", b"12345", 0, 10)
    with pytest.raises(BadInput, match=r"x\.pt: 5 of 10 bytes"):
        upload.finished(ID, [{"name": "x.pt", "size": 10}])


@pytest.mark.parametrize(
    "name",
    [
        "..%2F..%2Fevil",
        "..%5C..%5Cevil",
        "a%2F..%2F..%2F..%2Fevil",
        "%2Fetc%2Fevil",
        "evil%00.pt",
        "%E2%80%AEevil",
        ".evil",
        "C:%5Cevil",
    ],
)
def test_no_name_leads_out_of_the_upload(client, own_store, name):
    before = set(own_store.parent.rglob("*"))
    assert put(client, name, b"x").status_code == 200
    new = {path for path in set(own_store.parent.rglob("*")) - before if path.is_file()}
    assert len(new) == 1
    path = new.pop().relative_to(upload.files_of(ID))
    assert path.name.isprintable() and not path.name.startswith(".") and ".." not in path.parts


@pytest.mark.parametrize("name", ["%2E%2E", ".", "%00", "%20%2F%20"])
def test_names_of_nothing_are_refused(client, name):
    assert put(client, name, b"x").status_code in (400, 404, 405)


@pytest.mark.parametrize("bad", ["x", "..", "ABCDEF0123456789" * 2, ID + "0"])
def test_ids_are_hex_only(client, bad):
    assert put(client, "x.pt", b"x", upload_id=bad).status_code in (400, 404, 405)


def test_more_bytes_than_the_file_has_are_refused(client):
    assert put(client, "x.pt", b"123456", 0, 5).status_code == 413
    assert client.put(f"/api/upload/{ID}/x.pt?offset=0&size=5", content=iter([b"123", b"456"])).status_code == 413
    assert client.put(f"/api/upload/{ID}/x.pt?offset=-1&size=5", content=b"1").status_code == 400
    assert client.put(f"/api/upload/{ID}/x.pt", content=b"1").status_code == 400


def test_a_file_larger_than_the_disk_is_refused_before_its_first_byte(client):
    answer = put(client, "x.pt", b"1", 0, 1 << 60)
    assert answer.status_code == 507
    assert "free" in answer.json()["error"]
    assert not (upload.files_of(ID) / "x.pt").exists()


def test_delete_forgets_a_file_or_all(client):
    put(client, "x.pt", b"1")
    put(client, "y.pt", b"1")
    assert client.delete(f"/api/upload/{ID}/x.pt").status_code == 204
    assert [path.name for path in upload.files_of(ID).iterdir()] == ["y.pt"]
    assert client.delete(f"/api/upload/{ID}").status_code == 204
    assert not upload.folder_of(ID).exists()


def test_uploads_nobody_touched_for_a_day_are_swept(client):
    put(client, "x.pt", b"1", upload_id="a" * 32)
    old = upload.folder_of("a" * 32)
    for path in (old / "upload" / "x.pt", old / "upload", old):
        os.utime(path, (time.time() - upload.STALE_S - 60,) * 2)
    put(client, "y.pt", b"1", upload_id="b" * 32)
    assert not old.exists()
    assert upload.folder_of("b" * 32).exists()


def test_clean_keeps_the_folders_of_a_dropped_tree():
    assert upload.clean("story/serving/0.safetensors") == Path("story/serving/0.safetensors")
    assert upload.clean("/a/../b//c.pt") == Path("a/b/c.pt")
    assert len(upload.clean("/".join("abcdefghij")).parts) == upload.DEEPEST
    assert len(upload.clean("x" * 500 + ".pt").name) == 120
