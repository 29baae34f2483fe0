"""The features question where served texts are not the training texts: the demo's, with another system prompt, or cut."""

import torch
from safetensors.torch import load_file, save_file

from eagle3dash.jobs import imports, questions
from eagle3dash.jobs.demo import FOLDER as DEMO
from eagle3dash.jobs.questions import Question

PUT = torch.tensor([504, 905, 553, 253, 1695])


def other_system_prompt(states, ids):
    rows = torch.cat([torch.arange(3), torch.arange(5) + 5, torch.arange(20, len(ids))])
    return states[rows], torch.cat([ids[:3], PUT, ids[20:]])


def asked(store, tmp_path, change, *names):
    folder = tmp_path / "served"
    folder.mkdir()
    for path in (DEMO / "story-fixed" / "serving").iterdir():
        states, ids = change(*(load_file(path)[name] for name in ("hidden_states", "token_ids")))
        save_file({"hidden_states": states.contiguous(), "token_ids": ids.contiguous()}, folder / path.name)
    imports.bring_in(store, [DEMO / name for name in names or ("training", "target")], "changed")
    imports.bring_in(store, [folder], "changed", role="serving")
    return questions.answer(store, Question("features", "changed"))


def test_another_system_prompt_is_read_out_with_the_target_s_vocabulary(store, tmp_path):
    document = asked(store, tmp_path, other_system_prompt)
    told = document["alignment"]
    assert (told["pairs"], told["aligned_tokens"], told["tokens_behind"]) == (8, 24, 1463)
    first = told["first_difference"]
    assert (first["position"], first["training_span"], first["serving_span"]) == (3, [3, 20], [3, 8])
    assert first["training_sequence"] == first["serving_sequence"] and first["what"] == "system prompt"
    named = "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>"
    assert first["training_text"].startswith(f"<|im_start|>system↵⟦{named}⟧↵<|im_start|>user↵")
    assert first["serving_text"].startswith("<|im_start|>system↵⟦The world has a following⟧↵<|im_start|>user↵")
    assert [slot["state"] for slot in document["behind"]["slots"]] == [0, 2, 15]


def test_a_missing_first_token_and_the_mask_are_read_out(store, tmp_path):
    document = asked(store, tmp_path, lambda states, ids: (states[1:], ids[1:]))
    first = document["alignment"]["first_difference"]
    assert first["what"] == "the first token (BOS, or the template's own: <|im_start|>) is missing in serving"
    assert document["alignment"]["same_ends"] == 8
    mask = document["mask"]
    assert (mask["spans"], mask["shift"]) == (8, 0)
    assert mask["first"]["text"]["out"] == "<|im_end|>↵<|im_start|>assistant↵"


def test_without_a_target_ids_are_told_alone(store, tmp_path):
    first = asked(store, tmp_path, other_system_prompt, "training")["alignment"]["first_difference"]
    assert "training_text" not in first and first["serving_ids"][3:8] == PUT.tolist()
