"""Reductions and scans across warps against numpy: every function, receivers, axes, tuples, in loops."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from combinations import each_value

from .launches import check

WARPS = [1, 2, 4, 8]
N = 16


def data(num_warps: int, dtype: type = np.float32) -> np.ndarray:
    """A permutation, so that extremes are unique: [warps, 4, N]."""
    rng = np.random.default_rng(num_warps)
    return (rng.permutation(num_warps * 4 * N) - 100).reshape(num_warps, 4, N).astype(dtype)


@triton.jit(warp_level=True)
def block_of_warp(x, N: tl.constexpr):
    i = tl.arange(0, 4)[:, None] * N + tl.arange(0, N)[None, :]
    return tl.load(x + tl.warp_id() * 4 * N + i), i


@triton.jit(warp_level=True)
def elementwise(x, sums, tops, bottoms, top_ids, bottom_ids, N: tl.constexpr):
    v, i = block_of_warp(x, N)
    o = tl.warp_id() * 4 * N + i
    tl.store(sums + o, tl.sum(v, cross_warp=True))
    tl.store(tops + o, tl.max(v, cross_warp=True))
    tl.store(bottoms + o, v.min(cross_warp=True))
    tl.store(top_ids + o, tl.argmax(v, cross_warp=True))
    _, ids = tl.min(v, return_indices=True, cross_warp=True)
    tl.store(bottom_ids + o, ids)


@pytest.mark.parametrize("num_warps", WARPS)
def test_element_by_element(num_warps):
    x = data(num_warps)
    every = {
        "sums": x.astype(np.float64).sum(0),
        "tops": x.max(0),
        "bottoms": x.min(0),
        "top_ids": x.argmax(0),
        "bottom_ids": x.argmin(0),
    }
    expected = {name: np.broadcast_to(value, x.shape) for name, value in every.items()}
    outs = {name: np.zeros(x.shape, np.int32 if "ids" in name else np.float32) for name in expected}
    check(elementwise, {"x": x, **outs, "N": N}, expected, rtol=1e-6, num_warps=num_warps)


@triton.jit(warp_level=True)
def along_an_axis(x, rows, kept, tops, places, all_bottom, N: tl.constexpr):
    """Within each warp along an axis first; argmax counts through the blocks of all warps."""
    v, _ = block_of_warp(x, N)
    w, j, r = tl.warp_id(), tl.arange(0, N), tl.arange(0, 4)
    tl.store(rows + w * N + j, tl.sum(v, axis=0, cross_warp=True))
    both = tl.sum(v, axis=0, keep_dims=True, cross_warp=True)
    tl.static_assert(both.shape[0] == 1)
    tl.store(kept + w * N + j[None, :], both)
    tl.store(tops + w * 4 + r, tl.max(v, axis=1, cross_warp=True))
    tl.store(places + w * 4 + r, tl.argmax(v, axis=-1, cross_warp=True))
    flat = tl.reshape(v, (4 * N,))
    tl.store(all_bottom + w, tl.argmin(flat, axis=0, cross_warp=True))


@pytest.mark.parametrize("num_warps", WARPS)
def test_along_an_axis(num_warps):
    x = data(num_warps)
    wide = x.transpose(1, 0, 2).reshape(4, -1)  # the blocks of all warps side by side
    every = {
        "rows": x.astype(np.float64).sum((0, 1)),
        "kept": x.astype(np.float64).sum((0, 1)),
        "tops": wide.max(1),
        "places": wide.argmax(1),
        "all_bottom": [x.argmin()],
    }
    expected = {name: np.tile(value, num_warps) for name, value in every.items()}
    outs = {n: np.zeros(len(v), np.int32 if n in ("places", "all_bottom") else np.float32) for n, v in expected.items()}
    check(along_an_axis, {"x": x, **outs, "N": N}, expected, rtol=1e-6, num_warps=num_warps)


@triton.jit(warp_level=True)
def for_receivers(x, out, one, TO: tl.constexpr, FIRST: tl.constexpr, N: tl.constexpr):
    v, i = block_of_warp(x, N)
    s = tl.sum(v, cross_warp=True, dst_warps=TO)
    m = tl.max(tl.max(v), cross_warp=True, dst_warps=FIRST)
    w = tl.warp_id()
    if (w == FIRST) | (w == 3):
        tl.store(out + w * 4 * N + i, s)
    if w == FIRST:
        tl.store(one, m)


@pytest.mark.parametrize("to", [(0, 3), (3, 0), None, (0, 1, 2, 3)])
def test_receivers(to):
    x = data(4)
    out = np.zeros_like(x)
    wanted = out.astype(np.float64)
    wanted[[0, 3]] = x.astype(np.float64).sum(0)
    arguments = {"x": x, "out": out, "one": np.zeros(1, np.float32), "TO": to, "FIRST": 0, "N": N}
    check(for_receivers, arguments, {"out": wanted, "one": [x.max()]}, rtol=1e-6)


@triton.jit(warp_level=True)
def by_mask_and_selection(out):
    """A warp without the result may hold it, select something else, or store it nowhere."""
    s = tl.sum(tl.warp_id(), cross_warp=True, dst_warps=1)
    w = tl.warp_id()
    twice = s * 2
    tl.store(out + w, tl.where(w == 1, twice, -1))
    tl.store(out + 4, twice, mask=w == 1)


def test_missing_results_may_be_masked():
    check(by_mask_and_selection, {"out": np.zeros(5, np.int32)}, {"out": [-1, 12, -1, -1, 12]})


@triton.jit
def merged(m1, l1, m2, l2):
    """Two (maximum, sum of exponentials) pairs as one: flash decoding's combination."""
    m = tl.maximum(m1, m2)
    return m, l1 * tl.exp(m1 - m) + l2 * tl.exp(m2 - m)


