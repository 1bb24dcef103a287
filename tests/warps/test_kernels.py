"""Whole kernels for warps at every level against float64: the paper's paged attention, pipelines, transposes."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl

from .launches import check


@triton.jit(warp_level=True)
def attention_of_one_query(
    q_ptr, k_ptr, v_ptr, o_ptr, keys, scale, M: tl.constexpr, D: tl.constexpr, KEYS: tl.constexpr
):
    """The paper's listing 7: warp 0 shares the query, every warp has keys of its own, partial results are combined."""
    w = tl.warp_id()
    shared = tl.alloc(shape=(M, D), dtype=tl.float16)
    if w == 0:
        q_block = tl.make_block_ptr(q_ptr, (M, D), (D, 1), (0, 0), (M, D), (1, 0))
        tl.store(shared, tl.load(q_block))
    tl.barrier()
    q = tl.load(shared)
    n = w * KEYS + tl.arange(0, KEYS)
    d = tl.arange(0, D)
    inside = n < keys
    k = tl.load(k_ptr + n[None, :] * D + d[:, None], mask=inside[None, :], other=0.0)
    qk = tl.dot(q, k) * scale
    qk = tl.where(inside[None, :], qk, -1.0e30)
    m = tl.max(tl.max(qk, axis=1), cross_warp=True)
    p = tl.exp(qk - m[:, None])
    total = tl.sum(tl.sum(p, axis=1), cross_warp=True)
    p /= total[:, None]
    v = tl.load(v_ptr + n[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
    o = tl.dot(p.to(tl.float16), v)
    o = tl.sum(o, cross_warp=True, dst_warps=(0))
    if w == 0:
        o_block = tl.make_block_ptr(o_ptr, (M, D), (D, 1), (0, 0), (M, D), (1, 0))
        tl.store(o_block, o)


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8])
def test_attention_of_the_paper(num_warps):
    rng = np.random.default_rng(num_warps)
    M, D, KEYS = 8, 32, 16
    keys = num_warps * KEYS - 5
    q, k, v = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, D), (keys, D), (keys, D)))
    s = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(D)
    p = np.exp(s - s.max(1, keepdims=True))
    wanted = p / p.sum(1, keepdims=True) @ v.astype(np.float64)
    arguments = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "o_ptr": np.zeros((M, D), np.float32), "keys": keys}
    arguments |= {"scale": 1 / np.sqrt(D), "M": M, "D": D, "KEYS": KEYS}
    # The weights are rounded to f16 (2**-11 of each), as in the paper's listing.
    check(attention_of_one_query, arguments, {"o_ptr": wanted}, rtol=1e-3, num_warps=num_warps)


@triton.jit(warp_level=True)
def pipeline(x, out, n, STAGES: tl.constexpr, B: tl.constexpr):
    """Warp 0 fills buffers in turn, the others use what it filled a step before; one barrier a step."""
    b = tl.alloc((STAGES, B), tl.float32)
    w = tl.warp_id()
    i = tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    for step in range(n + 1):
        if w == 0:
            if step < n:
                tl.store(b[step % STAGES], tl.load(x + step * B + i))
        else:
            if step > 0:
                acc += tl.load(b[(step - 1) % STAGES]) * w
        tl.barrier()
    if w > 0:
        tl.store(out + (w - 1) * B + i, acc)


@pytest.mark.parametrize("num_warps", [2, 4])
@pytest.mark.parametrize(("stages", "n"), [(2, 1), (2, 7), (3, 5)])
def test_a_producer_and_consumers(num_warps, stages, n):
    x = np.random.default_rng(n).standard_normal((n, 32)).astype(np.float32)
    wanted = np.arange(1, num_warps)[:, None] * x.astype(np.float64).sum(0)
    arguments = {"x": x, "out": np.zeros((num_warps - 1, 32), np.float32), "n": n, "STAGES": stages, "B": 32}
    check(pipeline, arguments, {"out": wanted}, rtol=1e-6, num_warps=num_warps)


@triton.jit(warp_level=True)
def transpose(x, out, R, C, B: tl.constexpr):
    """Each program a tile of B x B: warps load rows, meet, and store columns of their own."""
    w = tl.warp_id()
    ROWS: tl.constexpr = B // tl.num_warps()
    tile = tl.alloc((B, B), x.dtype.element_ty)
    r = tl.program_id(0) * B + w * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * B + tl.arange(0, B)
    inside = (r < R)[:, None] & (c < C)[None, :]
    tl.store(tile.block((w * ROWS, 0), (ROWS, B)), tl.load(x + r[:, None] * C + c[None, :], mask=inside, other=0))
    tl.barrier()
    part = tl.load(tile.block((0, w * ROWS), (B, ROWS)))
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + w * ROWS + tl.arange(0, ROWS)
    inside = (c < C)[:, None] & (r < R)[None, :]
    tl.store(out + c[:, None] * R + r[None, :], tl.trans(part), mask=inside)


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_transpose(num_warps, dtype):
    x = np.random.default_rng(5).integers(-99, 99, (37, 50)).astype(dtype)
    arguments = {"x": x, "out": np.zeros((50, 37), dtype), "R": 37, "C": 50, "B": 16}
    check(transpose, arguments, {"out": x.T}, num_warps=num_warps, grid=(3, 4))


@triton.jit(warp_level=True)
def gemm_with_shared_b(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """Every warp has rows of A and C of its own; B goes through two buffers that the warps fill together."""
    w = tl.warp_id()
    rows = w * M + tl.arange(0, M)
    part: tl.constexpr = BK // tl.num_warps()
    buffers = tl.alloc((2, BK, N), tl.float32)
    n = tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BK):
        now = buffers[(k // BK) % 2]
        own = k + w * part + tl.arange(0, part)
        tl.store(now.block((w * part, 0), (part, N)), tl.load(b + own[:, None] * N + n[None, :]))
        tl.barrier()
        x = tl.load(a + rows[:, None] * K + (k + tl.arange(0, BK))[None, :])
        acc = tl.dot(x, tl.load(now), acc)
    tl.store(c + rows[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("num_warps", [1, 2, 4])
def test_gemm(num_warps):
    rng = np.random.default_rng(num_warps)
    K, M, N = 80, 8, 32
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((num_warps * M, K), (K, N)))
    arguments = {"a": a, "b": b, "c": np.zeros((num_warps * M, N), np.float32), "K": K, "M": M, "N": N, "BK": 16}
    check(gemm_with_shared_b, arguments, {"c": a.astype(np.float64) @ b}, rtol=1e-6, num_warps=num_warps)


@triton.jit(warp_level=True)
def leaves_early(x, out, n):
    """Programs that have nothing to do end before the barrier, warps and all."""
    pid = tl.program_id(0)
    if pid >= n:
        return
    w = tl.warp_id()
    s = tl.alloc((tl.num_warps(),), tl.float32)
    tl.store(s[w], tl.load(x + pid * tl.num_warps() + w))
    tl.barrier()
    if w == 0:
        tl.store(out + pid, tl.sum(tl.load(s)))


def test_whole_programs_may_end_early():
    x = np.random.default_rng(2).integers(0, 9, (3, 4)).astype(np.float32)
    wanted = np.append(x.sum(1), 0)
    check(leaves_early, {"x": x, "out": np.zeros(4, np.float32), "n": 3}, {"out": wanted}, grid=(4,))
