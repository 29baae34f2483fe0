"""What only several lines tell: definitions, ranks, warm-up, totals, start-up facts, contradictions."""

import pytest

from eagle3dash.formats.logs import parse, sniff
from eagle3dash.formats.logs.rates import NEW, OLD

ARGS = (
    "[2026-01-01 09:59:00] server_args=ServerArgs(model_path='meta/Llama-3.1-8B', tp_size=2, dp_size=4, dtype='bfloat16', "
    "speculative_algorithm='EAGLE3', speculative_draft_model_path='me/drafter', speculative_num_steps=%d, "
    "speculative_eagle_topk=%d, speculative_num_draft_tokens=%d, attention_backend='fa3', kv_cache_dtype='fp8_e4m3')\n"
)
ENGINE = (
    "(APIServer pid=1) INFO 09-01 14:28:%02d [loggers.py:123] Engine %03d: Avg prompt throughput: 0.0 tokens/s, "
    "Avg generation throughput: %.1f tokens/s, Running: %d reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%%\n"
)


def read(tmp_path, text, name="server.log"):
    path = tmp_path / name
    path.write_text(text)
    return parse([path], sniff(text.encode()[:65536], name))


def decode(length, rate, second=0, rank=" TP0", speed=200.0):
    return (
        f"[2026-01-01 10:00:{second:02d}{rank}] Decode batch, #running-req: 4, #token: 100, token usage: 0.00, "
        f"accept len: {length:.2f}, accept rate: {rate:.2f}, cuda graph: True, "
        f"gen throughput (token/s): {speed:.2f}, #queue-req: 0\n"
    )


def spec(mean, accepted, drafted, positions, rate=None):
    rate = 100 * accepted / drafted if rate is None else rate
    listed = ", ".join(f"{p:.3f}" for p in positions)
    return (
        f"(APIServer pid=1) INFO 09-01 14:28:09 [metrics.py:87] SpecDecoding metrics: Mean acceptance length: {mean:.2f}, "
        f"Accepted throughput: 1.00 tokens/s, Drafted throughput: 2.00 tokens/s, Accepted: {accepted} tokens, "
        f"Drafted: {drafted} tokens, "
        f"Per-position acceptance rate: {listed}, Avg Draft acceptance rate: {rate:.1f}%\n"
    )


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("old", [True, False])
def test_definition_is_decided_over_several_lines(tmp_path, size, old):
    lengths = [1.13 + (size - 1.2) * i / 9 for i in range(10)]
    rates = [n / size if old else (n - 1) / (size - 1) for n in (round(n, 2) for n in lengths)]
    parsed = read(tmp_path, "".join(decode(n, r, i) for i, (n, r) in enumerate(zip(lengths, rates, strict=True))))
    assert parsed.log.definitions["accept_rate"] == (OLD if old else NEW)
    assert parsed.log.steps == size - 1
    assert parsed.problems == ()
    for window, length in zip(parsed.log.windows, lengths, strict=True):
        assert window.acceptance_rate == pytest.approx((length - 1) / (size - 1), abs=0.011)


def test_one_line_out_of_line_is_named(tmp_path):
    lines = [decode(n, (n - 1) / 3, i) for i, n in enumerate((1.9, 2.2, 2.5, 2.8, 3.1, 1.6))] + [decode(2.4, 0.84, 9)]
    parsed = read(tmp_path, "".join(lines))
    assert parsed.log.windows[-1].acceptance_rate is None
    assert [p for p in parsed.problems if "line 7: inconsistent" in p]
    assert all(w.acceptance_rate is not None for w in parsed.log.windows[:-1])


def test_a_rate_alone_follows_the_definition_of_the_others(tmp_path):
    lines = [decode(n, n / 4, i) for i, n in enumerate((1.9, 2.3, 2.5, 2.9, 3.1))]
    cut = "[2026-01-01 10:00:09 TP0] Decode batch, #running-req: 4, #token: 4, token usaccept rate: 0.50, npu graph: True\n"
    window = read(tmp_path, "".join(lines) + cut).log.windows[-1]
    assert window.accept_length is None
    assert window.acceptance_rate == pytest.approx(1 / 3)
    assert read(tmp_path, cut).log.windows[0].acceptance_rate is None


def test_start_up_of_sglang(tmp_path):
    log = read(tmp_path, ARGS % (3, 1, 4) + decode(2.5, 0.5)).log
    wanted = {"model": "meta/Llama-3.1-8B", "drafter": "me/drafter", "method": "eagle3", "tp": 2, "dp": 4, "num_steps": 3}
    wanted |= {"topk": 1, "num_draft_tokens": 4, "attention_backend": "fa3", "dtype": "bfloat16"}
    wanted |= {"kv_cache_dtype": "fp8_e4m3"}
    assert wanted.items() <= log.settings.items()
    assert log.steps == 3
    tree = read(tmp_path, ARGS % (5, 8, 32) + decode(3.79, 0.09)).log
    assert tree.steps == 5
    assert tree.windows[0].acceptance_rate == 0.09


