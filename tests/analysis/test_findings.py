"""The diagnosis on the demo's two runs and on faults made from the healthy one: real features, real drafter, real logs."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from eagle3dash import formats
from eagle3dash.analysis import sweep
from eagle3dash.analysis.acceptance import Tally, countable
from eagle3dash.analysis.align import align, alignment
from eagle3dash.analysis.features import compare
from eagle3dash.analysis.findings import Evidence, diagnose
from eagle3dash.analysis.findings.log_windows import windows_of
from eagle3dash.analysis.pairs import Aligned
from eagle3dash.drafter.model import load
from eagle3dash.drafter.sweep import Sweep
from eagle3dash.records import Import, Log, Request, Window

DEMO = Path(__file__).parents[2] / "data" / "demo"
STATES, K, SHORT = [0, 2, 15, 27], 4, (1, 4, 7)  # three texts for the made faults
CHOICES = [(0, 1, 2), (1, 2, 3), (0, 2, 1)]
KEYS = ("states", "training_states", "best", "labels")
EXPECTED = {"expected": [0.479, 0.262, 0.150, 0.094], "expected_kind": "cumulative"}


@dataclass
class Text:
    ids: torch.Tensor
    mask: torch.Tensor | None
    states: list[torch.Tensor]


@dataclass
class Demo:
    """The files of the demo, read by the importer, with what the drafter makes of them."""

    imports: dict[str, Import]
    texts: dict[str, list[Text]]
    model: object
    known: dict = field(default_factory=dict)

    def replays(self, texts, masks, choices):
        tallies = {choice: Tally(K) for choice in choices}
        for text, mask in zip(texts, masks, strict=True):
            known = self.model.in_vocab(text.ids).numpy()
            found = Sweep(self.model, text.states, text.ids, K)
            for choice in choices:
                made = found.drafts(choice)
                tallies[choice].add(made.right, countable(len(text.ids), K, mask), known, made.logprob)
        return tallies

    def evidence(self, served, which=tuple(range(8)), **more):
        training, masks = [self.texts["training"][i] for i in which], [self.texts["training"][i].mask for i in which]
        if tuple(which) not in self.known:
            self.known[tuple(which)] = self.replays(training, masks, CHOICES)
        tallies = self.known[tuple(which)]
        fed = self.replays(served, masks, [(0, 1, 2)])[0, 1, 2]
        replays = {"training": tallies[0, 1, 2].document([0, 2, 15]), "serving": fed.document(["s0", "s1", "s2"])}
        replays["serving"]["slots"] = [0, 1, 2]
        document = sweep.document("training", STATES, tallies, set(tallies), K)
        features = compared(training, served)
        known = {"drafter": self.imports["fixed"], "training": self.imports["training"], "target": self.imports["target"]}
        known |= {"serving": self.imports["story-fixed"], "settings": EXPECTED}
        return Evidence(K, **(known | more), replays=replays, sweep=document, features=features)

    def fixed(self, change=lambda m, t: t, order=(0, 1, 2)):
        """The healthy serving capture of the short texts, with `change(slot, tensor)`."""
        whole = [self.texts["story-fixed"][i] for i in SHORT]
        return [replace(t, states=[change(m, t.states[k]) for m, k in enumerate(order)]) for t in whole]


def compared(training, served):
    ids = [[t.ids.numpy() for t in texts] for texts in (training, served)]
    pairs = align(*ids)

    def aligned():
        for pair in pairs:
            yield Aligned(pair.serving, pair.tokens, training[pair.training].states, served[pair.serving].states)

    document, _ = compare(aligned, STATES, [2, 15, 27])
    return document | {"alignment": alignment(*ids, pairs, [t.mask for t in training])}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("tensors")
    imports = {each.kind: each for each in formats.read([DEMO / "target", DEMO / "training"], out)}
    imports["training"] = imports.pop("capture")
    imports["drafter"] = formats.read([DEMO / "drafter"], out)[0]
    corrected = [DEMO / "drafter" / "model.safetensors", DEMO / "story-fixed" / "drafter" / "config.json"]
    imports["fixed"] = formats.read(corrected, out)[0]
    texts = {}
    for story in ("story-as-served", "story-fixed"):
        imports[story] = formats.read([DEMO / story / "serving"], out, role="serving")[0]
        imports[f"{story}/logs"] = tuple(formats.read([DEMO / story / "server"], out))
    for name in ("training", "story-as-served", "story-fixed"):
        capture = imports[name].record
        files = [load_file(out / f"{sequence.tensors}.safetensors") for sequence in capture.sequences]
        slots = range(len(capture.states))
        texts[name] = [Text(f["token_ids"], f.get("loss_mask"), [f[f"state.{s}"] for s in slots]) for f in files]
    drafter, target = imports["drafter"].record, imports["target"].record
    paths = [out / f"{record.tensors}.safetensors" for record in (drafter, target)]
    return Demo(imports, texts, load(drafter, paths[0], target=target, target_path=paths[1]))


@pytest.fixture(scope="module")
def as_served(demo):
    more = {name: demo.imports[key] for name, key in (("drafter", "drafter"), ("serving", "story-as-served"))}
    return demo.evidence(demo.texts["story-as-served"], logs=demo.imports["story-as-served/logs"], **more)


@pytest.fixture(scope="module")
def healthy(demo):
    return demo.evidence(demo.texts["story-fixed"], logs=demo.imports["story-fixed/logs"])


def ids(document, severity=None):
    return [f["id"] for f in document["findings"] if severity in (None, f["severity"])]


def test_the_story_is_named_first_with_its_states_and_settings(as_served):
    document = diagnose(as_served)
    first = document["findings"][0]
    assert (first["id"], first["severity"]) == ("wrong-aux-states", "error")
    told = first["evidence"]
    assert told["trained_states"] == [0, 2, 15]
    assert told["served_states"] == told["declared_states"] == [2, 15, 27]
    assert '"eagle_aux_hidden_state_layer_ids": [0, 2, 15] at the top level' in first["fix"]
    assert all(engine in first["fix"] for engine in ("SGLang", "vLLM", "TensorRT-LLM"))
    assert ids(document, "error") == ["wrong-aux-states"] and "dead-acceptance" in ids(document, "info")
    assert "0, 2, 15" in document["verdict"] and "1.75" in document["verdict"]


def test_the_four_numbers_are_those_of_the_demo(as_served, healthy):
    numbers = diagnose(as_served)["numbers"]
    assert numbers["expected"] == pytest.approx(1.985)
    assert numbers["replayed_training_rows"] == pytest.approx(2.0226, abs=0.004)
    assert numbers["replayed_training"] == pytest.approx(1.7473, abs=0.004)
    assert numbers["replayed_serving"] == pytest.approx(1.0728, abs=0.004)
    assert numbers["served"] == pytest.approx(1 + 445 / 6811)
    numbers = diagnose(healthy)["numbers"]
    assert numbers["replayed_serving"] == pytest.approx(1.7449, abs=0.004)
    assert numbers["served"] == pytest.approx(1 + 3177 / 4117)


def test_the_healthy_run_has_no_fault(healthy):
    document = diagnose(healthy)
    assert ids(document, "error") == ids(document, "warning") == []
    assert ids(document) == ["drafter-weak"]
    needs = {gap["id"]: gap["needs"] for gap in document["could_not_check"]}
    assert needs["wrong-rope"] == "the replays that it rests on were not made"  # here; every file is there
    assert needs["acceptance-trend"] == "add a longer log: 12 windows or more over time (here 6)"  # short, and of one rank
    assert {check["status"] for check in document["checked"]} == {"passed", "noted", "could not check"}
    assert [check["id"] for check in document["checked"] if check["status"] == "noted"] == ["drafter-weak"]
    assert len(windows_of(healthy)) == 6  # of the server's log alone: not the metrics' difference, not the responses
    assert document["wiring"]["served_states"] == [0, 2, 15] and "No mismatch" in document["verdict"]


def test_states_without_numbers_are_named_by_slot(as_served):
    """The founding case: nobody wrote down which states the training capture holds."""
    names = dict(zip(STATES, ("s0", "s1", "s2", "s3"), strict=True))

    def renamed(value):
        if isinstance(value, dict):
            return {k: [names.get(s, s) for s in v] if k in KEYS else renamed(v) for k, v in value.items()}
        return [renamed(each) for each in value] if isinstance(value, list) else value

    cells = [c | {"training_state": names[c["training_state"]]} for c in as_served.features["best_cells"]]
    features = renamed(as_served.features) | {"best_cells": cells}
    unnamed = replace(as_served, replays=renamed(as_served.replays), sweep=renamed(as_served.sweep), features=features)
    first = diagnose(unnamed)["findings"][0]
    assert first["id"] == "wrong-aux-states" and first["severity"] == "error"
    assert first["evidence"]["trained_states"] == ["s0", "s1", "s2"]
    assert first["evidence"]["served_states"] == ["s1", "s2", "s3"]
    assert "s1 is HF[2], s2 is HF[15], s3 is HF[27]" in first["fix"] and "--states" in first["fix"]


def test_without_a_serving_capture_the_config_is_the_witness(as_served):
    features = {"message": "The run has no serving capture.", "needs": "serving"}
    alone = {"training": as_served.replays["training"]}
    cut = replace(as_served, serving=None, features=None, replays=alone, gaps={"features": features})
    document = diagnose(cut)
    assert document["findings"][0]["id"] == "wrong-aux-states" and "its config" in document["findings"][0]["title"]
    gaps = {gap["id"]: gap["needs"] for gap in document["could_not_check"]}
    assert gaps["shifted-features"] == "add a serving capture of the same texts"
    assert document["numbers"]["replayed_serving"] is None
    assert document["findings"][0]["confidence"]["confirm"].startswith("a serving capture")


def test_before_anything_is_served_a_config_that_loses_tokens_fails_the_gate(as_served):
    cut = replace(as_served, serving=None, features=None, logs=(), replays={"training": as_served.replays["training"]})
    first = diagnose(cut)["findings"][0]
    assert (first["id"], first["severity"]) == ("wrong-aux-states", "error")
    assert "give 1.07 tokens per row on training features instead of 2.02" in first["title"]
    served_well = diagnose(replace(cut, logs=log([0, 1, 0, 2, 0, 1, 1, 0, 3, 0] * 200)))["findings"][0]
    assert (served_well["id"], served_well["severity"]) == ("wrong-aux-states", "warning")  # the server shows no loss


def test_what_the_server_feeds_refutes_the_config_even_without_shared_tokens(as_served, healthy):
    replays = as_served.replays | {"serving": healthy.replays["serving"]}
    assert "wrong-aux-states" not in ids(diagnose(replace(as_served, features=None, replays=replays, logs=())))
    assert "wrong-aux-states" in ids(diagnose(replace(as_served, features=None, logs=())))


def test_a_server_that_accepts_more_than_its_features_give_is_doubted(as_served, demo):
    document = diagnose(replace(as_served, logs=demo.imports["story-fixed/logs"]))
    last = document["drops"][-1]
    assert (last["to"], last["kind"]) == ("served", "gain") and "not of the same server" in last["why"]


def test_every_finding_says_how_sure_it_is(as_served):
    first, *others = diagnose(as_served)["findings"]
    assert first["confidence"]["level"] == "shown" and "compared state by state" in first["confidence"]["because"]
    assert {other["confidence"]["level"] for other in others} == {"fact"}
    alone = diagnose(Evidence(K, logs=as_served.logs))["findings"][0]["confidence"]
    assert alone["because"] == "6,811 served rounds alone" and "add" in alone["confirm"]


def test_a_log_alone_names_a_symptom_and_what_to_add(as_served):
    document = diagnose(Evidence(K, logs=as_served.logs))
    assert ids(document) == ["dead-acceptance"] and document["findings"][0]["severity"] == "error"
    gaps = {gap["id"]: gap["needs"] for gap in document["could_not_check"]}
    assert gaps["wrong-aux-states"] == "add the drafter and a training capture"
    assert gaps["shifted-features"] == "add a training capture and a serving capture of the same texts"
    assert gaps["engine-loss"] == "add the drafter and a serving capture"
    nothing = diagnose(Evidence(K))
    assert nothing["findings"] == [] and set(nothing["numbers"].values()) == {None}


def short(demo, change=lambda m, t: t, order=(0, 1, 2), **more):
    return diagnose(demo.evidence(demo.fixed(change, order), SHORT, **more))


def test_order_shift_and_scale_are_named(demo):
    document = short(demo, order=(1, 0, 2))
    assert ids(document, "error") == ["aux-order"]
    assert document["findings"][0]["evidence"]["served_states"] == [2, 0, 15]

    document = short(demo, lambda m, t: t.roll(1, dims=0))
    assert ids(document, "error") == ["shifted-features"] and document["findings"][0]["evidence"]["lag"] == 1

    document = short(demo, lambda m, t: t.float() * 6 if m == 0 else t)
    assert document["findings"][0]["id"] == "scaled-features" and "6" in document["findings"][0]["title"]
    assert "wrong-aux-states" not in ids(document)


def test_a_state_that_training_never_saw_is_no_known_one(demo):
    torch.manual_seed(0)
    turn = torch.linalg.qr(torch.randn(576, 576))[0]
    document = short(demo, lambda m, t: t.float() @ turn if m == 2 else t)
    assert ids(document, "error") == ["wrong-aux-states"]
    assert document["findings"][0]["evidence"]["served_states"] == [0, 2, None]


def test_a_break_at_a_position_and_noise_are_told_apart(demo):
    torch.manual_seed(0)

    def noisy(t, size):
        return t.float() + size * t.float().norm(dim=1, keepdim=True) / 24 * torch.randn(t.shape)

    document = short(demo, lambda m, t: torch.cat([t[:60].float(), noisy(t[60:], 2.0)]))
    assert document["findings"][0]["id"] == "drifting-features" and "wrong-aux-states" not in ids(document)
    assert document["findings"][0]["evidence"]["by_slot"][0]["position"] == 60

    document = short(demo, lambda m, t: torch.cat([noisy(t[i : i + 1], 2.0 if i % 3 else 0.0) for i in range(len(t))]))
    assert document["findings"][0]["id"] == "corrupt-features" and "wrong-aux-states" not in ids(document)
    assert document["wiring"]["served_states"] == [0, 2, 15]

    document = short(demo, lambda m, t: noisy(t, 0.06))
    assert "precision-loss" in ids(document) and ids(document, "error") in ([], ["precision-loss"])


def log(accepted, steps=K, **more):
    request = Request("a", tuple(accepted), (steps,) * len(accepted))
    record = Log("responses", "vllm", steps=steps, requests=(request,), **more)
    return (Import("log", "made", "0" * 64, (), record),)


def test_the_engine_is_blamed_only_for_what_its_features_would_give(healthy):
    document = diagnose(replace(healthy, logs=log([0, 0, 0, 0, 1] * 400)))
    assert document["findings"][0]["id"] == "engine-loss" and document["findings"][0]["severity"] == "error"
    replayed = [0] * 61 + [1] * 39  # step 0 as in the replay, and nothing after it
    document = diagnose(replace(healthy, logs=log(replayed * 40)))
    assert "later-steps-loss" in ids(document)
    assert "engine-loss" not in ids(diagnose(replace(healthy, logs=log([0, 1, 0, 2, 0, 1, 1, 0, 3, 0] * 200))))


def replayed(survival, **more):
    """Numbers of a replay in the `changes` document, by what survives of its K steps."""
    lengths = {"accept_length": 1.0 + sum(survival), "row_accept_length": 2.0, "low": 1.9, "high": 2.1}
    row = {**lengths, "survival": survival, "row_survival": survival, "rounds": 737, "rows": 1282, "exact": True}
    row |= dict.fromkeys(("round_low", "round_high", "difference_low", "difference_high", "likelier"))
    row |= {"difference": 0.0, "on": [], "readings": [], "family": "rope", "clear": False}
    return row | more


@pytest.mark.parametrize(
    ("kept", "sets", "first"),
    [
        ([0.7**i for i in (1, 2, 3, 4)], {"rope": 1e6}, "engine-loss"),  # every step loses alike: no cause looks like that
        ([1.0, 0.1, 0.1, 0.1], {"feedback_norm": True}, "wrong-feedback-norm"),  # only a cause in later steps does
    ],
)
def test_a_cause_in_the_server_is_named_only_where_an_even_loss_looks_otherwise(healthy, kept, sets, first):
    base = healthy.replays["serving"]["survival"]
    lost = [value * share for value, share in zip(base, kept, strict=True)]
    rows = [replayed(lost, change="a change", sets=sets)]
    changes = {
        "capture": "serving",
        "baseline": replayed(base),
        "states": ["s0", "s1", "s2"],
        "steps": K,
        "rows": rows,
        "stacked": [],
        "best": None,
    }
    step = [int(1000 * (a - b)) for a, b in zip([1.0, *lost], [*lost, 0.0], strict=True)]
    logs = log([n for n, count in enumerate(step) for _ in range(count)])
    document = diagnose(replace(healthy, logs=logs, changes={"serving": changes}))
    assert document["findings"][0]["id"] == first


def test_a_drafter_below_its_own_validation_is_told(healthy):
    document = diagnose(replace(healthy, settings={"expected": [0.9, 0.9, 0.9, 0.9]}))
    assert document["findings"][0]["id"] == "drafter-weak" and "90%" in document["findings"][0]["title"]


def windows(lengths, rank=None):
    return [Window(line=i, accept_length=length, rounds=100, rank=rank) for i, length in enumerate(lengths)]


def test_logs_show_trend_ranks_pins_and_luck():
    def told(lines, **more):
        record = Log("vllm-log", "vllm", steps=3, windows=tuple(lines), **more)
        return ids(diagnose(Evidence(3, logs=(Import("log", "made", "0" * 64, (), record),))))

    wave = [2.2, 2.3, 2.25, 2.3, 2.2]
    assert told(windows(wave * 3)) == []
    assert told(windows([*wave, 2.0, 1.9, 1.8, 1.7, 1.6, *(length - 0.8 for length in wave)])) == ["acceptance-trend"]
    assert told(windows(wave, "DP0 TP0") + windows([length - 0.9 for length in wave], "DP1 TP0")) == ["ranks-differ"]
    assert told(windows([1.0] * 6)) == ["pinned-acceptance"]
    assert told(windows([4.0] * 6)) == ["too-good-acceptance"]
    old = {"accept_rate": "accept_len / num_draft_tokens (bonus counted)"}
    assert told(windows(wave), definitions=old) == ["metric-definition"]


def test_the_file_of_the_drafter_is_read_for_this_engine(demo, healthy):
    item = demo.imports["fixed"]
    spec = replace(item.record.spec, residual_norm=True)
    record = replace(item.record, spec=spec, readings={"as served by SGLang": item.record.spec})
    broken = replace(item, record=record, problems=("d2t is all zeros although 4096 of 49152 tokens can be drafted.",))
    document = diagnose(replace(healthy, drafter=broken, settings={"engine": "sglang"}))
    assert {"not-portable", "wrong-vocab-map"} <= set(ids(document, "warning"))
    told = next(f for f in document["findings"] if f["id"] == "not-portable")
    residual = {"concern": "Residual", "engine": "the residual is raw (trained with norm_before_residual)"}
    assert residual in told["evidence"]["differences"]
    assert "or serve it with vLLM" in told["fix"]


def test_other_prompts_are_told_and_other_answers_are_no_fault(demo, healthy):
    training = [demo.texts["training"][i] for i in SHORT]
    for at, severity in ((3, "warning"), (100, "info")):
        served = [replace(t, ids=torch.cat([t.ids[:at], t.ids[at:] + 1])) for t in demo.fixed()]
        document = diagnose(replace(healthy, features=compared(training, served)))
        assert [f["severity"] for f in document["findings"] if f["id"] == "tokens-differ"] == [severity]
