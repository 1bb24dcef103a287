"""Kernels written for warps beside the same kernels written for workgroups: rows, products, attention, decoding.

`mltriton` is the warp-level form, whose warps take turns in one thread; `workgroup` the other one. Both forms share
their body and differ in who works on what.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.arrays import empty
from mltriton.tools import jobs
from mltriton.tools.side_by_side import OURS, Measurement, measure


@triton.jit
def _sum(x, CROSS: tl.constexpr):
    total = tl.sum(x, axis=0)
    if CROSS:
        total = tl.sum(total, cross_warp=True)
    return total


@triton.jit
def _max(x, CROSS: tl.constexpr):
    largest = tl.max(x, axis=0)
    if CROSS:
        largest = tl.max(largest, cross_warp=True)
    return largest


@triton.jit
def _softmax(x, y, n, part, BLOCK: tl.constexpr, CROSS: tl.constexpr):
    """A part of a row."""
    row = tl.program_id(0)
    i = part * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(a - _max(a, CROSS))
    tl.store(y + row * n + i, e / _sum(e, CROSS), mask=i < n)


@triton.jit
def _norm(x, y, n, part, BLOCK: tl.constexpr, CROSS: tl.constexpr):
    """A part of a row, to mean 0 and variance 1."""
    row = tl.program_id(0)
    i = part * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + row * n + i, mask=i < n, other=0.0)
    c = tl.where(i < n, a - _sum(a, CROSS) / n, 0.0)
    tl.store(y + row * n + i, c * tl.rsqrt(_sum(c * c, CROSS) / n + 1e-5), mask=i < n)


@triton.jit
def _product(a, b, c, n, first, left_most, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """M rows, from `first` on, and N columns, from `left_most` on, of the product of square matrices."""
    rm = first + tl.arange(0, M)
    rn = left_most + tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, n, K):
        rk = k + tl.arange(0, K)
        left = tl.load(a + rm[:, None] * n + rk[None, :], mask=(rm[:, None] < n) & (rk[None, :] < n), other=0.0)
        right = tl.load(b + rk[:, None] * n + rn[None, :], mask=(rk[:, None] < n) & (rn[None, :] < n), other=0.0)
        acc = tl.dot(left, right, acc)
    tl.store(c + rm[:, None] * n + rn[None, :], acc, mask=(rm[:, None] < n) & (rn[None, :] < n))


@triton.jit
def _attention(q, k, v, start, step, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """M queries at `q` on the blocks of keys start, start + step, ...: sums that are not yet divided."""
    i = tl.arange(0, M)
    d = tl.arange(0, D)
    queries = (tl.load(q + i[:, None] * D + d[None, :]) * scale).to(k.dtype.element_ty)
    largest = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    for first in range(start, n, step):
        j = first + tl.arange(0, N)
        s = tl.dot(queries, tl.load(k + j[None, :] * D + d[:, None], mask=j[None, :] < n, other=0.0))
        s = tl.where(j[None, :] < n, s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        alpha = tl.exp(largest - new)
        total = total * alpha + tl.sum(p, axis=1)
        values = tl.load(v + j[:, None] * D + d[None, :], mask=j[:, None] < n, other=0.0)
        acc = tl.dot(p.to(values.dtype), values, acc * alpha[:, None])
        largest = new
    return largest, total, acc


@triton.jit(warp_level=True)
def softmax_warps(x, y, n, BLOCK: tl.constexpr):
    _softmax(x, y, n, tl.warp_id(), BLOCK // tl.num_warps(), True)


@triton.jit
def softmax_workgroup(x, y, n, BLOCK: tl.constexpr):
    _softmax(x, y, n, 0, BLOCK, False)


@triton.jit(warp_level=True)
def norm_warps(x, y, n, BLOCK: tl.constexpr):
    _norm(x, y, n, tl.warp_id(), BLOCK // tl.num_warps(), True)


@triton.jit
def norm_workgroup(x, y, n, BLOCK: tl.constexpr):
    _norm(x, y, n, 0, BLOCK, False)


@triton.jit(warp_level=True)
def product_warps(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    ROWS: tl.constexpr = M // tl.num_warps()
    _product(a, b, c, n, tl.program_id(0) * M + tl.warp_id() * ROWS, tl.program_id(1) * N, ROWS, N, K)


@triton.jit(warp_level=True)
def product_grid(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Two columns of warps."""
    ROWS: tl.constexpr = 2 * M // tl.num_warps()
    COLUMNS: tl.constexpr = N // 2
    first = tl.program_id(0) * M + tl.warp_id() // 2 * ROWS
    _product(a, b, c, n, first, tl.program_id(1) * N + tl.warp_id() % 2 * COLUMNS, ROWS, COLUMNS, K)


