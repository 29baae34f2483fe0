"""The rows of the portability table that are no switches: loading, layer ids, later layers, embeddings, head."""

from __future__ import annotations

from dataclasses import replace

from eagle3dash.formats.engines.cells import UNPROVED, Cell, Proof, family, fed, said
from eagle3dash.formats.engines.servers import SGLANG, TENSORRT, VLLM, Server
from eagle3dash.formats.engines.states import setting, states_of
from eagle3dash.records import Drafter

DEFAULT = "HF[2, N//2, N-3]"
PLACES = {"eagle_config.layer_ids": "layer_ids", "eagle_config.eagle_aux_hidden_state_layer_ids": "nested"}
FLAT = (
    "write a flat config.json: the fields of transformer_layer_config at top level, model_type llama, architectures "
    "LlamaForCausalLMEagle3"
)


def loading(server: Server, drafter: Drafter, layers: int | None, proof: Proof) -> Cell:
    """What stops the engine while it loads the file, or loads it only in part."""
    for test in (_config, _depth, _latent, _names, _width, _map):
        found = test(server, drafter)
        if found is not None:
            return found
    return Cell("same", "loads")


def _config(server: Server, drafter: Drafter) -> Cell | None:
    if drafter.flavour == "speculators" and not server.speculators:
        return Cell("stops", "cannot read a speculators config", FLAT)
    named = said(drafter, "architectures")
    if server.architectures and named and not set(named) & set(server.architectures):
        change = f"write one of {', '.join(server.architectures)} into architectures"
        return Cell("stops", f"architectures is {named[0][:40]}, which is not its EAGLE-3 class", change)
    return None


def _depth(server: Server, drafter: Drafter) -> Cell | None:
    depth = max(drafter.spec.depth, said(drafter, "num_hidden_layers") or 0)
    if server.deepest is None or depth <= server.deepest:
        return None
    return Cell("stops", f"takes one layer, config.json or the file has {depth}", "serve it with SGLang 0.5.12 or newer")


def _latent(server: Server, drafter: Drafter) -> Cell | None:
    if drafter.spec.mla is None or server.latent:
        return None
    return Cell("stops", "has no MLA drafters", "serve it with SGLang 0.5.12 or newer")


def _names(server: Server, drafter: Drafter) -> Cell | None:
    used = [tensor.name.removeprefix("model.") for tensor in drafter.tensor_list if tensor.use == "used"]
    if not server.only_midlayer or not any(name.startswith("layers.0.") for name in used):
        return None
    does = "skips layers.0.* without a word and drafts with a random layer (accept length 1.00)"
    return Cell("differs", does, "rename layers.0.* to midlayer.*")


def _width(server: Server, drafter: Drafter) -> Cell | None:
    """The number of states that it builds fc for."""
    place = _place(drafter)
    named = len(drafter.layer_ids) if drafter.layer_ids else None
    qwen = server.engine == VLLM and drafter.spec.qk_norm  # its qwen3 drafter reads a top-level list as well
    known = {"count": said(drafter, "num_aux_hidden_states"), place: named if place == "nested" or qwen else None}
    if drafter.spec.mla and server.engine == SGLANG:
        known = {"nested": named}
    built = next((known[at] for at in (*server.widths_at, "top") if known.get(at)), 3)
    if server.engine == TENSORRT or built == drafter.spec.num_aux:
        return None
    does = f"builds fc for {built} states, the file's reads {drafter.spec.num_aux}"
    return Cell("stops", does, f'write "num_aux_hidden_states": {drafter.spec.num_aux} into config.json')


def _map(server: Server, drafter: Drafter) -> Cell | None:
    spec, names = drafter.spec, {tensor.name for tensor in drafter.tensor_list if tensor.use == "used"}
    if server.identity_map or spec.draft_vocab != spec.vocab or "d2t" not in names:
        return None
    return Cell("stops", "refuses a d2t where the draft vocabulary is the target's", "drop d2t and t2d from the file")


def states(server: Server, drafter: Drafter, layers: int | None, proof: Proof = UNPROVED) -> Cell:
    """Which states it captures, beside those a replay showed; else those the config means under its maker's convention."""
    if proof.states is None:
        return _states(server, drafter, layers)
    shown = f"trained on {fed(proof.states)}, as replays show"
    but = f"; {_means(drafter)}" if drafter.states != proof.states else ""
    return replace(_states(server, replace(drafter, states=proof.states), layers), drafter=shown + but)


def _states(server: Server, drafter: Drafter, layers: int | None) -> Cell:
    ids, place, trained = drafter.layer_ids, _place(drafter), drafter.states
    if "setting" in server.ids_at:
        return _by_setting(server, drafter, layers)
    if not ids:
        return _by_default(server, drafter, layers)
    if place not in server.ids_at:
        taken = states_of(None, server.engine, layers=layers)
        does = f"{fed(taken) if taken else DEFAULT}, its default, as it reads no {drafter.layer_ids_at}"
        return _compared(server, drafter, taken, does)
    taken = _read(server, drafter, place, layers)
    if layers and taken and max(taken) > layers - (server.engine == SGLANG and not _last(server, drafter)):
        does = f"{fed(taken)}: the target's layers end before HF[{max(taken)}], so fc gets fewer states than it reads"
        return Cell("stops", does, setting(trained, server.engine) if trained else "", _means(drafter))
    return _compared(server, drafter, taken, fed(taken) if taken else DEFAULT)


def _read(server: Server, drafter: Drafter, place: str, layers: int | None) -> tuple[int, ...] | None:
    known = {"family": family(drafter), "layers": layers, "runner": server.runner}
    return states_of(drafter.layer_ids, server.engine, server.first, nested=place == "nested", **known)


