"""The portability table, row by row against what the engines' releases do with the same file."""

import json
from dataclasses import replace

import pytest
from synthetic_drafters import config, golden, speculators, weights

from eagle3dash.formats.drafters import convert
from eagle3dash.formats.engines.cells import Proof
from eagle3dash.formats.engines.portability import CONCERNS, columns, document, rows, serving
from eagle3dash.formats.engines.servers import SERVERS
from eagle3dash.records import Drafter

NESTED = "eagle_aux_hidden_state_layer_ids"


def golden_record(case: str, drop: str = "", **changes) -> Drafter:
    fields, stored = golden(case)
    fields.pop(drop, None)
    return convert({**fields, **changes}, stored).record


def flat(ids=None, layer="midlayer", depth=1, aux=3, **changes) -> Drafter:
    """A flat config with nested ids."""
    nested = {"eagle_config": {NESTED: ids}} if ids else {}
    made = config(**nested, num_hidden_layers=depth, **changes)
    return convert(made, weights(made, layer=layer, depth=depth, aux=aux)).record


def cell(drafter: Drafter, engine: str, version: str, row: str, runner: str | None = None, layers: int | None = None):
    """(outcome, words) of one cell; of the runner, where vLLM's two differ."""
    found = serving(drafter, engine, version, layers)
    mine = [column for column in found if runner is None or any(s.runner == runner for s in column.servers)]
    assert len({str(column.cells.get(row)) for column in mine}) == 1
    return (mine[0].cells[row].outcome, mine[0].cells[row].told) if row in mine[0].cells else None


@pytest.mark.parametrize(
    ("engine", "version", "outcome", "fed"),
    [
        ("sglang", "0.5.9", "same", "HF[2, 30, 58]"),  # output of a layer: + 1
        ("sglang", "0.5.23", "same", "HF[2, 30, 58]"),
        ("vllm", "0.18.1", "same", "HF[2, 30, 58]"),  # the default, right by luck
        ("trtllm", None, "same", "HF[2, 30, 58]"),
    ],
)
def test_states_of_a_nested_list(engine, version, outcome, fed):
    found = cell(flat([1, 29, 57]), engine, version, "States fed to fc", layers=61)
    assert found[0] == outcome and fed in found[1]


def test_the_runners_of_vllm_read_different_lists():
    drafter = flat([1, 29, 57])
    assert cell(drafter, "vllm", "0.32.0", "States fed to fc", "V1", 61) == (
        "differs", "HF[1, 29, 57] (the config means HF[2, 30, 58])",
    )  # fmt: skip
    assert cell(drafter, "vllm", "0.32.0", "States fed to fc", "V2", 61)[0] == "same"
    assert cell(drafter, "vllm", "0.32.0", "States fed to fc", "V2")[0] == "depends"  # N is not known
    assert {column.versions for column in serving(drafter, "vllm", "0.32.0", 61)} == {
        "0.18.1; 0.25.0 to 0.32.0, V2 runner", "0.25.0 to 0.32.0, V1 runner",
    }  # fmt: skip


@pytest.mark.parametrize(("version", "outcome"), [("0.5.12", "differs"), ("0.5.15", "same"), ("0.5.23", "same")])
def test_kimi_boundaries_on_sglang(version, outcome):
    drafter = flat([2, 30, 58], model_type="kimi_k2")
    assert drafter.states == (2, 30, 58)
    assert cell(drafter, "sglang", version, "States fed to fc")[0] == outcome


@pytest.mark.parametrize(("version", "outcome"), [("0.5.15", "stops"), ("0.5.18", "same")])
def test_the_last_boundary_of_gpt_oss(version, outcome):
    drafter = flat([24, 30, 36], vocab_size=201088)
    assert drafter.states == (24, 30, 36)
    assert cell(drafter, "sglang", version, "States fed to fc", layers=36)[0] == outcome


def test_no_ids_mean_the_same_default_everywhere():
    for column in columns(flat(), 30):
        found = column.cells["States fed to fc"]
        assert found.outcome == "same" and "HF[2, 15, 27]" in found.does
    old = convert(speculators(speculators_version="0.4.0"), weights(config(), layer="layers.0")).record
    assert cell(old, "vllm", "0.32.0", "States fed to fc")[0] == "depends"


def test_a_top_level_list_is_not_read_by_sglang():
    made = config(**{NESTED: [2, 4, 5]}, norm_before_residual=False)
    drafter = convert(made, weights(made)).record
    assert cell(drafter, "vllm", "0.32.0", "States fed to fc") == ("same", "HF[2, 4, 5]")
    assert cell(drafter, "sglang", "0.5.23", "States fed to fc", layers=30)[0] == "differs"