@triton.jit(warp_level=True)
def tuples(x, m_out, l_out, N: tl.constexpr):
    v, i = block_of_warp(x, N)
    v = v * 0.125
    m, total = tl.reduce((v, tl.full((4, N), 1.0, tl.float32)), None, merged, cross_warp=True)
    o = tl.warp_id() * 4 * N + i
    tl.store(m_out + o, m)
    tl.store(l_out + o, total)


@triton.jit(warp_level=True)
def tuples_along(x, m_out, l_out, N: tl.constexpr):
    v, _ = block_of_warp(x, N)
    v = v * 0.125
    m, total = tl.reduce((v, tl.full((4, N), 1.0, tl.float32)), 1, merged, cross_warp=True, dst_warps=0)
    if tl.warp_id() == 0:
        tl.store(m_out + tl.arange(0, 4), m)
        tl.store(l_out + tl.arange(0, 4), total)


@pytest.mark.parametrize("num_warps", WARPS)
def test_tuples_with_a_function_of_the_user(num_warps):
    x = data(num_warps)
    v = x.astype(np.float64) / 8
    sums = np.exp(v - v.max(0)).sum(0)
    expected = {"m_out": np.broadcast_to(v.max(0), v.shape), "l_out": np.broadcast_to(sums, v.shape)}
    outs = {name: np.zeros_like(x) for name in expected}
    check(tuples, {"x": x, **outs, "N": N}, expected, rtol=1e-6, num_warps=num_warps)
    tops = v.max((0, 2))
    expected = {"m_out": tops, "l_out": np.exp(v - tops[:, None]).sum((0, 2))}
    outs = {name: np.zeros(4, np.float32) for name in expected}
    check(tuples_along, {"x": x, **outs, "N": N}, expected, rtol=1e-6, num_warps=num_warps)


@triton.jit(warp_level=True)
def in_loops(x, out, n, N: tl.constexpr):
    """The same exchange again and again, with and without another one in between, in an inner loop and a branch."""
    v, i = block_of_warp(x, N)
    total = tl.zeros((4, N), tl.int32)
    for a in range(n):
        total += tl.sum(v + a, cross_warp=True)
        for b in range(2):
            total += tl.max(v ^ b, cross_warp=True)
        if a % 2 == 0:
            total -= tl.min(v * a, cross_warp=True)
    tl.store(out + tl.warp_id() * 4 * N + i, total)


@each_value(("n", [0, 1, 3]), ("num_warps", WARPS))
def test_in_loops(num_warps, n):
    x = data(num_warps, np.int32)
    total = np.zeros((4, N), np.int64)
    for a in range(n):
        total += (x + a).sum(0) + x.max(0) + (x ^ 1).max(0)
        if a % 2 == 0:
            total -= (x * a).min(0)
    arguments = {"x": x, "out": np.zeros_like(x), "n": n, "N": N}
    check(in_loops, arguments, {"out": np.broadcast_to(total, x.shape)}, num_warps=num_warps)


