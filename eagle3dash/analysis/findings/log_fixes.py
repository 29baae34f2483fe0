"""What to do about what a log shows, as text. A log names no cause, so each says which test or file would decide."""

GRAPHS = (
    "Serve the same requests once with CUDA graphs and once without (SGLang --disable-cuda-graph, vLLM --enforce-eager). "
    "Lower with graphs: the graph was captured before the aux layers were set, or reads an old buffer; a serving capture "
    "of both tells which state is fed. Lower without: those windows ran larger batches than the graphs hold."
)
LOAD = (
    "Serve the same prompts one at a time, then all at once. If acceptance still falls, the batched path feeds other "
    "states (data-parallel attention, padding, positions): a serving capture under load shows it. If not, busy hours just "
    "have other prompts."
)
CACHE = (
    "Send the same prompts with the prefix cache off (SGLang --disable-radix-cache, vLLM --no-enable-prefix-caching). If "
    "acceptance recovers, the drafter gets stale or missing states for cached tokens: a serving capture of a cached prompt "
    "shows where."
)
PROMPTS = (
    "Compare with max_position_embeddings in the drafter's config and with the longest text it was trained on. A capture "
    "of a long text, replayed, tells whether the drafter itself falls off there; if it does not, look at the engine's RoPE "
    "settings for the drafter and at chunked prefill."
)
FIRST_ROUND = (
    "The first round reads the states of the prefill. Serve once without disaggregation, chunked prefill and prefix cache; "
    "the one that cures it loses or replaces them. A serving capture holds those states."
)
REPEATS = (
    "Read the answers: loops and runs of one token are accepted in full. Measure again on ordinary prompts, with the "
    "sampling settings of your traffic."
)
SIMULATED = "Start the server without SIMULATE_ACC_LEN: until then its acceptance says nothing about the drafter."
CONSTANT = (
    "Look for simulated acceptance (SGLang's SIMULATE_ACC_LEN) and for a client that repeats one prompt; the answers or "
    "per-request rounds would tell."
)
UNDECIDED = (
    " The log alone does not decide: with the drafter and a serving capture, a replay shows if it falls off there too."
)
