"""Kernels whose output is their input: each program reads and writes the same elements, with strides passed twice."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl


@triton.jit
def rows_in_place(x, x_step, out, out_step, other, sums, rows, columns, BLOCK: tl.constexpr, LATE: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = i < columns
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        value = tl.load(x + row * x_step + i, inside, other=0.0).to(tl.float32)
        weight = tl.load(other + row * columns + i, inside, other=0.0)
        if not LATE:
            total += value * weight
        tl.store(out + row * out_step + i, value * 2 + tl.sum(value * weight, 0), inside)
        if LATE:
            total += value * weight
    tl.store(sums + i, total, inside)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("columns", [1000, 257, 40])
def test_what_was_read_before_a_store_is_used_after_it(columns, dtype, late):
    rng = np.random.default_rng(0)
    x, other = rng.standard_normal((6, columns)).astype(dtype), rng.standard_normal((6, columns)).astype(np.float32)
    expected = x.astype(np.float64)
    products = expected * other
    sums, given = np.zeros(columns, np.float32), x.copy()
    block = triton.next_power_of_2(columns)
    rows_in_place[(1,)](given, columns, given, columns, other, sums, 6, columns, BLOCK=block, LATE=late)
    np.testing.assert_allclose(sums, products.sum(0), rtol=1e-4, atol=1e-4)
    near = 1e-4 if dtype == np.float32 else 5e-2
    np.testing.assert_allclose(given, expected * 2 + products.sum(1, keepdims=True), rtol=near, atol=near * 5)


@triton.jit
def halves_in_place(q, q_step, out, out_step, cos, columns, HALF: tl.constexpr, ROWS: tl.constexpr):
    rows, i = tl.arange(0, ROWS), tl.arange(0, HALF)
    left = rows[:, None] * q_step + i[None, :]
    angle = tl.load(cos + i)[None, :]
    pointers, into = q + left, out + rows[:, None] * out_step + i[None, :]
    for _ in range(2):
        first, second = tl.load(pointers), tl.load(pointers + HALF)
        tl.store(into, first * angle - second)
        tl.store(into + HALF, second * angle + first)
        pointers += ROWS * q_step
        into += ROWS * out_step


@pytest.mark.parametrize("half", [16, 64])
def test_halves_are_turned_in_place(half):
    rng = np.random.default_rng(1)
    q, cos = rng.standard_normal((16, 2 * half)).astype(np.float32), rng.standard_normal(half).astype(np.float32)
    given, out = q.copy(), np.zeros_like(q)
    for target in (given, out):
        source = given if target is given else q
        halves_in_place[(1,)](source, 2 * half, target, 2 * half, cos, 2 * half, HALF=half, ROWS=8)
        first, second = q[:, :half], q[:, half:]
        np.testing.assert_allclose(
            target, np.hstack([first * cos - second, second * cos + first]), rtol=1e-5, atol=1e-5
        )
