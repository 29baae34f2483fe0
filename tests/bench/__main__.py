"""Ratios of one run on the demo: the parallel replay against its plain form and the machine, the sweep against replays.

    python -m tests.bench [cuda]

Seconds are of one CPU thread (of the clock on a GPU). They depend on the machine; the ratios are what to watch.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import permutations

import torch

from eagle3dash.drafter.model import Model
from eagle3dash.drafter.replay import drafts
from eagle3dash.drafter.sequential import chain_after
from eagle3dash.drafter.sweep import Sweep
from tests.drafter.test_demo_numbers import STEPS, demo_drafter, training


def seconds(work: Callable[[], object], device: str, repeats: int = 3) -> float:
    """Best of `repeats`, after one to warm up."""
    clock, best = time.perf_counter if device == "cuda" else time.process_time, float("inf")
    for turn in range(repeats + 1):
        began = clock()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, clock() - began) if turn else best
    return best


def machine(device: str) -> tuple[float, float]:
    """(operations a second of a large matrix product, bytes a second of a copy: read and written)."""
    a, b = (torch.randn(1536, 1536, device=device) for _ in range(2))
    block = torch.randn(16 << 20, device=device)
    into = torch.empty_like(block)
    return 2 * 1536**3 / seconds(lambda: a @ b, device), 8 * block.numel() / seconds(lambda: into.copy_(block), device)


def operations(model: Model, rows: int) -> float:
    """Of one replay: fc and the embedding's half once, the rest every step, attention over half of the rows."""
    s = model.spec
    width = (s.heads + 2 * s.kv_heads) * s.head_dim
    once = s.hidden * (s.num_aux * s.target_hidden + width)
    step = s.hidden * (width + s.heads * s.head_dim + 3 * s.intermediate + s.draft_vocab) + s.heads * s.head_dim * rows
    return 2.0 * rows * (once + STEPS * step)


def bytes_moved(model: Model, rows: int) -> float:
    """The least that one replay reads and writes: weights once a step, the widest results written and read once."""
    s, size = model.spec, model.head.element_size()
    layer = model.layers[0]
    weights = [model.head, layer.attention.weight, layer.attention.output, *layer.mlp]
    return size * STEPS * (sum(x.numel() for x in weights) + 2 * rows * (3 * s.intermediate + s.draft_vocab))


def main(device: str) -> None:
    torch.set_num_threads(1)
    model = demo_drafter(torch.float32, device)
    states, ids, _ = training(0)
    states = [x.to(device) for x in states]
    rows, combinations = len(ids), list(permutations(range(len(states)), 3))
    flops, copied = machine(device)
    sweep = Sweep(model, states, ids, STEPS)
    some = range(rows // 16, rows - STEPS, rows // 8)  # prefixes of every length; their mean stands for all

    parallel = seconds(lambda: drafts(model, states[:3], ids, STEPS), device)
    one = seconds(lambda: [chain_after(model, states[:3], ids, at, STEPS, forced=True) for at in some], device)
    singly = seconds(lambda: [drafts(model, [states[i] for i in c], ids, STEPS) for c in combinations], device, 1)
    shared = seconds(lambda: [sweep.drafts(c) for c in combinations], device, 1)
    ranked = seconds(lambda: [sweep.drafts(c, leading=True) for c in combinations], device, 1)
    sample = torch.arange(0, rows, 8)
    sampled = seconds(lambda: [sweep.drafts(c, sample, leading=True) for c in combinations], device, 1)

    print(f"machine: matrix product {flops / 1e9:.0f} GFLOP/s, copy {copied / 1e9:.1f} GB/s ({device}, float32)")
    speed = rows * STEPS / parallel
    print(f"replay of {rows} rows, K = {STEPS}     {parallel:8.3f} s  {speed:,.0f} drafted tokens a second")
    print(f"  of the matrix product     {operations(model, rows) / parallel / flops:8.2f}")
    print(f"  of the copy bandwidth     {bytes_moved(model, rows) / parallel / copied:8.2f}")
    print(f"  plain chains / replay     {one / len(some) * rows / parallel:8.1f}")
    print(f"{len(combinations)} combinations, replayed   {singly:8.3f} s")
    print(f"  replayed / swept          {singly / shared:8.2f}  every step of every row")
    print(f"  replayed / ranked         {singly / ranked:8.2f}  chains end at their first wrong step")
    print(f"  replayed / sampled        {singly / sampled:8.2f}  the same for every 8th row")


if __name__ == "__main__":
    main("cuda" if "cuda" in sys.argv[1:] else "cpu")
