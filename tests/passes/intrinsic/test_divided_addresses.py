"""Quotients and remainders of places, which are addresses of rows and columns: right whatever the divisor, the
alignment, the sign and the mask; and read in one piece where they follow each other.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl


@triton.jit
def flat(
    x, out, rows, columns, stride, first, n, D: tl.constexpr, B: tl.constexpr, SHIFT: tl.constexpr, W: tl.constexpr
):
    """Of one number after the other; with W rows of the block in steps of B, and `first` of either sign."""
    i_n = tl.program_id(0).to(W)
    offs = i_n * B + tl.arange(0, B) + SHIFT
    number = offs if first is None else offs + first
    mask = offs < n
    row, column = number // D, number % D
    tl.store(rows + offs, row, mask & (offs >= 0))
    tl.store(columns + offs, column, mask & (offs >= 0))
    tl.store(out + offs, tl.load(x + row * stride + column, mask & (number >= 0), other=-1.0), mask & (offs >= 0))


@triton.jit
def looped(x, out, stride, n, D: tl.constexpr, B: tl.constexpr, STEP: tl.constexpr, FIRST: tl.constexpr):
    """In a loop, in two dimensions, masked by the column too."""
    for start in range(FIRST, n, 2 * STEP):
        offs = start + tl.arange(0, 2)[:, None] * STEP + tl.arange(0, B)[None, :]
        column = offs % D
        inside = (offs < n) & (column < D - 1) & (tl.arange(0, B)[None, :] < STEP)
        value = tl.load(x + offs // D * stride + column, inside, other=0.0)
        tl.store(out + offs, value + offs // D % 3, inside)


def numbers(seed):
    """Divisors, block sizes, shifts: those that fit together as often as others."""
    choose = random.Random(seed)
    power = 2 ** choose.randint(0, 8)
    divisor = choose.choice([power, 16 * choose.randint(1, 20), choose.randint(1, 300), 3 * power])
    block = 2 ** choose.randint(3, 9)
    shift = choose.choice([0, 0, 16, divisor, choose.randint(-40, 40), -16, -divisor])
    return choose, divisor, block, shift


def check_flat(seed):
    choose, divisor, block, shift = numbers(seed)
    n, programs = choose.randint(1, 3 * block), 3
    first = choose.choice([None, None, None, 0, 64, -16, -divisor, choose.randint(-99, 99)])
    stride = divisor + choose.choice([0, 16, choose.randint(0, 9)])
    width = choose.choice([tl.int32, tl.int64])
    length = 3 * block + 99 + 2 * divisor + abs(shift)
    x = np.random.default_rng(seed).standard_normal((length // divisor + 2) * stride).astype(np.float32)
    out, rows, columns = np.full(n, 7, np.float32), np.full(n, 7, np.int64), np.full(n, 7, np.int64)
    flat[(programs,)](x, out, rows, columns, stride, first, n, D=divisor, B=block, SHIFT=shift, W=width)
    offs = np.arange(max(shift, 0), min(n, programs * block + shift))
    number = offs + (first or 0)
    quotient = np.trunc(number / divisor).astype(np.int64)
    remainder = number - quotient * divisor
    said = f"D={divisor} B={block} SHIFT={shift} first={first} n={n} stride={stride} {width}"
    np.testing.assert_array_equal(rows[offs], quotient, said)
    np.testing.assert_array_equal(columns[offs], remainder, said)
    places = np.where(number >= 0, quotient * stride + remainder, 0)
    np.testing.assert_array_equal(out[offs], np.where(number >= 0, x[places], -1), said)


def check_looped(seed):
    choose, divisor, block, _ = numbers(seed)
    step = choose.choice([block, block, max(block // 2, 1), block - 1])
    n, first = choose.randint(1, 4 * block), choose.choice([0, 0, 16, choose.randint(0, 40)])
    stride = divisor + choose.choice([0, 16, 5])
    x = np.random.default_rng(seed).standard_normal((n // divisor + 2) * stride).astype(np.float32)
    out = np.full(n, 7, np.float32)
    looped[(1,)](x, out, stride, n, D=divisor, B=block, STEP=step, FIRST=first)
    offs = np.arange(n)
    is_written = (offs >= first) & (offs % divisor < divisor - 1)
    found = x[offs // divisor * stride + offs % divisor] + (offs // divisor % 3).astype(np.float32)
    np.testing.assert_array_equal(out, np.where(is_written, found, 7), f"D={divisor} B={block} {step=} {first=} {n=}")


@pytest.mark.parametrize("seed", range(24))
def test_rows_and_columns_of_a_number(seed):
    check_flat(seed)


@pytest.mark.parametrize("seed", range(12))
def test_rows_and_columns_in_loops(seed):
    check_looped(seed)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_flat, check_looped])
def test_rows_and_columns_of_many(check):
    for seed in range(1000, 1300):
        check(seed)


@pytest.mark.parametrize(
    ("divisor", "shift", "in_one_piece"),
    [(1024, 0, True), (48, 0, True), (1024, 16, True), (100, 0, False), (1024, 3, False), (1024, -16, False)],
)
def test_what_follows_each_other_is_read_in_one_piece(divisor, shift, in_one_piece):
    """A block that may be below 0 is not, since quotients and remainders change their way there."""
    signature = f"*fp32, *fp32, *i64, *i64, i32, None, i32, {divisor}, 2048, {shift}, i64"
    parameters = dict(zip(flat.arg_names, signature.split(", "), strict=True))
    constants = {"first": None, "D": divisor, "B": 2048, "SHIFT": shift, "W": tl.int64}
    known = {name: parameters[name] for name in parameters if name not in constants}
    for target, is_vector in (("cpu:avx2", in_one_piece), ("cpu:avx512", True)):  # Cheap masks: in two pieces else.
        text = triton.compile(flat, known, constants, target=target).asm["intrinsic"]
        gathers = [line for line in text.splitlines() if "tt.load" in line and "x!tt.ptr<f32>" in line]
        assert bool(gathers) != is_vector
