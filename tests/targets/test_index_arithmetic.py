"""Integers beside those that are places in memory: remainders of negative numbers, and sums that wrap, as numbers;
block pointers that pass the largest i32.
"""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from ptx_emulator.launch import install

MOST = 2**31 - 1


@triton.jit
def remainders(out, n, m, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, (i - 64) % 16)
    tl.store(out + B + i, (i - n) % 16)
    tl.store(out + 2 * B + i, (i - n) % m)
    tl.store(out + 3 * B + i, (-1 - n) % 16)
    tl.store(out + 4 * B + i, i, mask=(i - n) % 16 >= 0)


@triton.jit
def extensions(out, n, m, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, (n + i).to(tl.int64))
    tl.store(out + B + i, (n + i).to(tl.int64) * 3 + 1)
    tl.store(out + 2 * B + i, tl.where((n + i).to(tl.int64) > 0, 1, 2))
    tl.store(out + 3 * B + i, (m + i * 2).to(tl.int8).to(tl.int64))
    tl.store(out + 4 * B + i, i, mask=(m + i * 2).to(tl.int16).to(tl.int32) < 64)


def wrapped(numbers: np.ndarray, bits: int = 32) -> np.ndarray:
    return numbers.astype(f"int{bits}").astype(np.int64)


@pytest.fixture(params=["cpu", "cpu:sse", "cuda:90"])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    install(monkeypatch)
    return request.param


@pytest.mark.parametrize(("n", "m"), [(64, 16), (128, 48), (-32, 16), (60, 7)])
def test_a_remainder_has_the_sign_of_its_dividend(target: str, n: int, m: int):
    i, out = np.arange(128), np.full((5, 128), -99, np.int32)
    remainders[(1,)](out, n, m, B=128, target=target)
    line = np.fmod(i - n, 16)
    wanted = [np.fmod(i - 64, 16), line, np.fmod(i - n, m), i * 0 + np.fmod(-1 - n, 16), np.where(line >= 0, i, -99)]
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize(("n", "m"), [(MOST - 4, 580), (MOST - 15, 32700), (-30, -32780), (5, 100)])
def test_numbers_are_extended_after_they_wrapped(target: str, n: int, m: int):
    i, out = np.arange(128), np.full((5, 128), -99, np.int64)
    extensions[(1,)](out, n, m, B=128, target=target)
    number, byte, short = wrapped(n + i), wrapped(m + i * 2, 8), wrapped(m + i * 2, 16)
    wanted = [number, number * 3 + 1, np.where(number > 0, 1, 2), byte, np.where(short < 64, i, -99)]
    np.testing.assert_array_equal(out, wanted)


@triton.jit
def first_block(x, out, rows, B: tl.constexpr):
    block = tl.make_tensor_descriptor(x, [rows, B], [B, 1], [B, B])
    tl.store(out + tl.arange(0, B)[:, None] * B + tl.arange(0, B), block.load([0, 0]))


@pytest.mark.parametrize("rows", [2**32, 2**32 + 3, -(2**32) + 3])
def test_descriptors_have_all_rows_that_offsets_reach(target: str, rows: int):
    """Of a size in 64 bits the lower half alone would be another one."""
    x, out = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    first_block[(1,)](x, out, rows, B=16, target=target)
    assert out.sum() == (256 if rows > 0 else 0)


@triton.jit
def walk(x, out, n, start, step, COUNT: tl.constexpr, B: tl.constexpr):
    block = tl.make_block_ptr(x, (n,), (1,), (start,), (B,), (0,))
    for at in range(COUNT):
        value = tl.load(block, boundary_check=(0,))
        tl.store(out + at * B + tl.arange(0, B), value)
        tl.store(block, value + 1, boundary_check=(0,))
        block = tl.advance(block, (step,))


@triton.jit
def walk_rows(x, out, n, start, step, COUNT: tl.constexpr, B: tl.constexpr):
    block = tl.make_block_ptr(x, (2, n), (n, 1), (0, start), (2, B), (1, 0))
    turned = tl.make_block_ptr(x, (n, 2), (1, n), (start, 0), (B, 2), (0, 1))
    for at in range(COUNT):
        value = tl.load(block, boundary_check=(0, 1))
        tl.store(out + at * 2 * B + tl.arange(0, 2)[:, None] * B + tl.arange(0, B), value)
        tl.debug_barrier()
        tl.store(turned, tl.trans(value) + 1, boundary_check=(0, 1))
        block, turned = tl.advance(block, (0, step)), tl.advance(turned, (step, 0))