@pytest.mark.parametrize(
    ("case", "row", "stays", "goes"),
    [
        ("speculators-nbr", "Residual", [("vllm", "0.32.0"), ("vllm", "0.18.1")], [("sglang", "0.5.23"), ("trtllm", None)]),
        ("speculators-normbeforefc", "Norm before fc", [("vllm", "0.25.0"), ("sglang", "0.5.18"), ("trtllm", None)],
         [("sglang", "0.5.15"), ("vllm", "0.18.1")]),
        ("speculators-fcnorm_normoutput", "Norm of each aux state", [("sglang", "0.5.12"), ("vllm", "0.25.0"),
         ("trtllm", None)], [("sglang", "0.5.11")]),
        ("speculators-fcnorm_normoutput", "Fed back between steps", [("sglang", "0.5.12"), ("vllm", "0.25.0"),
         ("trtllm", None)], [("sglang", "0.5.11"), ("vllm", "0.18.1")]),
        ("speculators-qwen3", "Norms of q and k", [("vllm", "0.25.0")], [("sglang", "0.5.23")]),
    ],
)  # fmt: skip
def test_switches_that_are_honoured_and_dropped(case, row, stays, goes):
    drafter = golden_record(case)
    for engine, version in stays:
        assert cell(drafter, engine, version, row)[0] == "same", (engine, version)
    for engine, version in goes:
        assert cell(drafter, engine, version, row)[0] == "differs", (engine, version)


def test_what_stops_an_engine_while_it_loads():
    assert "speculators config" in cell(golden_record("speculators-base"), "sglang", "0.5.23", "Loading")[1]
    assert "LlamaForCausalLM," in cell(golden_record("safeai-base"), "sglang", "0.5.23", "Loading")[1]
    assert "no place" in cell(golden_record("speculators-fcnorm_normoutput"), "vllm", "0.18.1", "Norm of each aux state")[1]
    assert "no place" in cell(golden_record("speculators-qwen3"), "vllm", "0.18.1", "Norms of q and k")[1]
    assert cell(golden_record("vllm_mla-default_rope"), "sglang", "0.5.11", "Loading") == ("stops", "has no MLA drafters")
    full = golden_record("safeai-fullvocab")
    assert [cell(full, "vllm", version, "Loading")[0] for version in ("0.25.0", "0.32.0")] == ["same", "stops"]
    deep = flat(depth=2)
    assert [cell(deep, "sglang", version, "Loading")[0] for version in ("0.5.11", "0.5.12")] == ["stops", "same"]


def test_the_number_of_states_that_fc_is_built_for():
    four = flat([1, 5, 9, 13], aux=4)
    assert cell(four, "sglang", "0.5.18", "Loading")[0] == "same"
    assert "3 states, the file's reads 4" in cell(four, "sglang", "0.5.11", "Loading")[1]
    made = speculators(**{NESTED: [2, 5, 9, 13]})
    drafter = convert(made, weights(config(), layer="layers.0", aux=4)).record
    assert cell(drafter, "vllm", "0.32.0", "Loading")[0] == "stops"  # a llama layer does not count a top-level list
    counted = convert({**made, "num_aux_hidden_states": 4}, weights(config(), layer="layers.0", aux=4)).record
    assert cell(counted, "vllm", "0.32.0", "Loading")[0] == "same"


def test_old_sglang_passes_over_other_names():
    drafter = flat(layer="layers.0")
    assert "random layer" in cell(drafter, "sglang", "0.5.11", "Loading")[1]
    assert cell(drafter, "sglang", "0.5.12", "Loading")[0] == "same"


def test_the_norm_of_later_layers():
    drafter = golden_record("speculators-two_layers")
    assert cell(drafter, "vllm", "0.32.0", "Norm of later layers")[0] == "same"
    assert [cell(drafter, engine, None, "Norm of later layers")[0] for engine in ("sglang", "trtllm")] == ["differs"] * 2
    fields, stored = golden("speculators-two_layers")
    stored["layers.1.hidden_norm.weight"] = stored.pop("layers.1.input_layernorm.weight")
    renamed = convert(fields, stored).record
    assert cell(renamed, "sglang", "0.5.23", "Norm of later layers")[0] == "same"
    assert cell(renamed, "vllm", "0.32.0", "Norm of later layers")[0] == "differs"


def test_an_absent_norm_before_residual_is_true_to_vllm():
    drafter = golden_record("speculators-base", drop="norm_before_residual")
    assert "absent norm_before_residual" in cell(drafter, "vllm", "0.32.0", "Residual")[1]
    assert cell(golden_record("specforge-base"), "vllm", "0.32.0", "Residual") is None


def test_norm_output_of_specforge_means_another_thing_to_engines():
    said = golden_record("specforge-base", norm_output=True)
    assert cell(said, "sglang", "0.5.23", "Fed back between steps")[0] == "differs"
    assert cell(golden_record("specforge-normoutput_false"), "vllm", "0.32.0", "Norm before the head")[0] == "differs"


def test_modelopt_is_served_with_one_norm_and_the_exported_rope():
    drafter = golden_record("modelopt-base")
    for column in columns(drafter):
        assert column.cells["Hidden half"].outcome == "differs" and "yarn" in column.cells["RoPE"].does