@triton.jit
def product_workgroup(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    _product(a, b, c, n, tl.program_id(0) * M, tl.program_id(1) * N, M, N, K)


@triton.jit
def _store_rows(o, acc, total, M: tl.constexpr, D: tl.constexpr):
    tl.store(o + tl.arange(0, M)[:, None] * D + tl.arange(0, D)[None, :], acc / total[:, None])


@triton.jit(warp_level=True)
def attention_warps(q, k, v, o, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Every warp has some of the queries."""
    ROWS: tl.constexpr = M // tl.num_warps()
    head = tl.program_id(1) * n * D
    mine = head + (tl.program_id(0) * M + tl.warp_id() * ROWS) * D
    _, total, acc = _attention(q + mine, k + head, v + head, 0, N, n, scale, ROWS, N, D)
    _store_rows(o + mine, acc, total, ROWS, D)


@triton.jit
def attention_workgroup(q, k, v, o, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(1) * n * D
    mine = head + tl.program_id(0) * M * D
    _, total, acc = _attention(q + mine, k + head, v + head, 0, N, n, scale, M, N, D)
    _store_rows(o + mine, acc, total, M, D)


@triton.jit(warp_level=True)
def decode_warps(q, k, v, o, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Every warp has some of the keys."""
    head = tl.program_id(0)
    keys = head * n * D
    start, step = tl.warp_id() * N, N * tl.num_warps()
    largest, total, acc = _attention(q + head * M * D, k + keys, v + keys, start, step, n, scale, M, N, D)
    alpha = tl.exp(largest - tl.max(largest, cross_warp=True))
    total = tl.sum(total * alpha, cross_warp=True, dst_warps=0)
    acc = tl.sum(acc * alpha[:, None], cross_warp=True, dst_warps=0)
    if tl.warp_id() == 0:
        _store_rows(o + head * M * D, acc, total, M, D)


@triton.jit
def decode_workgroup(q, k, v, o, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(0)
    keys = head * n * D
    _, total, acc = _attention(q + head * M * D, k + keys, v + keys, 0, N, n, scale, M, N, D)
    _store_rows(o + head * M * D, acc, total, M, D)


def measurements(quick: bool) -> Iterator[Measurement]:
    dtypes = ("float32", "bfloat16") if jobs.has_torch() else ("float32",)
    for n, warps in ((256, 2),) if quick else ((1000, 2), (4000, 4), (16000, 8)):
        yield _rows("softmax", softmax_warps, softmax_workgroup, n, warps)
        yield _rows("norm", norm_warps, norm_workgroup, n, warps)
    for dtype in dtypes:
        for n, m, columns, warps in ((64, 32, 32, 4),) if quick else ((512, 128, 128, 4), (512, 64, 256, 4)):
            yield _products("product", product_warps, n, m, columns, warps, dtype)
        for n, m, columns, warps in ((64, 32, 32, 4),) if quick else ((512, 128, 128, 4), (512, 128, 64, 8)):
            yield _products("product in a grid", product_grid, n, m, columns, warps, dtype)
        for n, m, warps in ((128, 64, 4),) if quick else ((1024, 128, 4), (1024, 64, 8)):
            yield _queries(n, m, warps, dtype)
        for n, m, warps in ((256, 4, 4),) if quick else ((32000, 1, 8), (4000, 4, 4), (4000, 1, 8), (1000, 8, 8)):
            yield _keys(n, m, warps, dtype)


def _pair(launch: Callable[[Any, Any], Any], warps: Any, workgroup: Any) -> dict[str, Callable[[], Any]]:
    outs = [None, None]

    def run(number: int, kernel: Any) -> Any:
        outs[number] = launch(kernel, outs[number])
        return outs[number]

    return {OURS: lambda: run(0, warps), "workgroup": lambda: run(1, workgroup)}


def _rows(name: str, warps: Any, workgroup: Any, n: int, count: int) -> Measurement:
    x = jobs.random((64, n), "float32", 0)

    def launch(kernel: Any, out: Any) -> Any:
        out = empty(x.shape, x) if out is None else out
        kernel[(64,)](x, out, n, BLOCK=triton.next_power_of_2(n), num_warps=count)
        return out

    problem = f"64x{n}, {count} warps"
    return Measurement(
        f"{name} float32", problem, measure(_pair(launch, warps, workgroup)), 8.0 * x.shape[0] * n, "GB/s"
    )


def _products(name: str, kernel: Any, n: int, m: int, columns: int, count: int, dtype: str) -> Measurement:
    a, b = (jobs.random((n, n), dtype, seed) / math.sqrt(n) for seed in (0, 1))
    like = jobs.random((1,), "float32", 0)

    def launch(kernel: Any, out: Any) -> Any:
        out = empty((n, n), like) if out is None else out
        kernel[(triton.cdiv(n, m), triton.cdiv(n, columns))](a, b, out, n, M=m, N=columns, K=64, num_warps=count)
        return out

    problem = f"{n}x{n}x{n} in {m}x{columns}, {count} warps"
    pair = _pair(launch, kernel, product_workgroup)
    return Measurement(f"{name} {dtype}", problem, measure(pair), 2.0 * n**3)


def _queries(n: int, m: int, count: int, dtype: str) -> Measurement:
    heads, d = 2, 64
    q, k, v = (jobs.random((heads, n, d), dtype, seed) for seed in range(3))
    like = jobs.random((1,), "float32", 0)

    def launch(kernel: Any, out: Any) -> Any:
        out = empty((heads, n, d), like) if out is None else out
        kernel[(n // m, heads)](q, k, v, out, n, d**-0.5, M=m, N=64, D=d, num_warps=count)
        return out

    pair = _pair(launch, attention_warps, attention_workgroup)
    return Measurement(f"attention {dtype}", f"{n} in {m}, {count} warps", measure(pair), 4.0 * heads * n * n * d)


def _keys(n: int, m: int, count: int, dtype: str) -> Measurement:
    heads, d = 8, 128
    q = jobs.random((heads, m, d), dtype, 0)
    k, v = (jobs.random((heads, n, d), dtype, seed) for seed in (1, 2))
    like = jobs.random((1,), "float32", 0)

    def launch(kernel: Any, out: Any) -> Any:
        out = empty((heads, m, d), like) if out is None else out
        kernel[(heads,)](q, k, v, out, n, d**-0.5, M=m, N=64, D=d, num_warps=count)
        return out

    size = 4 if dtype == "float32" else 2
    pair = _pair(launch, decode_warps, decode_workgroup)
    work = 2.0 * heads * n * d * size
    return Measurement(f"decode {dtype}", f"{n} keys, {m} queries, {count} warps", measure(pair), work, "GB/s")
