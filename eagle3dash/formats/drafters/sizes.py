"""Sizes and switches of a drafter, read from its tensors; the config only says what tensors can't.

A tensor settles hidden, intermediate, vocabulary sizes, depth, A and every switch that has a weight. Head count, epsilon
and RoPE have no weight of their own. A config that states another size belongs to other weights, and no engine could load
the two together: BadInput. A flag or a count that the tensors settle is a problem that is noted, and the tensors win.
"""

from __future__ import annotations

from dataclasses import dataclass

from eagle3dash.errors import BadInput
from eagle3dash.formats.drafters.checkpoint import Checkpoint
from eagle3dash.records import Mla

WIDEST = 65536
NO_HEADS = (
    "The number of attention heads can't be read from the weights. Give the drafter's config.json with them; "
    "it must have num_attention_heads."
)


@dataclass(frozen=True)
class Heads:
    heads: int
    kv_heads: int
    head_dim: int
    mla: Mla | None = None


def same(checkpoint: Checkpoint, name: str, found: int, tensor: str, high: int = WIDEST) -> None:
    """BadInput where the config states another size than the tensor has."""
    path = checkpoint.fields.block + name
    stated = checkpoint.fields.integer(path, high=high)
    if stated is not None and stated != found:
        raise BadInput(
            f"config.json says {path} {stated}, but {tensor} makes it {found}. The config belongs to other weights: "
            "give the config.json that was written with them, or correct the field."
        )


def hidden(checkpoint: Checkpoint) -> int:
    """H, from fc.weight [H, A*Ht]."""
    size = checkpoint.shape("fc.weight")[0]
    if not 1 <= size <= WIDEST:
        raise BadInput(f"fc.weight has {size} rows; a hidden size from 1 to {WIDEST} is supported.")
    same(checkpoint, "hidden_size", size, "fc.weight")
    return size


def intermediate(checkpoint: Checkpoint) -> int:
    """Width of the MLP."""
    size = checkpoint.shape("layers.0.mlp.gate_proj.weight")[0]
    path = f"{checkpoint.fields.block}intermediate_size_mlp"  # Llama 4 drafts
    if checkpoint.fields.integer(path, high=1 << 20) != size:
        same(checkpoint, "intermediate_size", size, "mlp.gate_proj.weight", high=1 << 20)
    return size


def depth(checkpoint: Checkpoint) -> int:
    """Number of layers that have weights. A config often keeps the target's depth."""
    found = {int(name.split(".")[1]) for name in checkpoint.names if name.startswith("layers.")}
    if found != set(range(len(found))):
        raise BadInput(
            f"The drafter has layers {sorted(found)[:20]}; expected 0, 1, ... without a gap. "
            "Export the checkpoint again, with all weights."
        )
    path = f"{checkpoint.fields.block}num_hidden_layers"
    stated = checkpoint.fields.integer(path, low=0, high=10000)
    if stated is not None and stated != len(found):
        checkpoint.contradict(path, f"config.json says {path} {stated}; the file holds {len(found)}, which is taken.")
    return len(found)


def aux(checkpoint: Checkpoint, size: int, ids: int | None) -> tuple[int, int]:
    """(A, Ht) from the columns of fc. ids: how many layer ids the config names (every tool takes 3 where it names none)."""
    columns = checkpoint.shape("fc.weight")[1]
    norms = sum(name.startswith("fc_norm.") for name in checkpoint.names)
    path = "target_hidden_size"
    stated = checkpoint.fields.integer(path, f"{checkpoint.fields.block}{path}", high=WIDEST)
    usual = (ids or 3) * size == columns  # the states are as wide as the drafter
    width = checkpoint.shape("fc_norm.0.weight", 1)[0] if norms else stated or size
    if columns % width and stated is None and ids and columns % ids == 0:
        width = columns // ids
        checkpoint.infer("target_hidden", width, f"fc reads {columns} values in {ids} states")
    if columns % width or stated not in (None, width) or (usual and width != size):
        says = f"target_hidden_size {stated}" if stated else f"hidden size {size}"
        raise BadInput(
            f"fc.weight reads {columns} values, which is no whole number of states of width {width} ({says}). "
            "Set target_hidden_size to the target's hidden size, or give the config.json written with these weights."
        )
    count = columns // width
    if norms and norms != count:
        raise BadInput(
            f"fc.weight reads {count} states, but the file has {norms} fc_norm weights. "
            "Export the checkpoint again, with all weights."
        )
    if not 1 <= count <= 32:
        raise BadInput(f"fc.weight reads {count} states of width {width}; from 1 to 32 are supported.")
    return count, width


def attention(checkpoint: Checkpoint) -> Heads:
    """Head counts and widths of the first layer, checked against its projections."""
    if checkpoint.has("layers.0.self_attn.kv_a_proj_with_mqa.weight"):
        return _latent(checkpoint)
    q, k = (checkpoint.shape(f"layers.0.self_attn.{name}_proj.weight")[0] for name in "qk")
    block = checkpoint.fields.block
    heads = checkpoint.fields.integer(f"{block}num_attention_heads", high=4096)
    kv = checkpoint.fields.integer(f"{block}num_key_value_heads", high=4096)
    width = checkpoint.fields.integer(f"{block}head_dim", high=8192)
    if checkpoint.has("layers.0.self_attn.q_norm.weight"):
        norm = checkpoint.shape("layers.0.self_attn.q_norm.weight", 1)[0]
        if width not in (None, norm):
            raise _misfit(q, k, heads, kv, width)
        width = norm
    if heads is None and width is None:
        raise BadInput(NO_HEADS)
    return _fit(checkpoint, (q, k), heads, kv, width)


