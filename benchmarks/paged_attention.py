"""Decoding over a paged cache: 8 sequences of about 4k tokens, 32 heads on 8, dimension 128, in both forms; and of
about 32k, which are 1 GB and so in no cache of a processor.

Against torch (pages gathered, then `scaled_dot_product_attention` for each sequence), against each other (how many
times as fast the form of warps is), and against reading as many bytes from memory: the share of the read bandwidth.
Then a prompt of 2k tokens, against torch in the same way and against our attention of keys that lie in one piece.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton import kernels
from mltriton.tools import jobs
from mltriton.tools.side_by_side import OURS, Measurement, Times, measure

LENS = (4096, 4001, 3900, 3801, 4090, 3500, 4033, 3777)
LONG = tuple(8 * length for length in LENS)
BLOCK = 65536  # numbers that a program reads


@triton.jit
def read_kernel(x_ptr, sums_ptr, BLOCK: tl.constexpr):
    """The sum of a block, which takes as long as reading it."""
    i = tl.program_id(0)
    tl.store(sums_ptr + i, tl.sum(tl.load(x_ptr + i.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)), 0))


def measurements(quick: bool) -> Iterator[Measurement]:
    for dtype in ("float32", "bfloat16") if jobs.has_torch() else ("float32",):
        for page in (16,) if quick else (16, 64):
            yield from _problem((500, 300) if quick else LENS, dtype, page)
    if jobs.has_torch() and not quick:
        yield from _problem(LONG, "bfloat16", 16)
    for dtype in ("float32", "bfloat16") if jobs.has_torch() else ():
        yield _prompt(256 if quick else 2048, dtype)


def _problem(lens: tuple[int, ...], dtype: str, page: int) -> Iterator[Measurement]:
    warps, workgroups = (jobs.paged_attention(lens, 32, 8, 128, form, dtype, page) for form in (True, False))
    programs = max(1, round(warps.work / (4 * BLOCK)))
    x, sums = np.ones(programs * BLOCK, np.float32), np.empty(programs, np.float32)

    def read() -> None:
        read_kernel[(programs,)](x, sums, BLOCK=BLOCK)

    libraries = {name: run for name, run in warps.contenders.items() if name != OURS}
    ours = {"warps": warps.contenders[OURS], "workgroups": workgroups.contenders[OURS]}
    times = measure(ours | {"reading": read} | libraries, budget=15.0)
    reading, scale = times["reading"], warps.work / x.nbytes
    times["reading"] = Times(reading.minimum * scale, reading.median * scale)

    def compared(name: str, other: str) -> Measurement:
        both = {OURS: times[name], other: times[other]}
        problem = f"{warps.problem}, pages of {page}"
        return Measurement(f"{name} {dtype}, against {other}", problem, both, warps.work, warps.unit)

    for name in ours:
        for other in ("reading", *libraries):
            yield compared(name, other)
    yield compared("warps", "workgroups")


def _prompt(tokens: int, dtype: str, heads: int = 8, kv_heads: int = 2, dim: int = 128, page: int = 16) -> Measurement:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    q = jobs.random((tokens, heads, dim), dtype, 0)
    k_cache, v_cache = (jobs.random((tokens // page, page, kv_heads, dim), dtype, seed) for seed in (1, 2))
    pages = torch.randperm(tokens // page)
    table, lens = pages[None].int(), torch.tensor([tokens], dtype=torch.int32)
    starts = torch.tensor([0, tokens], dtype=torch.int32)
    k, v = (cache[pages].view(1, tokens, kv_heads, dim).transpose(1, 2).contiguous() for cache in (k_cache, v_cache))
    by_head = q[None].transpose(1, 2).contiguous()

    def with_torch() -> object:
        found = (cache[pages].view(1, tokens, kv_heads, dim).transpose(1, 2) for cache in (k_cache, v_cache))
        k, v = (x.repeat_interleave(heads // kv_heads, 1) for x in found)
        return scaled_dot_product_attention(by_head, k, v, is_causal=True)

    contenders = {
        OURS: lambda: kernels.paged_attention_varlen(q, k_cache, v_cache, table, lens, starts),
        "in one piece": lambda: kernels.flash_attention(by_head, k, v, causal=True),
        "torch": with_torch,
    }
    problem, work = f"{tokens}x{heads}/{kv_heads}x{dim}, pages of {page}", 2.0 * heads * tokens * tokens * dim
    return Measurement(f"paged prefill {dtype}", problem, measure(contenders, budget=15.0), work, "GFLOP/s")
