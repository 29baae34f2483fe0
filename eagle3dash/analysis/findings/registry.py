"""Every check there is, in the order in which findings of one severity are told: the nearest cause first."""

from __future__ import annotations

from eagle3dash.analysis.findings import (
    aux_states,
    dependence,
    drafter_file,
    engine,
    features,
    logs,
    misread,
    texts,
    training,
)
from eagle3dash.analysis.findings.evidence import Check
from eagle3dash.analysis.findings.lacking import lacking as lacking

CAPTURES = ("training", "serving", "features")
ALIGNED = (*CAPTURES, "aligned")
TRAINED = ("drafter", "training", "trained")
REPLAYED = ("drafter", "serving", "replay_serving", "log")

CHECKS = (
    Check("corrupt-features", "features", "rows that repeat", ALIGNED, features.corrupt_features),
    Check("wrong-aux-states", "features", "which states are fed to fc", TRAINED, aux_states.wrong_aux_states),
    Check("aux-order", "features", "their order", TRAINED, aux_states.aux_order),
    Check("shifted-features", "features", "a lag of tokens, -2 to +2", ALIGNED, features.shifted_features),
    Check("missing-residual", "features", "a layer's output without its residual", ALIGNED, features.missing_residual),
    Check("normed-features", "features", "a norm before the capture", ALIGNED, features.normed_features),
    Check("scaled-features", "features", "another scale", ALIGNED, features.scaled_features),
    Check("permuted-features", "features", "blocks in another order", ALIGNED, features.permuted_features),
    Check("drifting-features", "features", "a break at a position", ALIGNED, features.drifting_features),
    Check("precision-loss", "features", "noise above rounding", ALIGNED, features.precision_loss),
    Check("tokens-differ", "features", "token ids of both captures", CAPTURES, features.tokens_differ),
    Check("wrong-vocab-map", "drafter file", "d2t and t2d", ("drafter",), misread.wrong_vocab_map),
    *(
        Check(identity, "drafter file", looks_at, ("drafter", "changes"), misread.check(identity))
        for identity, looks_at in (
            ("wrong-embedding", "the embeddings, replayed with the target's"),
            ("wrong-lm-head", "the head, replayed with the target's rows"),
            ("wrong-residual-norm", "norm_before_residual, replayed both ways"),
            ("wrong-input-norm", "the norms before fc and on the hidden half, replayed both ways"),
            ("wrong-feedback-norm", "norm_output, replayed both ways"),
            ("wrong-rope", "RoPE bases and scalings, replayed"),
        )
    ),
    Check("missing-weights", "drafter file", "weights nobody can supply", ("drafter",), drafter_file.missing_weights),
    Check("not-portable", "drafter file", "switches the engine drops", ("drafter", "log"), drafter_file.not_portable),
    Check(
        "config-contradicts-weights",
        "drafter file",
        "config against tensors",
        ("drafter",),
        drafter_file.config_contradicts_weights,
    ),
    Check("loss-mask-shifted", "training", "edges of the loss mask", ("training",), texts.loss_mask_shifted),
    Check("off-distribution", "training", "served text, training text", ("training", "serving"), texts.off_distribution),
    Check(
        "low-vocab-coverage",
        "drafter file",
        "tokens outside the draft vocabulary",
        ("drafter", "replay_any"),
        drafter_file.low_vocab_coverage,
    ),
    Check("unused-weights", "drafter file", "weights without a place", ("drafter",), drafter_file.unused_weights),
    Check("pinned-acceptance", "engine", "an accept length of exactly 1", ("log",), logs.pinned_acceptance),
    Check("later-steps-loss", "engine", "steps after the first", REPLAYED, engine.later_steps_loss),
    Check("engine-loss", "engine", "replay on serving features against served", REPLAYED, misread.engine_loss),
    Check("dead-acceptance", "engine", "an accept length just above 1", ("log",), logs.dead_acceptance),
    Check("too-good-acceptance", "engine", "everything accepted", ("log",), logs.too_good_acceptance),
    Check("position-cliff", "engine", "one position far below the one before", ("log",), engine.position_cliff),
    Check("acceptance-trend", "engine", "a fall over uptime", ("log",), logs.acceptance_trend),
    Check("ranks-differ", "engine", "data-parallel ranks", ("log",), logs.ranks_differ),
    Check("graph-loss", "engine", "acceptance with and without CUDA graphs", ("log",), dependence.graph_loss),
    Check("load-loss", "engine", "acceptance against running requests", ("log",), dependence.load_loss),
    Check("cache-loss", "engine", "acceptance after cached and new prompts", ("log",), dependence.cache_loss),
    Check("length-loss", "engine", "acceptance against prompt length", ("log",), dependence.length_loss),
    Check("first-round-loss", "engine", "first rounds of requests, later ones", ("log",), dependence.first_round_loss),
    Check("metric-definition", "engine", "what the log's words mean", ("log",), logs.metric_definition),
    Check(
        "drafter-weak",
        "training",
        "the drafter on its own training features",
        ("drafter", "training", "replay_training"),
        training.drafter_weak,
    ),
    Check("speed-not-acceptance", "engine", "windows without CUDA graphs", ("log",), logs.speed_not_acceptance),
)
