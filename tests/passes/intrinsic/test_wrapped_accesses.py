"""split-wrapped-accesses: a flat index taken apart reads and writes the same elements whatever types, divisor, sign and
mask are, also where what is read at rows are places itself.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl

TYPES = ("float32", "float16", "float64", "int8", "int64", "bool")


@triton.jit
def wrapped(x, rows, out, n, D: tl.constexpr, E: tl.constexpr, B: tl.constexpr, SHIFT: tl.constexpr, W: tl.constexpr):
    """`out[i + i // D * 3]` of a table's rows that `rows` names, of every second dimension once more taken apart."""
    offs = tl.program_id(0).to(W) * B + tl.arange(0, B) + SHIFT
    inside = (offs < n) & (offs >= 0)
    row, column = offs // D, offs % D
    place = tl.load(rows + row, inside, other=0)
    place = tl.where(place < 0, place + 5, place)
    value = tl.load(x + place * D + column, inside)
    near = tl.load(x + row % E * D + column, inside)
    tl.store(out + offs + row * 3, tl.where(offs // (D * E) % 2 == 0, value, near), inside)


@triton.jit
def below(x, out, D: tl.constexpr, FIRST: tl.constexpr, B: tl.constexpr):
    """Numbers on both sides of zero, without masks."""
    number = tl.arange(0, B) + FIRST
    value = tl.load(x + number % D + number // D * (2 * D))
    tl.store(out + tl.arange(0, B), value + tl.load(x + number // D))


def table(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal(shape) * 50
    return (values > 0) if dtype == "bool" else values.astype(dtype)


def check(seed: int) -> None:
    choose = random.Random(seed)
    divisor, again = choose.choice([16, 17, 31, 65, choose.randint(1, 200)]), choose.randint(1, 5)
    block, shift = 2 ** choose.randint(4, 9), choose.choice([0, 0, -3, -divisor, choose.randint(-40, 40)])
    n, dtype, width = choose.randint(1, 3 * block), choose.choice(TYPES), choose.choice([tl.int32, tl.int64])
    x = table(seed, (5, divisor), dtype)
    numbers = np.arange(max(shift, 0), min(n, 3 * block + shift))
    row, column = numbers // divisor, numbers % divisor
    rows = np.random.default_rng(seed).integers(-5, 5, n // divisor + 1)
    out = np.zeros(n + (n // divisor + 1) * 3, dtype)
    expected = out.copy()
    even = numbers // (divisor * again) % 2 == 0
    expected[numbers + row * 3] = np.where(even, x[rows[row], column], x[row % again, column])
    wrapped[(3,)](x, rows, out, n, D=divisor, E=again, B=block, SHIFT=shift, W=width)
    np.testing.assert_array_equal(out, expected, f"D={divisor} E={again} B={block} SHIFT={shift} n={n} {dtype} {width}")


@pytest.mark.parametrize("seed", range(12))
def test_rows_and_columns(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 500))
def test_many_rows_and_columns(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("first", [-1, -16, -17, -18, -33, -34, -35, -50, -70])
def test_numbers_below_zero(first: int) -> None:
    x, out, middle = table(1, (900,), "float32"), np.zeros(64, np.float32), 450
    number = np.arange(64) + first
    quotient = np.trunc(number / 17).astype(int)
    below[(1,)](x[middle:], out, D=17, FIRST=first, B=64)
    expected = x[middle + number - 17 * quotient + 34 * quotient] + x[middle + quotient]
    np.testing.assert_array_equal(out, expected)