def test_a_command_line_tells_the_same(tmp_path):
    line = (
        "Sep 01 10:00:00 host systemd[1]: python -m sglang.launch_server --model-path m --speculative-algorithm EAGLE3 "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens=4 --tp-size 2\n"
    )
    log = read(tmp_path, line + decode(2.5, 0.5)).log
    assert (log.settings["method"], log.settings["num_draft_tokens"], log.steps) == ("eagle3", 4, 3)
    config = """vllm serve m --speculative-config '{"method": "eagle3", "model": "d", "num_speculative_tokens": 5}'\n"""
    log = read(tmp_path, config + ENGINE % (9, 0, 1.0, 1)).log
    assert (log.settings["method"], log.settings["drafter"], log.steps) == ("eagle3", "d", 5)


def test_tensor_parallel_ranks_count_once_and_data_parallel_ranks_apart(tmp_path):
    ranks = [" DP0 TP0", " DP1 TP2", " DP0 TP1", " DP1 TP3"] * 3
    parsed = read(tmp_path, "".join(decode(2.5, 0.5, i, rank) for i, rank in enumerate(ranks)))
    assert [w.rank for w in parsed.log.windows] == ["DP0 TP0", "DP1 TP2"] * 3
    assert any("6 lines of other tensor-parallel ranks" in one.value for one in parsed.inferred)


def test_warm_up_is_flagged(tmp_path):
    lines = [decode(2.17, 0.39, 0, speed=0.39)] + [decode(2.1, 0.37, i, speed=180.0 + i) for i in range(1, 6)]
    assert [w.warmup for w in read(tmp_path, "".join(lines)).log.windows] == [True] + [False] * 5


def test_vllm_engines_are_kept_apart(tmp_path):
    line = spec(1.77, 17, 110, (0.318, 0.182, 0.091, 0.091, 0.091))
    text = "".join(ENGINE % (9, engine, 100.0 + engine, engine + 1) + line for engine in (0, 1))
    windows = read(tmp_path, text).log.windows
    assert [(w.rank, w.running, w.throughput) for w in windows] == [("Engine 000", 1, 100.0), ("Engine 001", 2, 101.0)]
    assert [w.rounds for w in windows] == [22, 22]


def test_idle_engine_lines_make_no_window_unless_there_is_nothing_else(tmp_path):
    text = ENGINE % (1, 0, 0.0, 0) + spec(2.0, 100, 300, (0.5, 0.3, 0.2)) + ENGINE % (9, 0, 0.0, 0)
    assert len(read(tmp_path, text).log.windows) == 1
    (window,) = read(tmp_path, ENGINE % (9, 1, 15.9, 3)).log.windows
    assert (window.accept_length, window.running, window.throughput) == (None, 3, 15.9)


def test_vllm_without_the_bonus_gets_one_added(tmp_path):
    line = "INFO 05-01 10:00:00 [metrics.py:87] SpecDecoding metrics: Draft acceptance rate: {}%, "
    line += "Mean acceptance length: {}, Accepted: {} tokens, Drafted: 300 tokens, Per-position acceptance rate: {}\n"
    text = line.format("30.0", "0.90", 90, "0.500, 0.300, 0.100") + line.format("50.0", "1.50", 150, "0.700, 0.500, 0.300")
    parsed = read(tmp_path, text)
    assert [w.accept_length for w in parsed.log.windows] == pytest.approx([1.9, 2.5])
    assert "1 added" in parsed.log.definitions["accept_length"]
    assert parsed.problems == ()


def test_totals_are_differenced(tmp_path):
    line = "INFO 10-16 19:05:{} metrics.py:367] Speculative metrics: Draft acceptance rate: 0.5, System efficiency: 0.6, "
    line += "Number of speculative tokens: 3, Number of accepted tokens: {}, Number of draft tokens: {}, "
    line += "Number of emitted tokens: {}.\n"
    text = line.format(47, 150, 300, 240) + line.format(57, 350, 900, 640) + line.format(59, 15, 30, 20)
    first, second, restarted = read(tmp_path, text).log.windows
    assert (first.cumulative, first.accept_length, first.rounds) == (True, pytest.approx(2.4), 100)
    assert (second.cumulative, second.accept_length, second.rounds, second.drafted) == (False, 2.0, 200, 600)
    assert (restarted.cumulative, restarted.rounds) == (True, 10)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (spec(2.40, 1211, 1231, (0.813, 0.622, 0.307), 76.8), "accepted / drafted"),
        (spec(2.90, 100, 300, (0.5, 0.3, 0.2)), "1 + sum of positions"),
        (spec(2.00, 400, 300, (0.5, 0.3, 0.2), 33.3), "more accepted than drafted"),
        (spec(2.00, 100, 300, (0.2, 0.5, 0.3)), "later position"),
    ],
)
def test_contradictions_are_said(tmp_path, line, said):
    parsed = read(tmp_path, spec(2.0, 100, 300, (0.5, 0.3, 0.2)) + line)
    assert [p for p in parsed.problems if p.startswith("line 2: inconsistent") and said in p]


