"""Hidden-state dumps: what a tool wrote -> `Dump`, one for each sequence. One module a layout.

Runs only in the parsing child. Names mislead (`hidden_states` is a list of four, a stack of n, the last state only, or the
aux concatenation), so a layout is told by keys and shapes together; a file's name decides only where nothing else differs.
Facts: vllm-project/speculators, sgl-project/SpecForge, vLLM `ExampleHiddenStatesConnector`, NVIDIA ModelOpt, AngelSlim,
SafeAILab/EAGLE `ge_data`, TensorRT-LLM `SaveHiddenStates`, SGLang `return_hidden_states`; each module says more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eagle3dash.formats.dumps import (
    angelslim,
    concat,
    connector,
    ge_data,
    modelopt,
    sglang,
    specforge,
    speculators,
    tensorrt,
)
from eagle3dash.formats.dumps.dump import Beside, Dump

Reader = Callable[[Any, Beside], "list[Dump] | None"]
READERS: tuple[Reader, ...] = (  # the plain concatenation last: it takes what no named tool claims
    sglang.read,
    tensorrt.read,
    angelslim.read,
    modelopt.read,
    specforge.read,
    speculators.read,
    connector.read,
    ge_data.read,
    concat.read,
)


def recognise(tree: Any, beside: Beside) -> list[Dump] | None:
    """The sequences of an opened container, or None when it holds no hidden states. Raises BadInput for a broken dump."""
    for reader in READERS:
        dumps = reader(tree, beside)
        if dumps is not None:
            return dumps
    return None


__all__ = ["Beside", "Dump", "recognise"]
