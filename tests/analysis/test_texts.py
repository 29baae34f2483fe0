"""Token ids alone: masks off by one, served text unlike training text; and what chance does to both."""

from dataclasses import replace

import numpy as np

from eagle3dash.analysis.findings import Evidence
from eagle3dash.analysis.findings.diagnosis import _weighed
from eagle3dash.analysis.findings.texts import loss_mask_shifted, off_distribution
from eagle3dash.analysis.texts import first_edge, mask_edges, unlike
from eagle3dash.records import Finding, Gap

HEAD, END, NEWLINE = [1, 500, 501, 198], 2, 198


def chats(count, shift=0, seed=0):
    """Chats of one template: head, prompt, head, answer, end, newline; the mask covers answer and end, moved by `shift`."""
    draw, texts = np.random.default_rng(seed), []
    for _ in range(count):
        prompt, answer = draw.integers(10, 400, 12).tolist(), draw.integers(10, 400, 30).tolist()
        tokens = np.array([*HEAD, *prompt, END, NEWLINE, *HEAD, *answer, END, NEWLINE])
        mask = np.zeros(len(tokens), dtype=np.uint8)
        start = len(HEAD) * 2 + len(prompt) + 2
        mask[start + shift : start + shift + len(answer) + 1] = 1
        texts.append((tokens, mask))
    return texts


def test_a_mask_off_by_one_is_told_with_its_direction():
    assert [mask_edges(chats(20, shift))["shift"] for shift in (-1, 0, 1)] == [-1, 0, 1]
    late = loss_mask_shifted(Evidence(4, texts={"mask": mask_edges(chats(20, 1))}))
    assert late[0].id == "loss-mask-shifted" and "late" in late[0].title
    assert loss_mask_shifted(Evidence(4, texts={"mask": mask_edges(chats(20))})) == []


def test_a_mask_is_early_too_where_texts_are_cut_before_the_answer_s_end():
    texts = []
    for tokens, mask in chats(20, -1):
        last = int(np.flatnonzero(mask)[-1])  # an answer's token: the text is cut after it, and the mask before it
        texts.append((tokens[: last + 1], np.append(mask[:last], 0)))
    assert mask_edges(texts)["shift"] == -1


def test_an_inverted_mask_is_told_from_a_mask_on_everything_or_nothing():
    turned = [(tokens, 1 - mask) for tokens, mask in chats(20)]
    found = mask_edges(turned)
    assert found["shift"] is None and found["inverted"]["spans"] == 20
    (told,) = loss_mask_shifted(Evidence(4, texts={"mask": found}))
    assert (told.id, told.severity) == ("loss-mask-shifted", "warning") and "inverted" in told.title
    for value in (0, 1):
        found = mask_edges([(tokens, np.full_like(mask, value)) for tokens, mask in turned])
        assert found["inverted"] is None
        assert isinstance(loss_mask_shifted(Evidence(4, texts={"mask": found}))[0], Gap)


def test_an_inverted_mask_of_several_turns_is_told_too():
    pairs = [chats(20, seed=seed) for seed in (1, 2)]
    several = [(np.concatenate([a, b]), np.concatenate([m, n])) for (a, m), (b, n) in zip(*pairs, strict=True)]
    assert (mask_edges(several)["shift"], mask_edges(several)["inverted"]) == (0, None)
    found = mask_edges([(tokens, 1 - mask) for tokens, mask in several])
    assert found["inverted"]["spans"] == 40


def test_the_first_edge_can_be_read():
    found = first_edge(chats(2), lambda ids: " ".join(map(str, ids)))
    start = 2 * len(HEAD) + 12 + 2
    assert found["position"] == start and found["ids"]["out"][-4:] == HEAD
    assert found["text"]["out"].endswith("1 500 501 198") and len(found["ids"]["in"]) == 6
    rolled = [(tokens, np.roll(mask, 3)) for tokens, mask in chats(2)]
    assert first_edge(rolled, None)["position"] == start + 3  # and not where the mask's end came round to
    assert first_edge([(np.arange(4), np.zeros(4, dtype=np.uint8))], None) is None


def test_what_the_tokens_do_not_tell_is_not_told():
    assert mask_edges(chats(5, 1))["shift"] is None  # few answers
    same = [(np.array([*HEAD, 30, 31, 32, END]), np.array([0] * 4 + [1] * 4))] * 20  # all answers begin alike
    assert mask_edges(same)["shift"] is None
    assert isinstance(loss_mask_shifted(Evidence(4, texts={"mask": mask_edges(same)}))[0], Gap)


def test_texts_of_another_kind_are_told_from_those_of_chance():
    draw = np.random.default_rng(1)
    english = [draw.zipf(1.5, 200) % 1000 for _ in range(24)]
    code = [draw.zipf(1.5, 200) % 1000 + 700 for _ in range(12)]
    assert not unlike(english[:12], english[12:])["differ"]
    found = unlike(english[:12], code)
    assert found["differ"] and found["divergence_bits"] > found["by_chance"]
    assert unlike(english[:12], code) == found
    assert unlike(english[:5], code) is None
    assert off_distribution(Evidence(4, texts={"unlike": found}))[0].severity == "warning"
    assert not unlike(english[:12], [text.copy() for text in english[:12]])["differ"]  # the same texts again


def test_other_prompts_behind_the_same_answers_stay_the_cause():
    alignment = Finding("tokens-differ", "warning", "texts differ", {"same_answers": 0}, "compare")
    kind = Finding("off-distribution", "warning", "another kind", {}, "train")
    told = _weighed([alignment, kind])
    assert [(f.id, f.severity) for f in told] == [("off-distribution", "warning"), ("tokens-differ", "info")]
    same = replace(alignment, evidence={"same_answers": 6})
    assert [f.id for f in _weighed([same, kind])] == ["tokens-differ", "off-distribution"]
    assert _weighed([alignment]) == [alignment]
