"""Paths -> files: order, labels, and what is refused before anything is opened."""

import os
import socket

import pytest

from eagle3dash.errors import BadInput
from eagle3dash.formats.scan import expand, fingerprint, label, natural, signature


def filled(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(name)
    return folder


def test_natural_order():
    assert sorted(["data_10.pt", "data_2.pt", "a", "data_1.pt"], key=natural) == [
        "a",
        "data_1.pt",
        "data_2.pt",
        "data_10.pt",
    ]


def test_folders_are_walked_and_files_come_once(tmp_path):
    folder = filled(tmp_path / "in", "b", "a", ".hidden", "x.lock")
    filled(folder / "sub", "c")
    filled(folder / ".git", "d")
    files = expand([folder, folder / "a"])
    assert [(file.name, file.explicit) for file in files] == [("a", True), ("in/b", False), ("in/sub/c", False)]
    assert [file.bytes for file in files] == [1, 1, 1]


def test_labels_are_one_printable_line():
    assert label("a\x00b\n\u202ec") == "a\\x00b\\n\\u202ec"
    assert len(label("n" * 100_000)) <= 200
    assert label("größe 中.pt") == "größe 中.pt"


def test_links(tmp_path):
    folder, outside = filled(tmp_path / "in", "a"), filled(tmp_path / "out", "secret")
    (folder / "inside").symlink_to(folder / "a")
    assert [file.name for file in expand([folder])] == ["in/a"]
    (folder / "link").symlink_to(outside / "secret")
    with pytest.raises(BadInput, match="in/link: a link to a file outside its folder"):
        expand([folder])
    assert expand([folder / "link"])[0].path == str(outside / "secret")  # named by the user: meant
    (folder / "link").unlink()
    (folder / "folder").symlink_to(outside)
    assert len(expand([folder])) == 1  # linked folders are not entered


def test_a_hugging_face_cache_is_read_through_its_links(tmp_path):
    model = tmp_path / "models--lab--drafter"
    blobs, snapshot = filled(model / "blobs", "0123"), model / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").symlink_to("../../blobs/0123")
    (file,) = expand([snapshot])
    assert file.path == str(blobs / "0123") and file.name == "abc/config.json"
    (snapshot / "evil").symlink_to("/etc/hostname")
    with pytest.raises(BadInput, match="outside"):
        expand([snapshot])


def test_what_is_no_regular_file(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    for path in (folder, folder / "pipe"):
        with pytest.raises(BadInput, match="pipe: not a regular file"):
            expand([path])
    with pytest.raises(BadInput, match="null: not a regular file"):
        expand(["/dev/null"])
    (folder / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s"))
        with pytest.raises(BadInput, match="not a regular file"):
            expand([folder])


def test_what_is_not_there(tmp_path):
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    for name in ("absent", "circle", "broken", "nul\x00name"):
        with pytest.raises(BadInput, match="cannot be opened"):
            expand([tmp_path / name])


def test_fingerprint_and_signature_follow_the_content(tmp_path):
    path = filled(tmp_path, "a") / "a"
    (file,) = expand([path])
    seen = []
    first, before = fingerprint(file, seen.append), signature(file)
    assert sum(seen) == 1 and first == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    status = path.stat()
    path.write_text("b")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # pretending that nothing happened does not help
    assert signature(file) != before and fingerprint(file, seen.append) != first
    path.unlink()
    path.symlink_to("/etc/hostname")
    with pytest.raises(BadInput, match="cannot be read"):
        fingerprint(file, seen.append)
