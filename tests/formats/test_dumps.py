"""Every dump layout, as its tool writes it: told apart by shape, read value for value, broken ones named."""

import gzip
import io
import json
from pathlib import Path

import pyarrow
import pytest
import torch
from safetensors.torch import load_file, save_file

from eagle3dash import formats
from eagle3dash.errors import BadInput, Refused
from eagle3dash.formats import sandbox
from eagle3dash.records import BadRows, Capture, Refusal

S, W, A = 9, 16, 3
torch.set_num_threads(1)
STATES = [torch.randn(S, W, generator=torch.Generator().manual_seed(i)).to(torch.bfloat16) for i in range(A + 1)]
AUX, LAST = torch.cat(STATES[:A], dim=1), STATES[A]  # [S, A*W], [S, W]
IDS = torch.arange(100, 100 + S)
MASK = torch.tensor([0, 0, 1, 1, 1, 1, 1, 1, 0])


def read(path, out, **options) -> tuple[Capture, list[dict[str, torch.Tensor]]]:
    (item,) = formats.read([path], out, **options)
    return item.record, [load_file(out / f"{sequence.tensors}.safetensors") for sequence in item.record.sequences]


def saved(folder: Path, name: str, content) -> Path:
    path = folder / name
    if name.endswith(".safetensors"):
        save_file(content, path)
    elif name.endswith(".gz"):
        buffer = io.BytesIO()
        torch.save(content, buffer)
        path.write_bytes(gzip.compress(buffer.getvalue()))
    else:
        torch.save(content, path)
    return path


