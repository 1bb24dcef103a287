"""What compiling costs grows as the kernel does: counted in calls of functions, which do not vary as times do."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.compiler import compile
from mltriton.frontend.signature import Constant


@triton.jit
def loads_adds_stores(out, n, COUNT: tl.constexpr):
    i = tl.arange(0, 16)
    total = i * 1.0
    loaded = ()
    for j in tl.static_range(COUNT):
        loaded = (*loaded, tl.load(out + i + j))
    for _ in range(n):
        total += 1.0
    for j in tl.static_range(COUNT):
        tl.store(out + i + j, loaded[j] + total)


@triton.jit
def reductions(out, n, COUNT: tl.constexpr):
    i = tl.arange(0, 16)
    a = i * 1.0
    for _ in tl.static_range(COUNT):
        a = a * 0.5 + tl.max(a)
    tl.store(out + i, a)


@triton.jit
def dependent_loads(out, n, COUNT: tl.constexpr):
    i = tl.arange(0, 16)
    for _ in tl.static_range(COUNT):
        i = tl.load(out + i).to(tl.int32)
    tl.store(out + i, i * 1.0)


def calls_to_lower(kernel, count):
    """How many functions are called to bring a kernel from the warp level to the intrinsic level."""
    one = compile(kernel, {"out": "*fp32:16", "n": "i32"}, {"COUNT": 1}).job
    job = replace(one, entries={**one.entries, "COUNT": Constant(count)})
    modules = job.modules()
    for _ in range(3):
        next(modules)
    counted = 0

    def count_calls(frame, event, argument):
        nonlocal counted
        counted += event == "call"

    sys.setprofile(count_calls)
    try:
        next(modules)
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize(
    ("kernel", "count"),
    [(loads_adds_stores, 200), (dependent_loads, 200), pytest.param(reductions, 700, marks=pytest.mark.slow)],
    ids=["loads, additions, stores", "dependent loads", "reductions"],
)
def test_twice_the_kernel_takes_twice_the_calls(kernel, count):
    once, twice = (calls_to_lower(kernel, size) for size in (count, 2 * count))
    assert twice < 2.2 * once


def test_many_members_of_a_nest_are_right():
    values = np.random.default_rng(0).standard_normal(416).astype(np.float32)
    out = values.copy()
    loads_adds_stores[(1,)](out, 3, COUNT=400)
    expected = values.astype(np.float64)
    loaded = [expected[j : j + 16].copy() for j in range(400)]
    for j in range(400):
        expected[j : j + 16] = loaded[j] + np.arange(16) + 3.0
    np.testing.assert_allclose(out, expected, rtol=1e-6)
