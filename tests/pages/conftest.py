"""Pages under test run through the router, as visitors see them, on an empty store or on the real demo.

story-as-served is diagnosed beforehand (so all its questions are answered), story-fixed is not.
"""

import pytest
from demo_runs import ANSWERED, ROOT
from streamlit.testing.v1 import AppTest

from eagle3dash.jobs import demo, questions
from eagle3dash.jobs.questions import Question
from eagle3dash.store import Store
from eagle3dash.web import state


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages") / "store"
    with Store.open(folder) as store:
        demo.load(store)
        questions.answer(store, Question("diagnose", ANSWERED))
    return folder


@pytest.fixture
def use_store(monkeypatch):
    """Points the dashboard at a store."""

    def use(folder):
        state.close()
        monkeypatch.setenv("EAGLE3DASH_STORE", str(folder))

    yield use
    state.close()


@pytest.fixture
def empty_store(tmp_path, use_store):
    use_store(tmp_path / "store")


@pytest.fixture
def demo_store(demo_folder, use_store):
    use_store(demo_folder)


@pytest.fixture
def visit():
    """visit("layers", run="x") -> the page as it stands after one run of the script, with these URL parameters."""

    def go(page, /, **params):
        app = AppTest.from_file(str(ROOT / "eagle3dash" / "web" / "router.py"), default_timeout=120)
        app.query_params.update(params)
        app.run()
        app.switch_page(f"../../pages/{page}.py")
        app.query_params.update(params)
        return app.run()

    return go
