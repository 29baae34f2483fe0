"""A server's log: every line goes to the readers whose marks it holds; at the end each settles what only all lines can tell.

It knows no engine's words, only who reads which marks.
"""

from __future__ import annotations

from pathlib import Path

from eagle3dash.formats.logs import benches, fragments, llamacpp, sglang, startup, tensorrt, vllm, warnings
from eagle3dash.formats.logs.collect import Found, one_tensor_rank
from eagle3dash.formats.logs.lines import Tally, lines
from eagle3dash.records import Progress

READERS = (sglang, vllm, llamacpp, tensorrt, benches, fragments, startup, warnings)
MARKS = tuple((mark, module.read) for module in READERS for mark in module.MARKS)


def read(path: Path, found: Found, tally: Tally, progress: Progress) -> None:
    wanted = [mark.encode() for mark in dict.fromkeys(mark for mark, _ in MARKS)]
    for line in lines(path, wanted, tally, progress):
        for reader in dict.fromkeys(reader for mark, reader in MARKS if mark in line.text):
            reader(line, found)
    fragments.finish(found)
    startup.finish(found)
    for module in (sglang, vllm, llamacpp, benches):
        module.finish(found)
    if not found.server.kept:
        found.server.kept = found.plain.kept
    found.server.kept, repeated = one_tensor_rank(found.server.kept)
    if repeated:
        found.infer("windows", f"without {repeated} lines of other tensor-parallel ranks", "they repeat the same rounds")
    if found.server.lines > len(found.server.kept) + repeated and any("merged" in w.extra for w in found.server.kept):
        found.infer(
            "windows", f"{len(found.server.kept)} averages of {found.server.lines} lines", "more lines than are kept"
        )