@pytest.mark.parametrize(("start", "step"), [(MOST - 4, 64), (MOST - 63, 64), (-5, 2**30)])
@pytest.mark.parametrize("count", [1, 4])
def test_rows_and_columns_of_block_pointers_pass_the_largest_i32(target: str, start: int, step: int, count: int):
    block = 64
    n = start + (count - 1) * step + block - 3
    try:
        x, out = np.zeros((2, n), np.int8), np.zeros((count, 2, block), np.int8)
    except MemoryError:
        pytest.skip("5 GB cannot be mapped here")
    blocks = start + np.arange(count)[:, None] * step + np.arange(block)
    is_inside = (blocks >= 0) & (blocks < n)
    x[:, blocks[is_inside]] = numbers = (blocks[is_inside] + np.array([[0], [3]])) % 101
    walk_rows[(1,)](x, out, n, start, step, COUNT=count, B=block, target=target)
    wanted = [(blocks + row) % 101 * is_inside for row in (0, 3)]
    np.testing.assert_array_equal(out, np.stack(wanted, 1))
    np.testing.assert_array_equal(x[:, blocks[is_inside]], numbers + 1)


@pytest.mark.parametrize(("start", "step"), [(MOST - 4, 64), (MOST - 63, 64), (-5, 2**30)])
def test_block_pointers_pass_the_largest_i32(target: str, start: int, step: int):
    """Zeros that nobody wrote take no memory."""
    count, block = 4, 64
    n = start + (count - 1) * step + block - 3
    try:
        x, out = np.zeros(n, np.int8), np.zeros((count, block), np.int8)
    except MemoryError:
        pytest.skip("3 GB cannot be mapped here")
    blocks = [np.arange(start + at * step, start + at * step + block) for at in range(count)]
    wanted = [np.where((block >= 0) & (block < n), block % 101, 0) for block in blocks]
    inside = np.concatenate([block[(block >= 0) & (block < n)] for block in blocks])
    x[inside] = inside % 101
    walk[(1,)](x, out, n, start, step, COUNT=count, B=block, target=target)
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(x[inside], inside % 101 + 1)


@triton.jit
def narrow_addresses(x, narrow, out, A: tl.constexpr, COUNT: tl.constexpr, B: tl.constexpr):
    """Addresses and masks of sums in the type that `narrow` points to."""
    i = tl.arange(0, B)
    first = tl.load(narrow)
    at = i.to(first.dtype) + first
    tl.store(out + i, tl.load(x + (at + A).to(tl.int32)))
    tl.store(out + B + i, i, mask=(at + A) < 7)
    tl.store(out + 2 * B + i, tl.load(x + i + (first + A).to(tl.int32)))
    for count in range(COUNT):
        tl.store(out + (3 + count) * B + i, tl.load(x + at.to(tl.int32)))
        at += A


@triton.jit
def narrow_stores(x, narrow, out, A: tl.constexpr, COUNT: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + (i.to(narrow.dtype.element_ty) + A).to(tl.int32), i)


NARROW = [("int8", 100, 101), ("int8", 0, 1), ("int8", -128, -1), ("int16", 32700, 100), ("uint8", 200, 101)]


@pytest.mark.parametrize(("kind", "first", "number"), NARROW)
def test_narrow_integers_wrap_in_addresses(target: str, kind: str, first: int, number: int):
    i, middle = np.arange(128), 1 << 15
    x, out = np.arange(3 * middle, dtype=np.int32), np.full((6, 128), -99, np.int32)
    narrow_addresses[(1,)](x[middle:], np.full(1, first, kind), out, A=number, COUNT=3, B=128, target=target)
    line = np.full(128, first + number).astype(kind).astype(np.int64)
    after = [(first + i + count * number).astype(kind).astype(np.int64) for count in range(3)]
    wanted = [middle + after[1], np.where(after[1] < 7, i, -99), middle + line + i, *(middle + each for each in after)]
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize(("kind", "first", "number"), NARROW)
def test_stores_to_addresses_of_narrow_integers(target: str, kind: str, first: int, number: int):
    middle = 1 << 15
    x = np.full(3 * middle, -99, np.int32)
    wanted = x.copy()
    narrow_stores[(1,)](x[middle:], np.zeros(1, kind), x, A=number, COUNT=0, B=128, target=target)
    wanted[middle + (np.arange(128) + number).astype(kind).astype(np.int64)] = np.arange(128)
    np.testing.assert_array_equal(x, wanted)
