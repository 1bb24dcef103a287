"""Operands of dots that no block access brings, and scans of what was converted, on Xe, emulated, against numpy."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl

from .dot_operands import random_product

pytestmark = pytest.mark.usefixtures("queue")
FORMS = ("simt", "simd")
RNG = np.random.default_rng(29)
Array = np.ndarray[Any, Any]


@triton.jit
def strided_product(
    a, b, c, ra, ka, kb, nb, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A: tl.constexpr, B: tl.constexpr
):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a, b = a + m[:, None] * ra, b + n[None, :] * nb
    x = tl.trans(tl.load(tl.trans(a + k[None, :] * ka))) if A else tl.load(a + k[None, :] * ka)
    y = tl.trans(tl.load(tl.trans(b + k[:, None] * kb))) if B else tl.load(b + k[:, None] * kb)
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y))


@pytest.mark.parametrize("codegen", FORMS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8])
@pytest.mark.parametrize("turned", [False, True])
def test_inner_strides_of_operands(dtype: Any, turned: bool, codegen: str) -> None:
    """Rows as they lie, padded, turned, with every second element, all the same."""
    m, n, k = 16, 32, 32
    a, b = (RNG.integers(-4, 5, 4096).astype(dtype) for _ in range(2))
    c = np.zeros((m, n), np.int32 if dtype is np.int8 else np.float32)
    for down, across in ((k, 1), (64, 2), (51, 3), (0, 1), (1, 40)):
        x = np.lib.stride_tricks.as_strided(a, (m, k), (down * a.itemsize, across * a.itemsize))
        y = np.lib.stride_tricks.as_strided(b, (n, k), (down * b.itemsize, across * b.itemsize)).T
        strides = (down, across, across, down)
        strided_product[(1,)](a, b, c, *strides, m, n, k, turned, turned, target="xe:pvc", num_warps=4, codegen=codegen)
        np.testing.assert_array_equal(c, x.astype(np.int64) @ y.astype(np.int64))


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def scanned(x, y, KIND: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(y + at, tl.associative_scan(tl.load(x + at).to(KIND), 0, larger))


@pytest.mark.parametrize("codegen", FORMS)
@pytest.mark.parametrize("source", [np.int16, np.int32, np.uint64])
@pytest.mark.parametrize("kind", ["int8", "uint8", "uint16"])
def test_scans_of_what_was_cut_off(source: Any, kind: str, codegen: str) -> None:
    x, y = RNG.integers(0, 30000, 64).astype(source), np.zeros(64, kind)
    for warps in (1, 2):
        scanned[(1,)](x, y, getattr(tl, kind), 64, target="xe:pvc", num_warps=warps, codegen=codegen)
        np.testing.assert_array_equal(y, np.maximum.accumulate(x.astype(kind)))


@pytest.mark.parametrize("seed", range(2))
def test_operands_of_any_kind(seed: int) -> None:
    """Every type, and mixed signs and small floats, in every way to load, in both forms of code."""
    rng = random.Random(seed)
    for _ in range(5):
        random_product(rng).run(RNG)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_many_operands(seed: int) -> None:
    rng = random.Random(1000 + seed)
    for _ in range(20):
        random_product(rng).run(RNG, rng.choice(["xe:pvc", "xe:bmg", "xe:lnl", "xe:ptl"]))