@triton.jit(warp_level=True)
def alone_in_a_loop(x, out, n):
    y = tl.load(x + tl.warp_id())
    for _ in range(n):
        y = y * 2 - tl.sum(y, cross_warp=True)
    tl.store(out + tl.warp_id(), y)


def test_a_warp_that_is_ahead_does_not_spoil_the_exchange():
    x = np.array([1, -2, 5, 3], np.int32)
    y = x.astype(np.int64)
    for _ in range(5):
        y = y * 2 - y.sum()
    check(
        alone_in_a_loop,
        {"x": x, "out": np.zeros_like(x), "n": 5},
        {"out": y},
        orders=("forward", "backward", "shuffled"),
    )


@triton.jit
def affine(a1, b1, a2, b2):
    """One affine function after another: a combination whose order matters."""
    return a1 * a2, b1 * a2 + b2


@triton.jit(warp_level=True)
def scans(x, sums, back, a_out, b_out, flags, n, N: tl.constexpr):
    v, i = block_of_warp(x, N)
    w = tl.warp_id()
    for k in range(n):
        tl.store(sums + w * 4 * N + i, tl.cumsum(v + k, cross_warp=True))
        tl.store(back + w, tl.cumsum(w + 1, cross_warp=True, reverse=True))
        a, b = tl.associative_scan((w % 3 + 1, w), None, affine, cross_warp=True)
        tl.store(a_out + w, a)
        tl.store(b_out + w, b)
        tl.store(flags + w, tl.associative_scan(w == 1, None, _either, cross_warp=True))


@triton.jit
def _either(a, b):
    return a | b


@pytest.mark.parametrize("num_warps", WARPS)
def test_scans(num_warps):
    x, n = data(num_warps, np.int32), 2
    ids = np.arange(num_warps)
    a, b, firsts = 1, 0, []
    for w in ids:
        a, b = a * (w % 3 + 1), b * (w % 3 + 1) + w
        firsts.append((a, b))
    expected = {
        "sums": (x + n - 1).cumsum(0),
        "back": (ids + 1)[::-1].cumsum()[::-1],
        "a_out": [a for a, _ in firsts],
        "b_out": [b for _, b in firsts],
        "flags": ids >= 1,
    }
    outs = {name: np.zeros(np.shape(value), np.int32) for name, value in expected.items()}
    check(scans, {"x": x, **outs, "n": n, "N": N}, expected, num_warps=num_warps)


@triton.jit(warp_level=True)
def of_many(out):
    total = tl.sum(tl.warp_id(), cross_warp=True)
    place = tl.cumsum(tl.full((8,), 1, tl.int32), cross_warp=True)
    tl.store(out + tl.warp_id() * 8 + tl.arange(0, 8), total + place)


def test_as_many_warps_as_there_may_be():
    wanted = np.repeat(64 * 63 // 2 + np.arange(1, 65), 8)
    check(of_many, {"out": np.zeros(64 * 8, np.int32)}, {"out": wanted}, num_warps=64, orders=["shuffled"])


@triton.jit(warp_level=True)
def of_dtype(x, out, ors, DTYPE: tl.constexpr):
    i = tl.arange(0, 16)
    v = tl.load(x + 16 * tl.warp_id() + i)
    s = tl.sum(v, cross_warp=True)
    tl.static_assert(s.dtype == DTYPE)
    tl.store(out + 16 * tl.warp_id() + i, s)
    tl.store(ors + 16 * tl.warp_id() + i, tl.reduce(v > 1, None, _either, cross_warp=True))


SUMS = {np.int8: tl.int32, np.uint8: tl.uint32, np.int64: tl.int64, np.float16: tl.float16, np.float64: tl.float64}


@pytest.mark.parametrize("dtype", SUMS, ids=lambda dtype: dtype.__name__)
def test_dtypes(dtype):
    x = np.random.default_rng(3).integers(0, 3, (4, 16)).astype(dtype)
    out = np.zeros((4, 16), {"int32": np.int32, "uint32": np.uint32}.get(SUMS[dtype].name, dtype))
    expected = {
        "out": np.broadcast_to(x.astype(np.float64).sum(0), x.shape),
        "ors": np.broadcast_to((x > 1).any(0), x.shape),
    }
    check(of_dtype, {"x": x, "out": out, "ors": np.zeros((4, 16), np.int32), "DTYPE": SUMS[dtype]}, expected)
