"""The Drafter page, and the choice of a reading on the pages that replay."""

import shutil

import pytest
from demo_runs import ANSWERED, ROOT, UNASKED

from eagle3dash.jobs.imports import bring_in
from eagle3dash.store import Store

GOLDEN = ROOT / "tests" / "golden"


@pytest.fixture
def with_files(tmp_path, use_store):
    """A store whose only run, `one`, has these files."""

    def make(*files):
        folder = tmp_path / "files"
        folder.mkdir()
        for file in files:
            shutil.copy(file, folder)
        with Store.open(tmp_path / "store") as store:
            bring_in(store, [folder], "one")
        use_store(tmp_path / "store")

    return make


@pytest.fixture
def raw_on_sglang(with_files):
    """A drafter that was trained with norm_before_residual."""
    with_files(*(GOLDEN / "speculators-nbr" / name for name in ("config.json", "model.safetensors")))


def tables(app):
    return [table.value for table in app.table]


def words(app):
    shown = [*app.markdown, *app.caption, *app.info, *app.warning, *app.success]
    return "\n".join(str(one.value) for one in shown).replace("\\", "")


def column(table, start):
    name = next(name for name in table.columns if name.startswith(start))
    return {row["concern"]: row[name].replace("\\", "").replace("\u00a0", " ") for _, row in table.iterrows()}


def test_the_demo(visit, demo_store):
    app = visit("drafter", run=ANSWERED)
    assert not app.exception and not app.error
    engines, readings, checks = tables(app)
    assert engines.columns[2].startswith("vLLM") and engines.columns[2].endswith("this run")
    own, file = column(engines, "vLLM"), column(engines, "the file")
    assert "not as trained" in own["**In all**"]  # as the diagnosis proved, whatever the config says
    assert "HF[2, 15, 27]" in own["States fed to fc"] and "warning" in own["States fed to fc"]
    assert file["States fed to fc"] == "trained on HF[0, 2, 15], as replays show; the config means HF[2, 15, 27]"
    assert "Replays show: trained on **HF[0], HF[2], HF[15]** (the best of 24" in words(app)
    assert '"eagle_aux_hidden_state_layer_ids": [0, 2, 15]' in words(app)
    assert "Cannot read a speculators config" in column(engines, "SGLang")["Loading"]
    assert len(readings) == 4
    assert {"range", "distinct", "t2d", "coverage"} <= set(checks["check"])
    assert all("passed" in outcome for outcome in checks["outcome"])
    fields, tensors = app.dataframe[0].value, app.dataframe[1].value
    assert {"used", "ignored"} == set(fields["use"]) and "missing" in set(tensors["use"])


def test_what_no_replay_has_shown_is_as_the_config_says(visit, demo_store):
    app = visit("drafter", run=UNASKED)
    engines = tables(app)[0]
    assert "as the config says" in column(engines, "vLLM")["**In all**"]
    assert column(engines, "the file")["States fed to fc"] == "the config means HF[0, 2, 15]"
    assert not any("as trained" in text.replace("as trained by", "") for text in column(engines, "vLLM").values())
    assert "not shown by a replay yet" in words(app)


def test_switches_that_engines_drop_are_said_with_icon_and_words(visit, raw_on_sglang):
    app = visit("drafter", run="one")
    engines = tables(app)[0]
    assert "warning" in column(engines, "TensorRT")["Residual"]
    assert "The residual is raw" in column(engines, "SGLang")["Residual"]
    assert column(engines, "the file")["Residual"] == "trained with norm_before_residual"
    assert "check" in column(engines, "vLLM")["Residual"]
    assert "train with norm_before_residual false, or serve it with vLLM" in words(app)
    assert "add the target" in words(app)


def test_a_run_without_a_drafter_says_what_to_add(visit, with_files):
    with_files(ROOT / "data" / "demo" / "story-fixed" / "server" / "server.log")
    app = visit("drafter", run="one")
    assert not app.exception
    assert "This run has no drafter" in words(app)


def test_a_reading_is_chosen_where_the_file_is_read_in_different_ways(visit, raw_on_sglang):
    box = visit("acceptance", run="one", reading="as served by SGLang").selectbox(key="reading")
    assert box.options == ["as trained by speculators (default)", "as served by SGLang", "as served by TensorRT-LLM"]
    assert box.value == "as served by SGLang"


def test_no_reading_is_asked_for_where_all_agree(visit, demo_store):
    assert [box.key for box in visit("layers", run=ANSWERED).selectbox] == ["run"]
