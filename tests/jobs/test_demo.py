from eagle3dash.jobs import demo
from eagle3dash.store import Store


def test_the_demo_has_two_whole_runs(store):
    runs = {run.name: run for run in store.runs()}
    assert set(runs) == {"story-as-served", "story-fixed"}
    for run in runs.values():
        assert run.capture("training").record.states == (0, 2, 15, 27)
        assert run.capture("training").record.aux == (0, 1, 2)
        assert len(run.capture("serving").record.states) == 3
        assert run.target.record.hidden == 576
        assert {log.record.engine for log in run.logs} == {"vllm"}
        assert run.settings == demo.SETTINGS
    assert runs["story-as-served"].drafter.record.states == (2, 15, 27)
    assert runs["story-fixed"].drafter.record.states == (0, 2, 15)


def test_what_both_runs_share_is_stored_once(store):
    one, other = store.run("story-as-served"), store.run("story-fixed")
    assert one.capture("training").sha256 == other.capture("training").sha256
    assert one.drafter.sha256 != other.drafter.sha256
    assert one.drafter.record.tensors == other.drafter.record.tensors


def test_loading_again_changes_nothing(store):
    before = store.runs()
    assert demo.load(store) == ["story-as-served", "story-fixed"]
    assert demo.load_into_empty(store) == []
    assert store.runs() == before


def test_an_empty_store_gets_it_once(tmp_path):
    with Store.open(tmp_path / "store") as store:
        assert demo.load_into_empty(store) == ["story-as-served", "story-fixed"]
