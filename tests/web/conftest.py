"""A dashboard of its own for each test: an empty store in a temporary folder."""

import pytest

from eagle3dash.web import state


@pytest.fixture
def own_store(tmp_path, monkeypatch):
    """The folder of an empty store that `web.state` will open."""
    state.close()
    monkeypatch.setenv("EAGLE3DASH_STORE", str(tmp_path / "store"))
    yield tmp_path / "store"
    state.close()