def _last(server: Server, drafter: Drafter) -> bool:
    """Whether SGLang can capture HF[N]: only of gpt-oss, from 0.5.18."""
    return "gpt_oss" in family(drafter) and server.first == "0.5.18"


def _place(drafter: Drafter) -> str:
    return PLACES.get(drafter.layer_ids_at or "", "top")


def _compared(server: Server, drafter: Drafter, taken: tuple[int, ...] | None, does: str) -> Cell:
    trained = drafter.states
    if trained is None:
        return Cell("depends", does)
    if taken is None:
        return Cell("depends", does, setting(trained, server.engine), _means(drafter))
    if taken == tuple(trained):
        return Cell("same", does, "", _means(drafter))
    return Cell("differs", does, setting(trained, server.engine), _means(drafter))


def _means(drafter: Drafter) -> str:
    return f"the config means {fed(drafter.states)}" if drafter.states else "the config names no layers"


def _by_default(server: Server, drafter: Drafter, layers: int | None) -> Cell:
    text = fed((2, layers // 2, layers - 3)) if layers else DEFAULT
    if drafter.spec.num_aux != 3:
        return Cell("stops", f"{text}, where fc reads {drafter.spec.num_aux} states", "", _means(drafter))
    if drafter.states:
        return _compared(server, drafter, (2, layers // 2, layers - 3) if layers else None, f"{text}, its default")
    if str(said(drafter, "speculators_version") or "").startswith(("0.3.", "0.4.")):
        does = f"{text}, where speculators 0.3 and 0.4 dumped HF[3, N//2+1, N-2] unless told"
        return Cell("depends", does, "", _means(drafter))
    return Cell("same", f"{text}: its default, and every trainer's", "", _means(drafter))


def _by_setting(server: Server, drafter: Drafter, layers: int | None) -> Cell:
    text = fed((2, layers // 2, layers - 3)) if layers else DEFAULT
    does = f"what its eagle3_layers_to_capture names, else {text}, whatever the file says"
    if not drafter.states:
        alike = not drafter.layer_ids and drafter.spec.num_aux == 3
        return Cell("same" if alike else "depends", does, "", _means(drafter))
    if 0 in drafter.states:
        return Cell("differs", f"never HF[0]; {does}", setting(drafter.states, server.engine), _means(drafter))
    if layers and tuple(drafter.states) == (2, layers // 2, layers - 3):
        return Cell("same", does, "", _means(drafter))
    return Cell("depends", does, setting(drafter.states, server.engine), _means(drafter))


def later_norm(server: Server, drafter: Drafter, layers: int | None, proof: Proof) -> Cell | None:
    """The name under which it looks for the norm before attention in layers after the first."""
    ends = (".input_layernorm.weight", ".hidden_norm.weight")
    plain = [tensor.name.removeprefix("model.") for tensor in drafter.tensor_list if tensor.use == "used"]
    stored = {name.split(".")[2] for name in plain if name.startswith("layers.") and name.endswith(ends) and name[7] != "0"}
    if drafter.spec.depth < 2 or not stored:
        return None
    named = f"the file calls it {min(stored)}"
    if stored == {server.later_norm}:
        return Cell("same", f"reads {server.later_norm} in later layers", "", named)
    does = f"norms later layers by {server.later_norm}, which stays at its initial ones"
    change = f"store {min(stored)} of later layers under the name {server.later_norm} as well"
    return Cell("differs", does, change, named)


def embeddings(server: Server, drafter: Drafter, layers: int | None, proof: Proof) -> Cell:
    """Whose embedding table it drafts with."""
    trained = said(drafter, "embed_requires_grad") is True
    held = "trained ones in the file" if trained else "a table in the file" if drafter.has_embedding else "none in the file"
    return replace(_embeddings(server, drafter, trained), drafter=held)


def _embeddings(server: Server, drafter: Drafter, trained: bool) -> Cell:
    wide = drafter.spec.target_hidden != drafter.spec.hidden
    if not drafter.has_embedding and wide:
        does = "the target's, which do not fit: another hidden size"
        return Cell("stops", does, "export the drafter with embed_tokens.weight")
    if not drafter.has_embedding:
        return Cell("same", "the target's")
    if server.own_embedding or wide:
        return Cell("same", "the file's own")
    if trained:
        return Cell("differs", "the target's", "train with the target's embeddings frozen, or serve it with vLLM")
    return Cell("same", "the target's, the same unless the drafter trained its own")


def head(server: Server, drafter: Drafter, layers: int | None, proof: Proof) -> Cell:
    """Whose lm_head it drafts with, and how draft ids become target ids."""
    spec, missing = drafter.spec, {tensor.name for tensor in drafter.tensor_list if tensor.use == "missing"}
    reduced = spec.draft_vocab < spec.vocab
    held = f"{spec.draft_vocab:,} of {spec.vocab:,} tokens" if reduced else "all tokens of the target"
    if not drafter.has_head:
        return replace(_without_head(server, drafter, reduced), drafter=f"{held}, no lm_head in the file")
    if "d2t" in missing:
        does = f"drafts ids 0 to {spec.draft_vocab - 1}"
        return Cell("differs", does, "take d2t from the trainer's own checkpoint", f"{held}, no d2t in the file")
    return Cell("same", "the file's own", "", held)


def _without_head(server: Server, drafter: Drafter, reduced: bool) -> Cell:
    change = "export the drafter with lm_head.weight"
    if server.engine == SGLANG and (reduced or said(drafter, "draft_vocab_size") is not None):
        change = change if reduced else 'take "draft_vocab_size" out of config.json: then the target\'s head is used'
        return Cell("differs", "a random head (accept length 1.00)", change)
    if reduced:
        return Cell("differs", "the target's, whose rows are not the draft vocabulary's", change)
    return Cell("same", "the target's")
