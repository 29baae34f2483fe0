"""The rows of the portability table that are switches: what an engine computes, beside what the drafter was trained with.

An engine's own reading (`formats.drafters.readings`) says what its newest version computes; `servers` says what a version
leaves out or refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from eagle3dash.formats.engines.cells import Cell, Proof, has
from eagle3dash.formats.engines.servers import VLLM, Server
from eagle3dash.records import Drafter, DrafterSpec

BELIED = "write into config.json how it was trained; the diagnosis of the run says what"


@dataclass(frozen=True)
class Switch:
    """A switch in words: `on` and `off` say what is computed, `trained` what the drafter was trained with when on.

    on_change, off_change: what to do where an engine switches on or off what the drafter does otherwise.
    """

    name: str
    on: str
    off: str
    trained: str
    off_change: str
    on_change: str = "set the key in config.json to false"


ROWS = {
    "Residual": Switch(
        "residual_norm", "the residual is normed", "the residual is raw", "norm_before_residual",
        "train with norm_before_residual false, or serve it with vLLM",
        'write "norm_before_residual": false into config.json: vLLM takes an absent key as true',
    ),
    "Norm before fc": Switch(
        "input_norm", "input_norm over all aux states", "no norm before fc", "norm_before_fc (input_norm)",
        "serve it with SGLang 0.5.18 or vLLM 0.25, or newer",
    ),
    "Norm of each aux state": Switch(
        "fc_norm", "a norm for each aux state", "no norm of the aux states", "fc_norm",
        "serve it with SGLang 0.5.12 or vLLM 0.25, or newer",
    ),
    "Fed back between steps": Switch(
        "feedback_norm", "the normed state is fed back", "the state before the norm is fed back", "norm_output",
        'write "norm_output": true into config.json, and serve it with SGLang 0.5.12 or vLLM 0.25, or newer',
        'write "norm_output": false into config.json: to engines it means feeding the normed state back',
    ),
    "Norm before the head": Switch(
        "head_norm", "the norm before lm_head", "no norm before lm_head", "a norm before lm_head",
        "give the file its norm.weight", "train with the norm before lm_head: engines always apply it",
    ),
    "Hidden half": Switch(
        "double_norm", "the hidden half is normed twice", "the hidden half is normed once", "two norms of the hidden half",
        "no engine norms twice: train again with the maker's other recipe, or accept the loss that a replay of this "
        "reading shows",
    ),
    "Attention biases": Switch(
        "attention_bias", "biases of q, k, v", "the biases of q, k, v are dropped", "attention biases",
        "train without attention_bias, or serve it with vLLM or TensorRT-LLM",
    ),
    "Norms of q and k": Switch(
        "qk_norm", "norms of queries and keys", "the norms of queries and keys are dropped", "norms of queries and keys",
        "train a llama layer instead of a qwen3 one, or serve it with vLLM 0.25 or newer",
    ),
}  # fmt: skip


def computed(server: Server, drafter: Drafter) -> DrafterSpec:
    """What the engine computes from this file."""
    read = drafter.readings.get(f"as served by {server.engine}")
    spec = read if read is not None else replace(drafter.spec, head_norm=True, double_norm=False)
    forgotten = server.forgets if drafter.flavour == "speculators" else frozenset()
    out = [name for name in server.drops | server.refuses | forgotten if getattr(spec, name)]
    return replace(spec, **dict.fromkeys(out, False))


def _row(switch: Switch) -> Callable[[Server, Drafter, int | None, Proof], Cell | None]:
    def cell(server: Server, drafter: Drafter, layers: int | None, proof: Proof) -> Cell | None:
        own, engine = getattr(drafter.spec, switch.name), getattr(computed(server, drafter), switch.name)
        if own != proof.switches.get(switch.name, own):
            return _belied(switch, not own, engine)
        trained = f"trained with {switch.trained}" if own else f"trained without {switch.trained}"
        if own == engine:
            return Cell("same", switch.on, "", trained) if own and switch.name != "head_norm" else None
        if own and switch.name in server.refuses:
            return Cell("stops", "has no place for these weights", switch.off_change, trained)
        if own:
            return Cell("differs", switch.off, switch.off_change, trained)
        assumed = switch.name == "residual_norm" and server.engine == VLLM and not has(drafter, "norm_before_residual")
        why = ", as vLLM takes an absent norm_before_residual for true" if assumed else ""
        return Cell("differs", f"{switch.on}{why}", switch.on_change, trained)

    return cell


def _belied(switch: Switch, shown: bool, engine: bool) -> Cell:
    """Where replays show that the drafter was trained the other way than its file says."""
    trained = f"trained {'with' if shown else 'without'} {switch.trained}, as replays show; the file says otherwise"
    does = switch.on if engine else switch.off
    return Cell("same", does, "", trained) if engine == shown else Cell("differs", does, BELIED, trained)


def rope(server: Server, drafter: Drafter, layers: int | None, proof: Proof) -> Cell | None:
    """RoPE as the engine builds it, where that is not the drafter's own."""
    own, engine = drafter.spec, computed(server, drafter)
    if own.rope == engine.rope:
        return Cell("same", shown(own), "", f"trained with {shown(own)}")
    change = "write the RoPE that it was trained with into config.json (rope_theta, and rope_scaling null or as trained)"
    return Cell("differs", shown(engine), change, f"trained with {shown(own)}")


def shown(spec: DrafterSpec) -> str:
    """A RoPE in a few words."""
    rope = spec.rope
    factor = f", factor {rope.factor:g}" if rope.factor != 1 else ""
    scale = f", cos and sin times {rope.attention_factor:.4g}" if rope.attention_factor else ""
    return f"{rope.kind}, theta {rope.theta:g}{factor}{scale}"


CONCERNS: dict[str, Callable[[Server, Drafter, int | None, Proof], Cell | None]] = {
    **{label: _row(switch) for label, switch in ROWS.items()},
    "RoPE": rope,
}


def differences(own: DrafterSpec, other: DrafterSpec) -> list[str]:
    """What another reading of the same file computes otherwise, in words; empty where it computes the same."""
    changed = [row for row in ROWS.values() if getattr(own, row.name) != getattr(other, row.name)]
    found = [row.on if getattr(other, row.name) else row.off for row in changed]
    return found + ([f"RoPE {shown(other)}"] if own.rope != other.rope else [])
