"""Emulated lanes run one after the other, but see what others write as on a GPU, where they do each step together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
import xe_modules as modules
from mltriton.targets.llvm.types import GLOBAL_PTR, I32, I64, SHARED_PTR, VOID, Value
from mltriton.targets.xe.emulation import lockstep
from mltriton.targets.xe.spirv import builtins as xe

RNG = np.random.default_rng(31)


@triton.jit
def in_order(x, y, total, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    for step in range(3):
        tl.store(y + at + step, value + step)  # the next one overwrites all but the first
    tl.store(x + at, tl.load(y + at + 1, mask=at % 3 != 0, other=0), mask=at < 50)
    tl.store(total, tl.load(total) + 1.0)
    tl.store(total, tl.load(total) * 2.0)


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64])  # bytes are accessed under a branch
def test_a_write_is_seen_after_it_by_all_lanes_and_before_it_by_none(dtype: Any) -> None:
    x, y, total = RNG.integers(1, 99, 64).astype(dtype), np.zeros(66, dtype), np.array([5.0], np.float32)
    before = x.copy()
    in_order[(1,)](x, y, total, 64, target="xe:pvc", num_warps=1)
    expected = np.array([before[0], before[0] + 1, *(before + 2)], dtype)
    np.testing.assert_array_equal(y, expected)
    at = np.arange(64)
    np.testing.assert_array_equal(x, np.where(at < 50, np.where(at % 3 != 0, expected[1:65], 0), before))
    assert total[0] == 12


@triton.jit
def updated(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))
    tl.atomic_add(x + (at + 5) % BLOCK, tl.load(y + (at + 1) % BLOCK), mask=at % 2 == 0)
    tl.store(y + at, tl.load(x + at))


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("dtype", [np.int32, np.float16])  # of f16, words are swapped in a loop
def test_updates_come_between_what_is_loaded_before_and_after(dtype: Any) -> None:
    x, y = RNG.integers(1, 99, 64).astype(dtype), np.zeros(64, dtype)
    expected = x.copy()
    expected[(np.arange(0, 64, 2) + 5) % 64] += x[(np.arange(0, 64, 2) + 1) % 64]
    updated[(1,)](x, y, 64, target="xe:pvc", num_warps=1)
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(y, expected)


def test_where_lanes_meet() -> None:
    """In front of what follows a write, or writes after a read; once for what lanes may take apart, never inside."""
    _, f = modules.kernel("k", [("at", GLOBAL_PTR)])
    [at] = f.parameters
    first, second = f.load(I32, at), f.load(I32, Value(SHARED_PTR, "@shared"))
    f.store(second, at)
    f.store(second, f.alloca(I32))
    with f.loop(0, f.cast("sext", first, I64), at_least_once=True) as loop:
        with f.when(f.icmp("eq", second, 3), "store"):
            f.store(first, at)
            f.load(I32, at)
        f.call("load_8x16", VOID, at)
        loop.yield_()
    f.ret()
    lockstep.rewrite(f)
    lines = [made for made in f.instructions if made.op != "alloca"]
    calls = [place for place, made in enumerate(lines) if made.names == (xe.BARRIER.symbol,)]
    met = [(lines[place + 1].op, *(name.rstrip("0123456789") for name in lines[place + 1].names)) for place in calls]
    assert met == [("store",), ("br", "store.then", "store.end"), ("call", "load_8x")]
