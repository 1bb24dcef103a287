"""Warp-level kernels as users write them: rows, products, attention of one query, histograms, all cut between warps."""

from __future__ import annotations

import mltriton as triton
import mltriton.language as tl


@triton.jit(warp_level=True)
def softmax(x, y, n, BLOCK: tl.constexpr):
    """One row a program, cut between the warps."""
    row = tl.program_id(0)
    i = tl.warp_id() * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + row * n + i, mask=i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(a - tl.max(tl.max(a, axis=0), cross_warp=True))
    s = tl.sum(tl.sum(e, axis=0), cross_warp=True)
    tl.store(y + row * n + i, (e / s).to(y.dtype.element_ty), mask=i < n)


@triton.jit(warp_level=True)
def statistics(x, out, where, n, BLOCK: tl.constexpr):
    """Sum, smallest element and place of the largest; each is stored by a warp of its own choice."""
    w = tl.warp_id()
    count: tl.constexpr = tl.num_warps()
    i = w * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0)
    total = tl.sum(tl.sum(a, axis=0), cross_warp=True, dst_warps=count - 1)
    least = tl.min(tl.min(a, axis=0), cross_warp=True)
    place = tl.argmax(a, axis=0, cross_warp=True, dst_warps=0)
    before = tl.cumsum(tl.sum(a, axis=0), cross_warp=True)
    if w == count - 1:
        tl.store(out, total)
    if w == 0:
        tl.store(where, place)
    tl.store(out + 1 + w, before + least)