def test_whose_embeddings_and_head():
    trained = golden_record("speculators-base", embed_requires_grad=True)
    assert cell(trained, "sglang", "0.5.23", "Embeddings")[0] == "differs"
    assert cell(trained, "vllm", "0.32.0", "Embeddings") == ("same", "the file's own")
    wide = golden_record("specforge-targethidden96")
    assert cell(wide, "sglang", "0.5.23", "Embeddings") == ("same", "the file's own")
    made = config(draft_vocab_size=300)
    headless = {name: tensor for name, tensor in weights(made).items() if name != "lm_head.weight"}
    assert "accept length 1.00" in cell(convert(made, headless).record, "sglang", "0.5.23", "Head and vocabulary")[1]
    assert cell(convert(made, headless).record, "vllm", "0.32.0", "Head and vocabulary") == ("same", "the target's")
    without = {**made, "draft_vocab_size": None}
    assert cell(convert(without, headless).record, "sglang", "0.5.23", "Head and vocabulary")[0] == "same"


def test_attention_biases():
    made = config(attention_bias=True)
    stored = weights(made)
    stored |= {f"midlayer.self_attn.{n}_proj.bias": stored[f"midlayer.self_attn.{n}_proj.weight"][:, 0] for n in "qkvo"}
    drafter = convert(made, stored).record
    assert cell(drafter, "sglang", "0.5.23", "Attention biases")[0] == "differs"
    assert cell(drafter, "vllm", "0.32.0", "Attention biases")[0] == "same"


def test_versions_between_those_that_were_read():
    drafter = golden_record("speculators-normbeforefc")
    assert serving(drafter, "sglang", "0.5.17") == serving(drafter, "sglang", "0.5.15")
    assert serving(drafter, "sglang", "0.4.1") == serving(drafter, "sglang", "0.5.9")
    assert serving(drafter, "sglang", None) == serving(drafter, "sglang", "0.5.23")
    assert serving(drafter, "llama.cpp", None) == serving(drafter, None, None) == []


def test_columns_cover_every_server_once_and_say_what_it_means():
    for case in ("speculators-nbr", "modelopt-base", "safeai-fullvocab", "vllm_mla-default_rope"):
        made = columns(golden_record(case))
        assert sorted(map(id, SERVERS)) == sorted(id(server) for column in made for server in column.servers)
        assert [name for name, _ in rows(made)] == [n for n in CONCERNS if any(n in column.cells for column in made)]
    sglang = columns(golden_record("speculators-nbr"))[0]
    assert sglang.summary == (
        "Stops: cannot read a speculators config. Past that: the residual is raw (trained with norm_before_residual)."
    )
    assert "train with norm_before_residual false, or serve it with vLLM" in sglang.changes
    plain = replace(golden_record("speculators-nbr"), flavour="vllm", fields=())
    assert columns(plain)[1].summary.startswith("Runs, but not as the config says: the residual is raw")


def test_as_json():
    made = json.loads(json.dumps(document(golden_record("speculators-nbr"))))
    assert list(made) == ["SGLang", "vLLM", "TensorRT-LLM"]
    assert {"versions", "outcome", "summary", "changes", "concerns"} == set(made["SGLang"][0])
    assert made["vLLM"][0]["outcome"] == "same"


def test_what_replays_proved_overrides_the_config():
    drafter = golden_record("speculators-nbr")  # norm_before_residual, layer ids of its own
    claimed = serving(drafter, "vllm", "0.32.0", 61)[0]
    assert claimed.outcome == "same" and claimed.summary == "Serves it as the config says."
    shown = Proof(tuple(state + 1 for state in drafter.states), {})
    for column in serving(drafter, "vllm", "0.32.0", 61, shown):
        cell = column.cells["States fed to fc"]
        assert cell.outcome == "differs" and "as replays show; the config means" in cell.drafter
        assert ", ".join(map(str, shown.states)) in cell.change
        assert column.summary.startswith("Runs, but not as trained: states fed to fc")
    right = serving(drafter, "vllm", "0.32.0", 61, Proof(drafter.states))[0]
    assert right.outcome == "same" and right.summary == "Serves it as trained."


def test_a_default_without_ids_is_compared_with_the_proof():
    for engine, outcome in (("vllm", "differs"), ("sglang", "differs"), ("trtllm", "differs")):
        found = serving(flat(), engine, None, 30, Proof((0, 2, 15)))[-1].cells["States fed to fc"]
        assert found.outcome == outcome and found.change, engine
    assert serving(flat(), "vllm", None, 30, Proof((2, 15, 27)))[-1].cells["States fed to fc"].outcome == "same"
    assert serving(flat(), "vllm", None, None, Proof((2, 15, 27)))[-1].cells["States fed to fc"].outcome == "depends"


def test_a_switch_that_replays_refute_turns_the_row_around():
    drafter, shown = golden_record("speculators-nbr"), Proof((2, 30, 58), {"residual_norm": False})
    mine = {engine: serving(drafter, engine, None, 61, shown)[-1].cells["Residual"] for engine in ("vllm", "sglang")}
    assert mine["vllm"].outcome == "differs" and mine["sglang"].outcome == "same"
    assert mine["vllm"].drafter == "trained without norm_before_residual, as replays show; the file says otherwise"
    assert Proof((2, 30, 58), more=True).told == "as the config says"  # something else is wrong with the file