def test_a_list_cut_in_the_middle_is_no_list(tmp_path):
    whole = spec(2.01, 206, 609, (0.601, 0.286, 0.128))
    window = read(tmp_path, whole[: whole.index("0.286") + 4]).log.windows[0]
    assert (window.survival, window.accepted, window.acceptance_rate) == (None, 206, None)


def test_ranks_that_disagree_are_reported(tmp_path):
    own = "Detected EAGLE model with distinct embed_tokens weights. Keeping separate embedding weights."
    shared = "Detected EAGLE model with embed_tokens identical to the target model. Sharing target model embedding weights."
    text = "(Worker_TP{} pid=1) INFO 07-27 22:00:12 [llm_base_proposer.py:1468] {}\n"
    log = read(tmp_path, text.format(0, own) + text.format(1, shared) + text.format(0, own)).log
    assert [w["id"] for w in log.settings["warnings"]] == ["ranks-disagree"]
    agreeing = read(tmp_path, text.format(0, own) + text.format(1, own)).log
    assert "warnings" not in agreeing.settings


def test_a_client_summary_counts_only_where_the_server_is_silent(tmp_path):
    bench = "Accept length: 3.612\n"
    assert [w.accept_length for w in read(tmp_path, bench).log.windows] == [3.612]
    parsed = read(tmp_path, decode(2.5, 0.5) + bench)
    assert [w.accept_length for w in parsed.log.windows] == [2.5]
    assert any("summary" in one.value for one in parsed.inferred)


def test_llama_cpp_slots_and_statistics_tell_the_same_once(tmp_path):
    slot = (
        "0.06.896.015 I slot print_timing: id  1 | task 0 | draft acceptance = 0.64479 (  167 accepted /   259 generated), "
        "mean acceptance length =  2.92, acceptance rate per position = (0.805, 0.632, 0.483)\n"
    )
    totals = "statistics draft-eagle3: #calls(b,g,a) = 1 {0} {0}, #gen drafts = {0}, #acc drafts = 9, #gen tokens = {1}, "
    totals += "#acc tokens = {2}\n"
    both = read(tmp_path, slot + totals.format(87, 259, 167)).log
    assert [(w.accepted, w.rounds) for w in both.windows] == [(167, 87)]
    first, second = read(tmp_path, totals.format(87, 259, 167) + totals.format(187, 559, 367)).log.windows
    assert (first.cumulative, second.cumulative, second.accept_length, second.rounds) == (True, False, 3.0, 100)


def test_metrics_of_two_engines_and_a_restart(tmp_path):
    def shot(*counts):
        return "".join(
            f'vllm:spec_decode_num_drafts_total{{engine="{e}"}} {d}.0\n'
            f'vllm:spec_decode_num_draft_tokens_total{{engine="{e}"}} {3 * d}\n'
            f'vllm:spec_decode_num_accepted_tokens_total{{engine="{e}"}} {a}\n'
            for e, (d, a) in enumerate(counts)
        )

    parsed = read(tmp_path, shot((100, 50), (200, 60)) + shot((300, 250), (400, 80)))
    windows = parsed.log.windows
    assert [(w.rank, w.rounds, w.accepted) for w in windows] == [("Engine 000", 200, 200), ("Engine 001", 200, 20)]
    restarted = read(tmp_path, shot((100, 50), (900, 60)) + shot((1300, 250), (4, 2)))
    assert any("restarted" in problem for problem in restarted.problems)
    assert all(w.cumulative for w in restarted.log.windows)


def test_sglang_replies_and_gauges(tmp_path):
    reply = '{"meta_info": {"id": "a", "completion_tokens": 106, "spec_verify_ct": 43, "spec_num_correct_drafts": 63, '
    reply += '"spec_num_proposed_drafts": 215, "spec_correct_drafts_histogram": [11, 14, 11, 4, 0, 3]}}\n'
    log = read(tmp_path, reply, "r.jsonl").log
    assert (log.steps, log.engine) == (5, "sglang")
    assert sorted(log.requests[0].accepted) == [0] * 11 + [1] * 14 + [2] * 11 + [3] * 4 + [5] * 3
    assert "unknown" in log.definitions["rounds"]
    gauges = 'sglang:spec_accept_length{tp_rank="0"} 2.17\nsglang:spec_accept_rate{tp_rank="0"} 0.5425\n'
    gauges += "sglang:spec_num_draft_tokens 4\n"
    (window,) = read(tmp_path, gauges, "metrics.txt").log.windows
    assert (window.accept_length, window.acceptance_rate) == (2.17, pytest.approx(0.39))


