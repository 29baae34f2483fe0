"""Records survive the way to JSON and back, nested unions included."""

import json

import pytest

from eagle3dash.records import (
    Capture,
    Drafter,
    DrafterSpec,
    Import,
    Log,
    Mla,
    Request,
    Sequence,
    Source,
    Target,
    Window,
    from_json,
    to_json,
)

SPEC = DrafterSpec(64, 64, 3, 128, 4, 2, 16, 300, 120, mla=Mla(8, 8, 4, 4, 4))
RECORDS = {
    "drafter": Drafter("speculators", SPEC, "aa", readings={"as served by vLLM": SPEC}, states=(0, 2, 15)),
    "capture": Capture("vllm", 64, "bfloat16", (0, None), (Sequence("a", 5, "bb", "cc"),), role="serving", aux=(0,)),
    "log": Log("vllm-log", "vllm", windows=(Window(3, survival=(0.5, 0.2)),), requests=(Request("r", (1, 0), (4, 4)),)),
    "target": Target(300, 64, "dd", tied=True),
}


@pytest.mark.parametrize("kind", RECORDS)
def test_an_import_comes_back_equal(kind):
    before = Import(kind, "name", "00", (Source("file", 1, "ee"),), RECORDS[kind], tensors=("aa",))
    assert from_json(Import, json.loads(json.dumps(to_json(before)))) == before


def test_an_unknown_key_is_refused():
    with pytest.raises(TypeError):
        from_json(Source, {"name": "a", "bytes": 1, "sha256": "b", "path": "/etc/passwd"})