def _fit(checkpoint: Checkpoint, rows: tuple[int, int], heads: int | None, kv: int | None, width: int | None) -> Heads:
    q, k = rows
    by_heads = q // heads if heads and q % heads == 0 else None
    for option in dict.fromkeys((width, by_heads)):
        fits = option and q % option == 0 and k % option == 0 and heads in (None, q // option) and kv in (None, k // option)
        if not fits or (q // option) % (k // option):
            continue
        if option != width and width is not None:  # SafeAILab trains with hidden / heads, whatever head_dim says
            path = f"{checkpoint.fields.block}head_dim"
            message = f"config.json says {path} {width}; q_proj has {q} rows for {heads} heads: {option} is taken."
            checkpoint.contradict(path, message)
        if kv is None and k // option != q // option:
            checkpoint.infer("kv_heads", k // option, f"config.json has no num_key_value_heads; k_proj has {k} rows")
        return Heads(q // option, k // option, option)
    raise _misfit(q, k, heads, kv, width)


def _misfit(q: int, k: int, heads: int | None, kv: int | None, width: int | None) -> BadInput:
    return BadInput(
        f"config.json says num_attention_heads {heads}, num_key_value_heads {kv}, head_dim {width}, but q_proj has {q} "
        f"rows and k_proj {k}. Give the config.json that was written with these weights, or correct the fields."
    )


def _latent(checkpoint: Checkpoint) -> Heads:
    """Multi-head latent attention: every width follows from the projections and the head count (DeepSeek-V2, 2.1)."""
    at = "layers.0.self_attn."
    if not checkpoint.has(f"{at}q_a_proj.weight"):
        raise BadInput("This MLA drafter has no q_a_proj (queries without a low rank); that kind is not supported.")
    heads = checkpoint.fields.integer(f"{checkpoint.fields.block}num_attention_heads", high=4096)
    if heads is None:
        raise BadInput(NO_HEADS)
    q_rank, (kv_rows, kv_rank) = checkpoint.shape(f"{at}q_a_proj.weight")[0], checkpoint.shape(f"{at}kv_b_proj.weight")
    q_rows = checkpoint.shape(f"{at}q_b_proj.weight")[0]
    rope = checkpoint.shape(f"{at}kv_a_proj_with_mqa.weight")[0] - kv_rank
    value = checkpoint.shape(f"{at}o_proj.weight")[1] // heads
    nope = kv_rows // heads - value
    if min(rope, value, nope) < 1 or kv_rows != heads * (nope + value) or q_rows != heads * (nope + rope):
        raise BadInput(
            f"config.json says num_attention_heads {heads}, which fits neither q_b_proj ({q_rows} rows) nor kv_b_proj "
            f"({kv_rows}). Give the config.json that was written with these weights."
        )
    mla = Mla(q_rank, kv_rank, nope, rope, value)
    for name in ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"):
        same(checkpoint, name, getattr(mla, name), "the attention's projections")
    return Heads(heads, heads, nope + rope, mla)


def vocabulary(checkpoint: Checkpoint) -> tuple[int, int]:
    """(V, DV). V from t2d or the embedding, DV from the head or d2t; the config where no tensor tells."""
    block = checkpoint.fields.block
    stated = checkpoint.fields.integer(f"{block}vocab_size", "vocab_size", high=1 << 24)
    draft = checkpoint.fields.integer("draft_vocab_size", f"{block}draft_vocab_size", high=1 << 24)
    dims = {"t2d": 1, "embed_tokens.weight": 2, "lm_head.weight": 2, "d2t": 1}
    rows = {name: checkpoint.shape(name, dims[name])[0] for name in dims if checkpoint.has(name)}
    reduced = rows.get("lm_head.weight", rows.get("d2t", draft))
    vocab = rows.get("t2d", rows.get("embed_tokens.weight", stated))
    if vocab is None:
        vocab = reduced if draft in (None, reduced) and "d2t" not in rows else None
    if vocab is None:
        raise BadInput("No tensor of this drafter tells the target's vocabulary size. Give its config.json too.")
    reduced = vocab if reduced is None else reduced
    if stated not in (None, vocab):
        path = f"{block}vocab_size" if f"{block}vocab_size" in checkpoint.fields.leaves else "vocab_size"
        checkpoint.contradict(path, f"config.json says {path} {stated}; the tensors have {vocab}, which is taken.")
    if rows.get("embed_tokens.weight", vocab) < vocab:
        raise BadInput(f"embed_tokens has {rows['embed_tokens.weight']} rows, but t2d {vocab}. Export the drafter again.")
    _check_draft(draft, reduced, rows, vocab)
    return vocab, reduced


def _check_draft(draft: int | None, reduced: int, rows: dict[str, int], vocab: int) -> None:
    if draft not in (None, reduced):
        raise BadInput(
            f"config.json says draft_vocab_size {draft}, but lm_head or d2t has {reduced} rows. Give the config.json that "
            "was written with these weights."
        )
    if rows.get("d2t", reduced) != reduced:
        raise BadInput(f"lm_head has {reduced} rows, d2t {rows['d2t']}; both must have as many. Export the drafter again.")
    if reduced > vocab:
        raise BadInput(f"The draft vocabulary ({reduced}) is larger than the target's ({vocab}). Check vocab_size and t2d.")
