"""Tuples as launch arguments: machine code takes them apart, and whatever differs is noticed."""

from __future__ import annotations

from collections import namedtuple
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError
from mltriton.runtime.native.launcher import is_native

Pair = namedtuple("Pair", ["left", "right"])


@triton.jit
def summed(arrays, numbers, SCALE: tl.constexpr = 1):
    """What the arrays begin with and the numbers, added up."""
    total = numbers[0] + numbers[1][0] * numbers[1][1]
    for i in tl.static_range(len(arrays) - 1):
        total += tl.load(arrays[i + 1])
    tl.store(arrays[0], total * SCALE)


@triton.jit
def by_name(pair, n):
    tl.store(pair.left, tl.load(pair.right[0]) + pair.right[1] * n)


def launched(numbers: Any, *values: int, dtype: Any = np.int32, **options: Any) -> int:
    out, *arrays = [np.full(4, value, dtype) for value in (-1, *values)]
    summed[(1,)]((out, *arrays), numbers, **options)
    return int(out[0])


def test_other_tuples_of_a_kernel() -> None:
    """Values, sizes, dtypes, types inside and constants; each twice, the second time by what the first has left."""
    for _ in range(2):
        assert launched((3, (5, 7)), 10) == 48
        assert launched((4, (5, 7)), 11, 12) == 62
        assert launched((4, (1, 7)), 11, 12) == 34
        assert launched((4, (5, 7)), 13, dtype=np.int64) == 52
        assert launched((16, (32, 7)), 1) == 241
        assert launched((3, (5, 2**40)), 10, dtype=np.int64) == 13 + 5 * 2**40
        assert launched((np.int32(3), (5, np.int64(7))), 10) == 48
        assert launched((3, (5, tl.constexpr(7))), 10) == 48
        assert launched((3, (5, 7)), 10, SCALE=2) == 96
        assert launched((3, (5, 7)), SCALE=3) == 114


def test_named_tuples() -> None:
    for right in (2, 3):
        out, x = np.zeros(1, np.int32), np.full(1, 100, np.int32)
        by_name[(1,)](Pair(out, (x, right)), 7)
        assert out[0] == 100 + 7 * right
    by_name[(1,)](Pair(out, Pair(x, 2)), 7)
    assert out[0] == 114
    with pytest.raises(Exception, match="left"):
        by_name[(1,)]((out, (x, 2)), 7)


def test_mistakes() -> None:
    launched((3, (5, 7)), 10)
    launched((3, (5, 7)), 10)
    with pytest.raises(ArgumentError, match=r"numbers\.1\.1"):
        launched((3, (5, object())), 10)
    with pytest.raises(Exception, match="numbers"):
        launched((3,), 10)
    constant = np.zeros(4, np.int32)
    constant.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        summed[(1,)]((constant, constant), (3, (5, 7)))


@pytest.mark.skipif(not is_native(), reason="launches go through Python threads")
def test_machine_code_takes_them() -> None:
    kernel = triton.jit(summed.fn)
    arrays = tuple(np.zeros(4, np.int32) for _ in range(3))
    for _ in range(2):
        kernel[(1,)](arrays, (3, (5, 7)))
    assert isinstance(kernel[(1,)], BuiltinFunctionType)
    [variants] = (shape.variants for shape in kernel.shapes.values())
    assert all(isinstance(run, BuiltinFunctionType) for of in variants.values() for run, _ in of)
