"""What to change, as text: one entry a fault. Commands and keys are those of vLLM 0.32 and SGLang 0.5.23."""

REPEATED_ROWS = (
    "The capture buffer is not written for these tokens. Serve once without CUDA graphs, chunked prefill and prefix "
    "caching (vLLM --enforce-eager --no-enable-prefix-caching; SGLang --disable-cuda-graph --disable-radix-cache) and "
    "capture again: the option that cures it holds the fault."
)
NOTHING_CAPTURED = (
    "The hook of that slot never fired: a layer id equal to the number of layers, or one behind the last pipeline stage, "
    "names a state that the engine does not keep. Compare the ids with the target's depth and with the engine's convention."
)
NOT_WRITTEN = (
    "The capture buffer is not filled for these rows. Serve once without CUDA graphs, chunked prefill and prefix caching "
    "(vLLM --enforce-eager --no-enable-prefix-caching; SGLang --disable-cuda-graph --disable-radix-cache): the option that "
    "cures it holds the fault."
)
NOT_FINITE = (
    "No target computes these: float16 overflows at 65504 (capture in bfloat16), a quantised kernel or its scale fails, or "
    "a buffer is read before it is written. Serve the target once in bfloat16, unquantised and without CUDA graphs to see "
    "which it is."
)
OTHER_TOKENS = (
    "Compare the token ids around the first difference: chat template, system prompt, thinking mode, BOS. Use the "
    "template of training in serving (or the reverse), or send the training capture's own prompt ids to the server "
    "and capture again."
)
OTHER_ANSWERS = (
    "Nothing, if the difference is in the answers: two bf16 implementations of a target soon choose another token."
)
SHIFTED = (
    "Row t of the features must be the target's state after reading token t, and is paired with the embedding of "
    "token t+1 (so do SGLang and vLLM; ModelOpt rolls the features instead). Look where the capture, a prefill/decode "
    "transfer or a cached prefix drops or adds a first row, and correct it there."
)
NORMED = (
    "Capture the residual stream itself (hidden + residual) before any norm: for the last layer transformers returns "
    "the state after the final norm, vLLM, SGLang and TensorRT-LLM the one before it. Take the norm out of the "
    "capture hook, or retrain on what is served."
)
RESIDUAL = (
    "In the engine's model file capture hidden_states + residual and not hidden_states alone, as vLLM and SGLang do "
    "for Llama."
)
SCALED = (
    "Look for a multiplier that one side applies and the other does not: the embedding scale of Gemma-like targets, a "
    "residual multiplier, a quantisation scale left out of the capture."
)
PERMUTED = (
    "Tensor-parallel shards are put together in the wrong order. Gather them by rank along the hidden dimension "
    "before they reach fc; serving once with tensor parallel size 1 confirms it."
)
PRECISION = (
    "Serve the target in the precision of the training capture, or capture training features from the quantised "
    "target and train on them. Switch off quantisation of weights and of the KV cache one by one to see which it is "
    "(vLLM and SGLang: --quantization, --kv-cache-dtype)."
)
DRIFT = (
    "Compare the position with the chunked-prefill size, the prefix-cache block, the sliding window and "
    "max_position_embeddings. Serve once with chunked prefill and prefix caching off: if it goes away, states at that "
    "boundary are reused or not captured."
)
ENGINE = (
    "The features are right, so look behind them: (1) read the drafter's norm switches as the engine does "
    "(not-portable, unused-weights); (2) serve once with --enforce-eager (vLLM) or --disable-cuda-graph (SGLang), "
    "greedy, one request at a time, tensor parallel 1, no prefix cache, bf16 KV cache; (3) add one of them back at a "
    'time. Check that the method is eagle3 (SGLang --speculative-algorithm EAGLE3, vLLM "method": "eagle3").'
)
EXPLAINED = "Another finding names the cause; this is what it looks like from outside. Mend that first, then look again."
DEAD = (
    "An accept length of 1 has many causes and the log alone cannot name one: wrong states, a missing or random head, "
    "a missing d2t, EAGLE in place of EAGLE3, plain decoding. Add the drafter, a training capture and a serving "
    "capture to this run."
)
CLIPPED = (
    "A format without room for a target's outliers stands between the layer and the drafter: fp8 without a scale ends at "
    "448 (e4m3), fp16 at 65504. Keep the hidden states in bf16 on their way, or scale them."
)
PINNED = (
    'SGLang: --speculative-algorithm EAGLE3 (EAGLE skips fc silently). vLLM: "method": "eagle3" in '
    "--speculative-config. Check the start-up log for weights that were not found, and the answers for garbage (NaN "
    "logits)."
)
TOO_GOOD = (
    "Read the answers: loops and runs of one token are accepted in full, and so are NaN logits. Measure again on "
    "ordinary prompts."
)
LATER = (
    "Step 0 is right and later steps are not, so the state that is fed back differs: with norm_output the state after "
    "the norm is fed back, without it the one before. Make the engine's switch that of training (SGLang, vLLM, "
    "TensorRT-LLM: norm_output in config.json; in SpecForge norm_output means the norm before lm_head)."
)
CLIFF = (
    "Check constrained decoding (grammar, JSON schema), a drafter of several layers, and draft attention backends: "
    "run once with each of them off."
)
TREND = (
    "Restart the server, with prefix caching off: if acceptance stays, stale cache entries are the cause; if it falls "
    "again with the same traffic replayed, the traffic is not. Check whether prompts grew longer meanwhile."
)
RANKS = (
    "Compare the start-up lines of the ranks (weights, draft attention, data-parallel attention). Serve with one "
    "data-parallel rank, then with all: the weights or the synchronisation of the slow ranks differ."
)
COVERAGE = (
    "Choose the draft vocabulary from the target's own answers on traffic like yours and retrain, or take a larger one."
)
WEAK = (
    "The wiring is right: what would help is training. More and fresher data generated by the target itself on your "
    "traffic, more steps, on-policy training-time test, a larger draft vocabulary or head."
)
WEAK_TOO = (
    "First settle the other findings, then replay again. What training can do: more and fresher data generated by the "
    "target itself on your traffic, more steps, on-policy training-time test, a larger draft vocabulary or head."
)
BELOW = (
    "Run the validation of the trainer on exactly these sequences with the checkpoint that is served. If it "
    "reproduces its own number, compare norm switches, RoPE base, d2t and embeddings with what this file says; if "
    "not, the number belongs to another checkpoint or metric."
)
FOREIGN = (
    "Nothing at the server. Capture training features again, with the layer ids, the norm and the pairing of tokens that "
    "the training run had (the ids in the drafter's config, in the trainer's own convention), or find the capture that it "
    "was trained on: this one tells nothing about the drafter."
)
MAP = (
    "Export the checkpoint again with the d2t of the training run: target id = i + d2t[i], int64 offsets. Never "
    "rebuild it from t2d: ModelOpt and NeMo keep frequency order."
)
MISSING = (
    "Export the checkpoint again with these tensors; engines fill them with random numbers, borrow them or fail, each "
    "in its own way."
)
UNUSED = (
    "Compare the names with those of the checkpoint's flavour: an unread weight is a switch the reader does not know, "
    "or a leftover."
)
CONFIG = "Correct the field in config.json so that it says what the tensors hold; engines believe either."
RESIDUAL_NORM = (
    "Write norm_before_residual as it was trained at the top level of config.json: vLLM and speculators honour it (vLLM "
    "takes an absent key of a speculators config as true, speculators as false). SGLang and TensorRT-LLM always keep the "
    "raw residual: a drafter that was trained with the normed one can't be served there without a change of their model."
)
FEEDBACK_NORM = (
    "Write norm_output as it was trained: in vLLM, SGLang, TensorRT-LLM and speculators true feeds the state back after "
    "the norm, false before it; in SpecForge the key means the norm before lm_head, so drop it when such a file is served."
)
HEAD_NORM = (
    "Engines always norm before lm_head. Export the norm as norm.weight, or train with it (SpecForge: norm_output true; "
    "ModelOpt: use_last_layernorm true)."
)
INPUT_NORM = (
    "Write the switch as it was trained (norm_before_fc with input_norm.weight; fc_norm with fc_norm.i.weight), in the "
    "file and at the top level of config.json. vLLM 0.32 honours both, SGLang norm_before_fc from 0.5.18 on."
)
DOUBLE_NORM = (
    "ModelOpt norms the hidden half twice (input_layernorm, then hidden_norm) and engines once: fold the weight of "
    "input_layernorm into hidden_norm at export, or train with the engine's form."
)
ROPE = (
    "Write rope_theta and rope_scaling as they were trained (rope_parameters in transformers 5): engines believe "
    "config.json. SafeAILab, AngelSlim and SpecForge before #270 train with 10000 whatever the file says."
)
EMBEDDING = (
    "Leave embed_tokens.weight out of the file, so that every engine takes the target's; SGLang always does so when the "
    "widths are equal, so a drafter with embeddings of its own needs vLLM."
)
HEAD = (
    "Export lm_head.weight of the trained checkpoint again, its rows in the order of d2t (row i belongs to the target id "
    "i + d2t[i]). Where it was the target's, take the rows of the target's head."
)
BIASES = "Serve it with an engine that reads these biases (vLLM: attention_bias), or train and export without them."
MISREAD = {  # what a replay sets differently -> what to change
    "residual_norm": RESIDUAL_NORM,
    "feedback_norm": FEEDBACK_NORM,
    "head_norm": HEAD_NORM,
    "double_norm": DOUBLE_NORM,
    "input_norm": INPUT_NORM,
    "fc_norm": INPUT_NORM,
    "qk_norm": "Serve it as a qwen3 drafter, the only kind whose q_norm and k_norm engines apply.",
    "attention_bias": BIASES,
    "mlp_bias": BIASES,
    "fc_bias": BIASES,
    "rope": ROPE,
    "d2t": MAP,
    "embedding": EMBEDDING,
    "head": HEAD,
    "lag": SHIFTED,
    "scales": SCALED,
    "normed": NORMED,
}