@triton.jit(warp_level=True)
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A B, the rows of a block cut between the warps."""
    warps: tl.constexpr = tl.num_warps()
    rows: tl.constexpr = BM // warps
    rm = tl.program_id(0) * BM + tl.warp_id() * rows + tl.arange(0, rows)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((rows, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        left = tl.load(a + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        right = tl.load(b + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(left, right, acc, input_precision="ieee")
    tl.store(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit(warp_level=True)
def grid_product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACROSS: tl.constexpr):
    """C = A B by warps in rows and columns; ACROSS: neighbours have the same rows, or the same columns."""
    other: tl.constexpr = tl.num_warps() // 2
    rows: tl.constexpr = BM // other if ACROSS else BM // 2
    columns: tl.constexpr = BN // 2 if ACROSS else BN // other
    w = tl.warp_id()
    if ACROSS:
        row, column = w // 2, w % 2
    else:
        row, column = w % 2, w // 2
    rm = tl.program_id(0) * BM + row * rows + tl.arange(0, rows)
    rn = tl.program_id(1) * BN + column * columns + tl.arange(0, columns)
    acc = tl.zeros((rows, columns), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        left = tl.load(a + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        right = tl.load(b + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(left, right, acc, input_precision="ieee")
    tl.store(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit(warp_level=True)
def staged_product(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """C = A B for N columns a warp: two buffers of A in shared memory, filled by all warps together."""
    w = tl.warp_id()
    warps: tl.constexpr = tl.num_warps()
    part: tl.constexpr = BK // warps
    shared = tl.alloc((2, M, BK), a.dtype.element_ty)
    i = tl.arange(0, M)
    columns = w * N + tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    turn = 0
    for k in range(0, K, BK):
        mine = k + w * part + tl.arange(0, part)
        loaded = tl.load(a + i[:, None] * K + mine[None, :], mask=mine[None, :] < K, other=0.0)
        tl.store(shared[turn].block((0, w * part), (M, part)), loaded)
        tl.barrier()
        rk = k + tl.arange(0, BK)
        right = tl.load(b + rk[:, None] * (N * warps) + columns[None, :], mask=rk[:, None] < K, other=0.0)
        acc = tl.dot(tl.load(shared[turn]), right, acc * 0.5, input_precision="ieee")
        turn = 1 - turn
    tl.store(c + i[:, None] * (N * warps) + columns[None, :], acc)


@triton.jit(warp_level=True)
def attention(q, k, v, o, n, scale, M: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr):
    """Attention of M queries on n keys, the queries cut between the warps."""
    rows: tl.constexpr = M // tl.num_warps()
    i = tl.warp_id() * rows + tl.arange(0, rows)
    d = tl.arange(0, D)
    queries = (tl.load(q + i[:, None] * D + d[None, :]) * scale).to(k.dtype.element_ty)
    largest = tl.full((rows,), -float("inf"), tl.float32)
    total = tl.zeros((rows,), tl.float32)
    acc = tl.zeros((rows, D), tl.float32)
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        keys = tl.load(k + j[None, :] * D + d[:, None], mask=j[None, :] < n, other=0.0)
        s = tl.where(j[None, :] < n, tl.dot(queries, keys, input_precision="ieee"), -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        alpha = tl.exp(largest - new)
        total = total * alpha + tl.sum(p, axis=1)
        values = tl.load(v + j[:, None] * D + d[None, :], mask=j[:, None] < n, other=0.0)
        acc = tl.dot(p.to(values.dtype), values, acc * alpha[:, None], input_precision="ieee")
        largest = new
    tl.store(o + i[:, None] * D + d[None, :], (acc / total[:, None]).to(o.dtype.element_ty))


@triton.jit(warp_level=True)
def decode(q, k, v, o, n, scale, D: tl.constexpr, G: tl.constexpr, BLOCK: tl.constexpr):
    """Attention of G queries on n keys, the keys cut between the warps, as in Listing 7 of the ML-Triton paper."""
    head = tl.program_id(0)
    w = tl.warp_id()
    warps: tl.constexpr = tl.num_warps()
    d = tl.arange(0, D)
    g = tl.arange(0, G)
    shared = tl.alloc((G, D), k.dtype.element_ty)
    if w == 0:
        first = tl.load(q + (head * G + g[:, None]) * D + d[None, :])
        tl.store(shared, (first * scale).to(k.dtype.element_ty))
    tl.barrier()
    queries = tl.load(shared)
    largest = tl.full((G,), -float("inf"), tl.float32)
    total = tl.zeros((G,), tl.float32)
    acc = tl.zeros((G, D), tl.float32)
    for start in range(w * BLOCK, n, BLOCK * warps):
        j = start + tl.arange(0, BLOCK)
        keys = tl.load(k + (head * n + j[None, :]) * D + d[:, None], mask=j[None, :] < n, other=0.0)
        s = tl.where(j[None, :] < n, tl.dot(queries, keys, input_precision="ieee"), -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        alpha = tl.exp(largest - new)
        total = total * alpha + tl.sum(p, axis=1)
        values = tl.load(v + (head * n + j[:, None]) * D + d[None, :], mask=j[:, None] < n, other=0.0)
        acc = tl.dot(p.to(values.dtype), values, acc * alpha[:, None], input_precision="ieee")
        largest = new
    top = tl.max(largest, cross_warp=True)
    alpha = tl.where(largest == -float("inf"), 0.0, tl.exp(largest - top))
    total = tl.sum(total * alpha, cross_warp=True, dst_warps=0)
    acc = tl.sum(acc * alpha[:, None], cross_warp=True, dst_warps=0)
    if w == 0:
        tl.store(o + (head * G + g[:, None]) * D + d[None, :], (acc / total[:, None]).to(o.dtype.element_ty))


@triton.jit(warp_level=True)
def kinds(x, out, counts, n, BLOCK: tl.constexpr, KINDS: tl.constexpr):
    """How often each number occurs; every warp counts its share of the numbers, and atomics add up all."""
    w = tl.warp_id()
    warps: tl.constexpr = tl.num_warps()
    kind = tl.arange(0, KINDS)
    found = tl.zeros((KINDS,), tl.int32)
    for start in range(w * BLOCK, n, warps * BLOCK):
        i = start + tl.arange(0, BLOCK)
        numbers = tl.load(x + i, mask=i < n, other=-1)
        found += tl.sum((numbers[:, None] == kind[None, :]).to(tl.int32), axis=0)
    tl.atomic_add(counts + kind, found)
    everything = tl.sum(found, cross_warp=True)
    tl.store(out + w * KINDS + kind, everything)
