"""The inbox: what lies in it can be chosen; what lies outside cannot be reached, by name or by link."""

import pytest

from eagle3dash.errors import BadInput
from eagle3dash.web import inbox


@pytest.fixture
def box(tmp_path, monkeypatch):
    root = tmp_path / "inbox"
    (root / "run" / "drafter").mkdir(parents=True)
    (root / "run" / "drafter" / "config.json").write_text("{}")
    (root / ".hidden").write_text("x")
    (tmp_path / "secret").write_text("x")
    (root / "link").symlink_to(tmp_path / "secret")
    monkeypatch.setenv("EAGLE3DASH_INBOX", str(root))
    return root


def test_folders_and_files_are_offered_but_no_links(box):
    assert [entry.name for entry in inbox.entries()] == ["run/", "run/drafter/", "run/drafter/config.json"]
    assert inbox.resolve("run/drafter/") == box / "run" / "drafter"


@pytest.mark.parametrize("name", ["../secret", "link", "run/../../secret", "/etc/passwd", "nothing"])
def test_nothing_outside_can_be_chosen(box, name):
    with pytest.raises(BadInput, match="not in the inbox"):
        inbox.resolve(name)


def test_a_missing_inbox_is_empty(tmp_path, monkeypatch):
    monkeypatch.setenv("EAGLE3DASH_INBOX", str(tmp_path / "none"))
    assert inbox.entries() == []