LAYOUTS = {  # name -> file name, content, format, aux, last, role
    "speculators v1": ("data_0.pt", {"input_ids": IDS, "loss_mask": MASK, "hidden_states": STATES},
                       "speculators v1 data_N.pt", (0, 1, 2), "pre-norm", "training"),
    "speculators v0": ("data_0.pt", {"input_ids": IDS, "loss_mask": MASK, "hidden_state": AUX, "target": LAST},
                       "speculators v0 .pt", (0, 1, 2), "none", "training"),
    "speculators hs_N": ("hs_7.safetensors", {"token_ids": IDS, "hidden_states": torch.stack(STATES, dim=1)},
                         "speculators hs_N", (0, 1, 2), "pre-norm", "training"),
    "vllm connector": ("0-abcd.safetensors", {"token_ids": IDS, "hidden_states": torch.stack(STATES, dim=1)},
                       "vllm connector", (0, 1, 2, 3), "none", "serving"),
    "specforge": ("data_0.ckpt", {"input_ids": IDS, "loss_mask": MASK, "hidden_state": LAST[None],
                                  "aux_hidden_state": AUX[None]},
                  "specforge", (0, 1, 2), "post-norm", "training"),
    "specforge gz": ("data_0.ckpt.gz", {"input_ids": IDS, "hidden_state": LAST[None], "aux_hidden_state": AUX[None]},
                     "specforge", (0, 1, 2), "post-norm", "training"),
    "angelslim": ("data_0.ckpt", {"input_ids": IDS[None], "target_hiddens": LAST[None], "hidden_states": AUX[None],
                                  "loss_mask": MASK[None], "attention_mask": torch.ones(1, S)},
                  "angelslim", (0, 1, 2), "post-norm", "training"),
    "modelopt": ("conv.pt", {"input_ids": IDS, "hidden_states": LAST, "aux_hidden_states": AUX, "loss_mask": MASK,
                             "conversation_id": "conv"},
                 "modelopt", (0, 1, 2), "post-norm", "training"),
    "modelopt vllm": ("conv.pt", {"input_ids": IDS, "hidden_states": LAST, "aux_hidden_states": AUX,
                                  "hidden_states_prenorm": True},
                      "modelopt", (0, 1, 2), "pre-norm", "training"),
    "tensorrt": ("out_0.pt", [{"id": 5, "input_ids": IDS.int(), "hidden_state": LAST, "hidden_state_features": AUX}],
                 "tensorrt-llm", (0, 1, 2), "none", "training"),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_hold_four_states(tmp_path, layout):
    name, content, form, aux, last, role = LAYOUTS[layout]
    record, (stored,) = read(saved(tmp_path, name, content), tmp_path / "out")
    assert (record.format, record.aux, record.last, record.role) == (form, aux, last, role)
    assert (record.width, record.dtype, len(record.states)) == (W, "bfloat16", A + 1)
    assert all(torch.equal(stored[f"state.{i}"], state) for i, state in enumerate(STATES))
    assert torch.equal(stored["token_ids"], IDS)
    has_mask = isinstance(content, dict) and "loss_mask" in content
    assert record.sequences[0].loss_tokens == (int(MASK.sum()) if has_mask else None)
    assert ("loss_mask" in stored) == has_mask


CONCATENATIONS = {
    "pt": ("feats.pt", {"input_ids": IDS, "hidden_states": AUX}),
    "safetensors": ("feats.safetensors", {"token_ids": IDS, "aux_hidden_states": AUX}),
    "batch of one": ("feats.pt", {"input_ids": IDS[None], "features": AUX[None]}),
    "batch of one, safetensors": ("feats.safetensors", {"input_ids": IDS[None], "hidden_states": AUX[None]}),
    "another name": ("feats.pt", {"tokens": IDS, "what": AUX}),
    "ids as a list": ("feats.pt", {"prompt_token_ids": IDS.tolist(), "hidden_states": AUX}),
    "int32 ids": ("feats.pt", {"input_ids": IDS.int(), "hidden_states": AUX}),
}


@pytest.mark.parametrize("layout", CONCATENATIONS)
def test_plain_concatenation(tmp_path, layout):
    path = saved(tmp_path, *CONCATENATIONS[layout])
    record, (stored,) = read(path, tmp_path / "out", role="serving", width=W)
    assert (record.format, record.role, record.width, record.aux) == ("concatenation", "serving", W, (0, 1, 2))
    assert all(torch.equal(stored[f"state.{i}"], STATES[i]) for i in range(A))
    assert torch.equal(stored["token_ids"], IDS)


def test_concatenation_needs_a_role_and_a_width(tmp_path):
    path = saved(tmp_path, "feats.pt", {"input_ids": IDS, "hidden_states": AUX})
    with pytest.raises(BadInput, match="--as training or --as serving"):
        formats.read([path], tmp_path / "out", width=W)
    with pytest.raises(BadInput, match="48 wide, which is no multiple of 20"):
        formats.read([path], tmp_path / "out", role="serving", width=20)
    (item,) = formats.read([path], tmp_path / "out", role="serving")
    assert item.record.width == W and [note.value for note in item.inferred if note.field == "width"] == [str(W)]
    odd = saved(tmp_path, "odd.pt", {"input_ids": IDS, "hidden_states": AUX[:, :47]})
    with pytest.raises(BadInput, match="47 wide and nothing says"):
        formats.read([odd], tmp_path / "out", role="serving")


def test_one_state_only(tmp_path):
    record, (stored,) = read(
        saved(tmp_path, "data_0.ckpt", {"input_ids": IDS, "hidden_state": LAST, "loss_mask": MASK}), tmp_path / "out"
    )
    assert (record.format, record.aux, record.last) == ("ge_data", None, "post-norm")
    assert torch.equal(stored["state.0"], LAST)
    wide = saved(tmp_path, "wide.ckpt", {"input_ids": IDS, "hidden_state": AUX, "loss_mask": MASK})
    assert read(wide, tmp_path / "out", width=W, role="training")[0].format == "concatenation"


def test_several_requests_in_one_file(tmp_path):
    requests = [{"id": i, "input_ids": IDS[: 4 + i], "hidden_state": LAST[: 4 + i]} for i in range(3)]
    record, stored = read(saved(tmp_path, "out_0.pt", requests), tmp_path / "out")
    assert [sequence.tokens for sequence in record.sequences] == [4, 5, 6]
    assert len({sequence.name for sequence in record.sequences}) == 3
    assert torch.equal(stored[2]["state.0"], LAST[:6])


@pytest.mark.parametrize(
    "dtype, kept", [(torch.float16, "float16"), (torch.float32, "float32"), (torch.float64, "float32")]
)
def test_dtypes(tmp_path, dtype, kept):
    exact = [state.to(dtype) for state in STATES]
    record, (stored,) = read(saved(tmp_path, "data_0.pt", {"input_ids": IDS, "hidden_states": exact}), tmp_path / "out")
    assert record.dtype == kept and stored["state.1"].dtype is getattr(torch, kept)
    assert torch.equal(stored["state.1"], exact[1].to(getattr(torch, kept)))


def test_views_are_read_as_torch_shows_them(tmp_path):
    big = torch.randn(2 * S, 4 * W).to(torch.bfloat16)
    states = [big[1 : S + 1, :W], big[::2, W : 2 * W], big.T[:W, :S].T, STATES[3]]  # offset, stride, transposed
    _, (stored,) = read(saved(tmp_path, "data_0.pt", {"input_ids": IDS, "hidden_states": states}), tmp_path / "out")
    assert all(torch.equal(stored[f"state.{i}"], state) for i, state in enumerate(states))


def test_old_torch_format(tmp_path):
    path = tmp_path / "data_0.pt"
    torch.save({"input_ids": IDS, "hidden_states": STATES}, path, _use_new_zipfile_serialization=False)
    _, (stored,) = read(path, tmp_path / "out")
    assert all(torch.equal(stored[f"state.{i}"], state) for i, state in enumerate(STATES))


def test_one_token_more_than_rows(tmp_path):
    """The token after the last row is known: it lets the last row be drafted from."""
    ids = torch.arange(S + 1)
    path = saved(tmp_path, "a.safetensors", {"token_ids": ids, "hidden_states": torch.stack(STATES, dim=1)})
    record, (stored,) = read(path, tmp_path / "out")
    assert record.sequences[0].tokens == S and torch.equal(stored["token_ids"], ids)


@pytest.mark.parametrize(
    "config, states",
    [
        ({"layers": [0, 3, 31, 59]}, (0, 3, 31, 59)),
        ({"speculators_version": "0.3.0", "hidden_states": {"layer_ids": [2, 30, 58, 60]}}, (3, 31, 59, 61)),
        ({"speculators_version": "0.5.0", "hidden_states": {"layer_ids": [2, 30, 58, 61]}}, (2, 30, 58, 61)),
        ({"layers": [0, 3]}, (None,) * 4),
        ({"layers": "0, 3"}, (None,) * 4),
    ],
)
def test_states_from_data_config(tmp_path, config, states):
    folder = tmp_path / "in"
    folder.mkdir()
    saved(folder, "data_0.pt", {"input_ids": IDS, "hidden_states": STATES})
    (folder / "data_config.json").write_text(json.dumps(config))
    (item,) = formats.read([folder], tmp_path / "out")
    assert item.record.states == states
    assert bool(item.problems) == (config["layers"] == [0, 3] if "layers" in config else False)


def test_loss_mask_from_the_data_set_beside_hs_files(tmp_path):
    folder = tmp_path / "in"
    (folder / "hidden_states").mkdir(parents=True)
    saved(folder / "hidden_states", "hs_0.safetensors", {"token_ids": IDS, "hidden_states": torch.stack(STATES, dim=1)})
    table = pyarrow.table({"input_ids": [[1, 2], IDS.tolist()], "loss_mask": [[1, 1], MASK.tolist()]})
    path = str(folder / "data-00000-of-00001.arrow")
    with pyarrow.OSFile(path, "wb") as file, pyarrow.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    (folder / "dataset_info.json").write_text("{}")
    (folder / "state.json").write_text("{}")
    record, (stored,) = read(folder, tmp_path / "out")
    assert record.format == "speculators hs_N" and record.sequences[0].loss_tokens == int(MASK.sum())
    assert torch.equal(stored["loss_mask"], MASK.to(torch.uint8))


def reply(states: torch.Tensor, **meta) -> dict:
    prompt, rest = states[:5].tolist(), [row.tolist() for row in states[5:]]
    return {
        "text": "x",
        "input_ids": IDS[:5].tolist(),
        "output_ids": IDS[5:].tolist(),
        "meta_info": meta | {"hidden_states": [prompt, *rest]},
    }


def test_sglang_replies(tmp_path):
    path = tmp_path / "replies.jsonl"
    path.write_text("\n".join(json.dumps(reply(AUX.float(), spec_verify_ct=3)) for _ in range(2)))
    record, stored = read(path, tmp_path / "out")
    assert (record.format, record.role, record.aux, record.width) == ("sglang", "serving", (0, 1, 2), W)
    assert torch.equal(stored[0]["state.1"], STATES[1].float()) and torch.equal(stored[0]["token_ids"], IDS)
    path.write_text(json.dumps(reply(LAST.float())))
    record, _ = read(path, tmp_path / "out")
    assert (record.aux, record.last, record.width) == (None, "post-norm", W)
    lone = reply(LAST.float())
    del lone["input_ids"]
    path.write_text(json.dumps(lone))
    with pytest.raises(BadInput, match="no token ids of the prompt"):
        formats.read([path], tmp_path / "out")


def changed(state: int, row: int, value: float) -> list[torch.Tensor]:
    states = [tensor.clone() for tensor in STATES]
    states[state][row] = value
    return states


@pytest.mark.parametrize(
    "content, match",
    [
        ({"hidden_states": STATES, "loss_mask": MASK}, "no token ids"),
        ({"hidden_states": AUX}, "no token ids"),
        (AUX, "without token ids"),
        ({"input_ids": IDS[:-2], "hidden_states": STATES}, "7 token ids for 9 rows"),
        ({"input_ids": IDS, "loss_mask": MASK[:4], "hidden_states": STATES}, "loss_mask has 4 entries for 9 rows"),
        ({"input_ids": IDS, "hidden_states": [*STATES[:3], LAST[:, :8]]}, "wrong width: slot 3 is 8 wide, slot 0 is 16"),
        ({"input_ids": IDS, "hidden_states": [*STATES[:3], LAST[:5]]}, "slot 3 has 5 rows, slot 0 has 9"),
        ({"input_ids": IDS.float(), "hidden_states": STATES}, "input_ids is"),
        ({"input_ids": IDS - 1000, "hidden_states": STATES}, "token id -900 at position 0"),
        ({"input_ids": IDS, "hidden_states": changed(2, 4, float("nan"))}, "slot 2, row 4 holds NaN or infinite"),
        ({"input_ids": IDS, "hidden_states": changed(0, 8, float("-inf"))}, "slot 0, row 8 holds NaN or infinite"),
        ({"input_ids": IDS, "hidden_states": changed(1, 3, 0.0)}, "slot 1, row 3 holds only zeros"),
        ({"input_ids": IDS, "hidden_states": changed(1, slice(None), 0.0)}, "every row holds only zeros.*captured nothing"),
        ({"input_ids": IDS, "hidden_state": AUX[:, :40], "target": LAST}, "40 wide, which is no multiple of 16"),
        ({"input_ids": IDS[:0], "hidden_states": [state[:0] for state in STATES]}, "0 token ids for 0 rows"),
        (
            {"input_ids": torch.stack([IDS, IDS]), "hidden_state": LAST[None].expand(2, S, W).clone(), "target": LAST},
            "batch of 2",
        ),
        ({"a": 1, "b": "text"}, "neither hidden states"),
        ({"x": IDS}, "weights of neither"),
    ],
)
def test_broken_dumps_are_named(tmp_path, content, match):
    with pytest.raises(BadInput, match=match) as caught:
        formats.read([saved(tmp_path, "data_0.pt", content)], tmp_path / "out")
    assert str(caught.value).startswith("data_0.pt: ") and len(str(caught.value)) <= 300
    assert not list((tmp_path / "out").iterdir())


def test_many_bad_rows_are_counted(tmp_path):
    states = [tensor.clone() for tensor in STATES]
    states[1][2:6] = float("inf")
    with pytest.raises(BadInput, match="slot 1, row 2 holds NaN or infinite values; 4 of 9 rows do"):
        formats.read([saved(tmp_path, "data_0.pt", {"input_ids": IDS, "hidden_states": states})], tmp_path / "out")


def test_a_refusal_tells_every_slot_of_the_text_and_travels_with_its_fields(tmp_path):
    states = [tensor.clone() for tensor in STATES]
    states[1][2:6] = float("inf")
    states[1][7] = 0.0
    states[3][:] = 0.0
    with pytest.raises(Refused, match="Slot 3 as well") as caught:
        formats.read([saved(tmp_path, "data_0.pt", {"input_ids": IDS, "hidden_states": states})], tmp_path / "out")
    rows = (
        BadRows(1, "NaN or infinite values", 2, 4, S),
        BadRows(1, "only zeros", 7, 1, S),
        BadRows(3, "only zeros", 0, S, S),
    )
    assert caught.value.refusal == Refusal("data_0.pt", rows=rows)


@pytest.mark.parametrize("told", [[], "x", {"file": 3}, {"file": "a", "rows": [{"slot": "b"}]}, {"file": "a", "code": "b"}])
def test_a_refusal_that_makes_no_sense_is_only_a_message(told):
    with pytest.raises(BadInput, match="^no$") as caught:
        sandbox._outcome(None, 0, {"error": "no", "refusal": told}, "a file")
    assert not isinstance(caught.value, Refused)
