"""Which states of the target a drafter's config names: where the ids stand, and what an id means there, as HF[k].

Facts: vLLM and speculators read a top-level list as it is, HF[L]; SGLang, SpecForge, AngelSlim, NeMo Automodel,
TensorRT-LLM and ModelOpt's Hugging Face path take "after layer L", HF[L+1]. SGLang from 0.5.15 takes HF[L] for the
DeepSeek family (Kimi with it) unless the first id is 1 (pull request 25454), and from 0.5.18 for gpt-oss when an id
names the last boundary (32334). TorchSpec's `--vllm` export of a kimi_k2 drafter adds 1 to every id.
"""

from __future__ import annotations

from eagle3dash.errors import BadInput
from eagle3dash.formats.drafters.checkpoint import Checkpoint
from eagle3dash.records import DrafterSpec

TOP = "eagle_aux_hidden_state_layer_ids"
NESTED = f"eagle_config.{TOP}"
DEEPEST = 1000
DEEPSEEK_TYPES = ("kimi", "deepseek")
KIMI_VOCAB = 163840
GPT_OSS = (201088, 36)  # vocabulary; layers of the 120b
Ids = tuple[int, ...] | None


def ids(checkpoint: Checkpoint) -> tuple[Ids, str | None]:
    """(layer ids as printed, path), or (None, None) where the config names none (absent, null or empty)."""
    for path in (TOP, NESTED, f"{checkpoint.fields.block}{TOP}", "eagle_config.layer_ids"):
        value, _ = checkpoint.fields.find(path)
        if not value:
            continue
        if path == TOP and checkpoint.fields.leaves.get(NESTED) not in (None, [], value):
            checkpoint.contradict(NESTED, f"{NESTED} and {TOP} name different layers; the latter is taken, as vLLM does.")
        whole = isinstance(value, list) and all(type(item) is int and 0 <= item <= DEEPEST for item in value)
        if not whole or len(value) > 32:
            raise BadInput(f"config.json: {path} must be a short list of layer numbers from 0 to {DEEPEST}.")
        return tuple(value), path
    return None, None


def states(checkpoint: Checkpoint, found: Ids, path: str | None, spec: DrafterSpec) -> Ids:
    """The ids as HF[k] under the flavour's own convention; None where the config doesn't name as many as fc reads."""
    if found is None or path is None:
        checkpoint.infer("states", "unknown", "the config names no layers; tools then take HF[2, N//2, N-3]")
        return None
    if len(found) != spec.num_aux:
        checkpoint.infer("states", "unknown", f"{path} names {len(found)} layers, fc reads {spec.num_aux} states")
        return None
    shift, why = _shift(checkpoint, found, path, spec.vocab)
    result = tuple(layer + shift for layer in found)
    checkpoint.infer("states", list(result), why)
    return result


def _shift(checkpoint: Checkpoint, found: tuple[int, ...], path: str, vocab: int) -> tuple[int, str]:
    model = (checkpoint.fields.text("model_type") or "").lower()
    midlayer = any("midlayer." in name for name in checkpoint.tensors)
    if checkpoint.flavour == "torchspec" and not (model == "kimi_k2" and not midlayer):
        return 1, f"{path}: TorchSpec counts layer outputs, id L is HF[L+1]"
    if "eagle_config" not in path:
        old = (checkpoint.fields.text("speculators_version") or "").startswith(("0.3.", "0.4."))
        dumps = "; dumps of speculators 0.3 and 0.4 took HF[L+1]" if old else ""
        return 0, f"{path}: speculators and vLLM count boundaries, id L is HF[L]{dumps}"
    architecture = str(checkpoint.fields.leaves.get("architectures")).lower()
    deepseek = model.startswith(DEEPSEEK_TYPES) or "deepseek" in architecture or vocab == KIMI_VOCAB
    if deepseek and found[0] != 1:
        return 0, (
            f"{path}: DeepSeek family, first id {found[0]}: SGLang from 0.5.15 and TorchSpec's export take id L as HF[L]; "
            "SGLang up to 0.5.12, and drafters trained through it, took HF[L+1]"
        )
    if vocab == GPT_OSS[0] and max(found) == GPT_OSS[1]:
        return 0, f"{path}: gpt-oss with an id for the last boundary ({GPT_OSS[1]}): SGLang from 0.5.18 takes id L as HF[L]"
    if checkpoint.flavour == "modelopt":
        return 1, f"{path}: ModelOpt counts layer outputs, id L is HF[L+1] (its dumps made through vLLM took HF[L])"
    return 1, f"{path}: ids count layer outputs, id L is HF[L+1]; vLLM reads the same nested list as HF[L]"


def check(checkpoint: Checkpoint, found: Ids, path: str | None, num_aux: int) -> None:
    """Note ids that contradict fc, or repeat."""
    count = checkpoint.fields.integer("num_aux_hidden_states", high=32)
    if count not in (None, num_aux):
        message = f"config.json says num_aux_hidden_states {count}, but fc.weight reads {num_aux} states."
        checkpoint.contradict("num_aux_hidden_states", message)
    use = "eagle_config.use_aux_hidden_state"
    if checkpoint.fields.flag(use) is False:
        checkpoint.contradict(use, f"config.json says {use} false, but the file has an fc.weight.")
    if found is None:
        if num_aux != 3 and count is None:
            checkpoint.problem(f"fc.weight reads {num_aux} states, but the config names no layers; engines then feed 3.")
        return
    if len(found) != num_aux:
        message = f"{path} names {len(found)} layers {list(found)}, but fc.weight reads {num_aux} states."
        checkpoint.contradict(path, message)
    if len(set(found)) != len(found):
        checkpoint.problem(f"{path} names a layer twice: {list(found)}. vLLM drops repeats, so fc gets fewer states.")
    if list(found) != sorted(found):
        checkpoint.problem(f"{path} isn't ascending: {list(found)}. Engines feed fc in ascending order, whatever it says.")