def test_acceptance_table(tmp_path):
    text = "num_drafts,num_draft_tokens,num_accepted_tokens,acceptance_length,acceptance_at_pos_0,acceptance_at_pos_1\n"
    text += "100,200,90,1.9,0.6,0.3\n"
    log = read(tmp_path, text, "acceptance.csv").log
    assert (log.steps, log.windows[0].accept_length, log.windows[0].survival) == (2, 1.9, (0.6, 0.3))


CUTS = [("accept len: 2.5", "accept_length"), ("accept rate: 0.", "acceptance_rate"), ("(token/s): 18", "throughput")]
CUTS += [("Drafted: 60", "drafted")]


@pytest.mark.parametrize(("end", "name"), CUTS)
def test_a_number_cut_at_the_end_of_the_line_is_no_number(tmp_path, end, name):
    whole = spec(2.01, 206, 609, (0.601, 0.286, 0.128)) if name == "drafted" else decode(2.57, 0.52, speed=182.25)
    window = read(tmp_path, whole[: whole.index(end) + len(end)]).log.windows[0]
    assert getattr(window, name) is None
    assert window.running == (None if name == "drafted" else 4)


def test_processes_name_their_engine(tmp_path):
    lines = [spec(1.5, 50, 300, (0.3, 0.1, 0.1)).replace("APIServer", f"EngineCore_DP{rank}") for rank in (0, 1)]
    assert [w.rank for w in read(tmp_path, "".join(lines)).log.windows] == ["Engine 000", "Engine 001"]


def test_report_of_trtllm_bench(tmp_path):
    text = "TensorRT LLM Version:\t1.2.0\n[DT] AVERAGE: 3.00\n[DAR] MINIMUM: 0.10\n[DAR] AVERAGE: 0.40\n"
    log = read(tmp_path, text + "[AL] MINIMUM: 1.20\n[AL] AVERAGE: 2.20\n", "report.txt").log
    assert (log.engine, log.version) == ("trtllm", "1.2.0")
    assert [(w.accept_length, w.acceptance_rate) for w in log.windows] == [(2.2, 0.4)]


def test_two_starts_in_one_log_are_said(tmp_path):
    parsed = read(tmp_path, ARGS % (3, 1, 4) + decode(2.5, 0.5) + ARGS % (5, 1, 6) + decode(2.5, 0.5, 1))
    assert parsed.log.steps == 3
    assert [p for p in parsed.problems if p.startswith("num_draft_tokens is 4 first and 6 later")]


def test_server_info_of_sglang(tmp_path):
    text = '{"speculative_algorithm": "EAGLE3", "speculative_num_steps": 3, "speculative_eagle_topk": 1, '
    text += '"version": "0.5.12", "speculative_num_draft_tokens": 4, "internal_states": [{"avg_spec_accept_length": 2.31}]}'
    log = read(tmp_path, text, "info.json").log
    assert (log.engine, log.version, log.steps, log.settings["method"]) == ("sglang", "0.5.12", 3, "eagle3")
    assert (log.windows[0].accept_length, log.windows[0].cumulative) == (2.31, True)


def test_the_engine_line_alone_tells_the_model(tmp_path):
    line = "(EngineCore pid=2) INFO 11-30 01:18:05 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
    line += "model='/m/t', speculative_config=SpeculativeConfig(method='eagle3', model='/m/d', num_spec_tokens=4), "
    line += "tensor_parallel_size=2\n"
    log = read(tmp_path, line).log
    assert (log.version, log.steps) == ("0.32.0", 4)
    assert {"model": "/m/t", "drafter": "/m/d", "tp": 2, "method": "eagle3"}.items() <= log.settings.items()


def test_fields_in_any_order_with_unknown_ones(tmp_path):
    line = "[2026-01-01 10:00:01 TP0] Decode batch, gen throughput (token/s): 100.00, npu graph: True, accept rate: 68%, "
    line += "new: 1, cap len: 4.00, block accept len: 3.50, accept len: 3.05, #queue-req: 1, #running-req: 7, foo: 0.1\n"
    (window,) = read(tmp_path, line).log.windows
    assert (window.accept_length, window.acceptance_rate, window.running, window.throughput) == (3.05, 0.68, 7, 100.0)


def test_llama_cpp_block_without_its_last_line(tmp_path):
    log = read(tmp_path, "n_draft   = 8\nn_predict = 129\nn_drafted = 132\nn_accept  = 47\n").log
    assert (log.engine, log.steps, log.windows[0].accepted, log.windows[0].drafted) == ("llama.cpp", 8, 47, 132)
