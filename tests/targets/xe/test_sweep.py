"""What a stranger tries first on Xe, emulated: sharp cases in every run, and under `slow` a sweep over kernels, dtypes,
strides, warps and devices. What numpy has no short word for is compared with the CPU target.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.epilogues import silu
from mltriton.kernels.fused_gemm import fused_matmul_launch
from mltriton.kernels.gemm import matmul_launch
from mltriton.kernels.gemm_tiles import Tile
from mltriton.kernels.launch import Launch
from mltriton.kernels.normalization import layer_norm_launch, softmax_launch
from mltriton.kernels.products import product_of
from mltriton.kernels.split_k import split_k_launches
from mltriton.kernels.stream_k import stream_k_launches

pytestmark = pytest.mark.usefixtures("queue")
TARGET = "xe:pvc"
TARGETS = ("xe:pvc", "xe:bmg", "xe:lnl", "xe:ptl")
RNG = np.random.default_rng(23)
Array = np.ndarray[Any, Any]


def placed(array: Array, start: int = 0, turned: bool = False) -> Array:
    """A copy that begins `start` elements behind an address for block accesses; `turned`: its columns lie together."""
    source = array.swapaxes(-1, -2) if turned else array
    memory = np.zeros(array.size + start + 64, array.dtype)
    first = -memory.ctypes.data % 64 // array.itemsize + start
    made = memory[first : first + array.size].reshape(source.shape)
    made[...] = source
    return made.swapaxes(-1, -2) if turned else made


def whole_numbers(*shape: int, dtype: Any = np.float32, low: int = -9, high: int = 10) -> Array:
    return RNG.integers(low, high, shape).astype(dtype)


def as_on_the_cpu(
    kernel: Any, grid: tuple[int, ...], arguments: tuple[Any, ...], *, rtol: float = 0.0, **options: Any
) -> None:
    """Run on the CPU and on Xe; all arrays must hold the same."""
    held = [[x.copy() if isinstance(x, np.ndarray) else x for x in arguments] for _ in range(2)]
    target = options.pop("target", TARGET)
    kernel[grid](*held[0], **options, target="cpu")
    kernel[grid](*held[1], **options, target=target)
    for expected, found in zip(*held, strict=True):
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


@triton.jit
def negated(x, y, largest, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    first, second, third = tl.exp(-value), tl.abs(value * -1.0), tl.exp(value / -1.0)
    tl.store(largest, tl.max(value, 0))  # warps meet here
    tl.store(y + at, first)
    tl.store(y + n + at, second)
    tl.store(y + 2 * n + at, third)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_computed_of_negated_numbers_outlives_barriers(dtype: Any) -> None:
    x, y, largest = RNG.standard_normal(64).astype(dtype), np.zeros((3, 64), dtype), np.zeros(1, dtype)
    negated[(1,)](x, y, largest, 64, 64, target=TARGET, num_warps=4)
    np.testing.assert_allclose(y, [np.exp(-x), np.abs(x), np.exp(-x)], rtol=1e-6)
    assert largest[0] == x.max()


@triton.jit
def doubled(x, y, n, m, sxn, sxm, syn, sym, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < n) & (column < m)
    value = tl.load(x + row * sxn + column * sxm, mask=inside)
    tl.store(y + row * syn + column * sym, value * 2, mask=inside)


def test_any_strides() -> None:
    """Turned, every other row, backwards, one row for all, and into a part of an array, the rest of which stays."""
    base = whole_numbers(50, 120, dtype=np.float16)
    one_row = np.broadcast_to(base[:1], (40, 120))
    for x in (base, base.T, base[:, 1:27], base[::-1, ::-3], base[1::2, 5:40:2], one_row, base[:, :1], base[:1]):
        whole = np.full((x.shape[1] + 1, x.shape[0] + 3), 7, np.float16)
        y = whole[1:, 3:].T
        strides = [stride // 2 for array in (x, y) for stride in array.strides]
        doubled[(-(-x.shape[0] // 16), -(-x.shape[1] // 32))](
            x, y, *x.shape, *strides, ROWS=16, COLUMNS=32, target=TARGET, num_warps=2
        )
        np.testing.assert_array_equal(y, x * 2)
        assert (whole[0] == 7).all()
        assert (whole[:, :3] == 7).all()


@triton.jit
def successor(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_arrays_that_overlap(dtype: Any) -> None:
    """In place at an odd address, two halves of one array, and one element further, read before it is written."""
    x = np.arange(100).astype(dtype)
    successor[(2,)](x[3:], x[3:], 90, BLOCK=64, target=TARGET)
    np.testing.assert_array_equal(x, [i + (3 <= i < 93) for i in range(100)])
    successor[(1,)](x[:50], x[50:], 50, BLOCK=64, target=TARGET)
    np.testing.assert_array_equal(x[50:], x[:50] + 1)
    before = x.copy()
    successor[(1,)](x[1:65], x[:64], 64, BLOCK=64, target=TARGET, num_warps=1)
    np.testing.assert_array_equal(x[:64], before[1:65] + 1)


@triton.jit
def turn(x, y, n, m, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    first = tl.program_id(0) * ROWS
    here = tl.make_block_ptr(x, (n, m), (m, 1), (first, 0), (ROWS, COLUMNS), (1, 0))
    there = tl.make_block_ptr(y, (m, n), (n, 1), (0, first), (COLUMNS, ROWS), (1, 0))
    for _ in range(0, m, COLUMNS):
        tl.store(there, tl.trans(tl.load(here, boundary_check=(0, 1))), boundary_check=(0, 1))
        here, there = tl.advance(here, (0, COLUMNS)), tl.advance(there, (COLUMNS, 0))


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_blocks_of_matrices_with_any_pitch(dtype: Any) -> None:
    """Rows of 26 and 100 elements, one element behind an aligned address, and what the hardware takes."""
    for n, m, start in ((33, 26, 0), (17, 64, 0), (40, 96, 1), (5, 100, 0)):
        x, y = placed(whole_numbers(n, m, dtype=dtype), start), np.zeros((m, n), dtype)
        turn[(-(-n // 16),)](x, y, n, m, 16, 32, target=TARGET, num_warps=2)
        np.testing.assert_array_equal(y, x.T)


@triton.jit
def scaled(x, factors, y, n, m, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.make_block_ptr(factors, (n,), (1,), (0,), (ROWS,), (0,))
    columns = tl.make_tensor_descriptor(factors, [m], [1], [COLUMNS])
    here = tl.make_block_ptr(x, (n, m), (m, 1), (0, 0), (ROWS, COLUMNS), (1, 0))
    factor = tl.load(rows, boundary_check=(0,))[:, None] * columns.load([0])[None, :]
    there = tl.make_block_ptr(y, (n, m), (m, 1), (0, 0), (ROWS, COLUMNS), (1, 0))
    tl.store(there, tl.load(here, boundary_check=(0, 1)) * factor, boundary_check=(0, 1))


@pytest.mark.parametrize("codegen", ["simt", "simd"])
def test_block_pointers_to_vectors(codegen: str) -> None:
    x, factors, y = placed(whole_numbers(13, 40)), whole_numbers(40), placed(np.zeros((13, 40), np.float32))
    scaled[(1,)](x, factors, y, 13, 40, 16, 64, target=TARGET, num_warps=2, codegen=codegen)
    np.testing.assert_array_equal(y, x * factors[:13, None] * factors)


@triton.jit
def composed(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def reductions(x, y, z, w, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i, j, k = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    value = tl.load(x + i[:, None, None] * B * C + j[None, :, None] * C + k[None, None, :])
    tl.store(y + i[:, None] * C + k[None, :], tl.sum(value, 1))
    at = j[:, None] * C + k[None, :]
    flat = tl.max(value, 0)
    _, composition = tl.associative_scan((flat * 0 + 1, flat), 1, composed)
    tl.store(z + at, composition)
    tl.store(w + at, tl.cumsum(flat, 0, reverse=True))


@pytest.mark.parametrize("warps", [2, 8])
def test_reductions_and_scans_across_warps(warps: int) -> None:
    x = whole_numbers(4, 8, 32)
    y, z, w = np.zeros((4, 32), np.float32), np.zeros((8, 32), np.float32), np.zeros((8, 32), np.float32)
    reductions[(1,)](x, y, z, w, 4, 8, 32, target=TARGET, num_warps=warps)
    np.testing.assert_array_equal(y, x.sum(1))
    np.testing.assert_array_equal(z, x.max(0).cumsum(1))
    np.testing.assert_array_equal(w, x.max(0)[::-1].cumsum(0)[::-1])


@triton.jit
def locked(lock, total, x):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + tl.load(x + tl.program_id(0)))
    tl.atomic_xchg(lock, 0)


def test_programs_that_take_turns() -> None:
    x, total = whole_numbers(20), np.zeros(1, np.float32)
    locked[(20,)](np.zeros(1, np.int32), total, x, target=TARGET, num_warps=1)
    assert total[0] == x.sum()


@triton.jit
def integers(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a, b = tl.load(x + at, mask=inside, other=1), tl.load(y + at, mask=inside, other=1)
    shift = b & 7
    tl.store(z + at, (a + b) * a, mask=inside)
    tl.store(z + n + at, a // b, mask=inside)
    tl.store(z + 2 * n + at, a % b, mask=inside)
    tl.store(z + 3 * n + at, (a << shift) ^ (b >> shift) | ~a, mask=inside)
    tl.store(z + 4 * n + at, tl.where(a < b, tl.maximum(a, b) - tl.minimum(a, b), tl.abs(a)), mask=inside)


@pytest.mark.parametrize("dtype", [np.int16, np.uint64])
def test_integers_wrap_and_divide_as_on_the_cpu(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    x, y = (RNG.integers(limits.min, limits.max, 501, dtype=dtype, endpoint=True) for _ in range(2))
    x[:3], y[:3] = (limits.min, limits.max, 0), (3, limits.max, 1)
    y[(y == 0) | (y == limits.max + 1 - limits.min - 1)] = 5
    y[3:][y[3:] == dtype(limits.min)] = 5
    as_on_the_cpu(integers, (2,), (x, y, np.zeros(5 * 501, dtype), 501), BLOCK=256)


# The sweep.


def multiply(launches: tuple[Launch, ...], target: str, warps: int) -> None:
    for launch in launches:
        launch.on(target, warps).run()


TILES = {1: Tile(16, 16, 16, 2), 4: Tile(32, 32, 16, 2), 8: Tile(32, 32, 32, 1), 32: Tile(64, 64, 32, 2)}
OUT = {np.float16: np.float16, np.float32: np.float32, np.int8: np.int32}


@pytest.mark.slow
@pytest.mark.parametrize("turned", list(product([False, True], repeat=2)), ids=str)
@pytest.mark.parametrize("dtype", list(OUT))
@pytest.mark.parametrize("form", ["auto", "pointer"])
def test_products(form: Any, dtype: Any, turned: tuple[bool, bool]) -> None:
    """Ragged, in batches, at odd addresses, with rows of 26 elements; the device and the warps change with the case."""
    case = 4 * list(OUT).index(dtype) + 2 * turned[0] + turned[1] + (form == "auto")
    warps = list(TILES)[case % 4]
    for batch, m, n, k, start in ((2, 33, 70, 40, 0), (1, 35, 26, 19, 1)):
        a = placed(whole_numbers(batch, m, k, dtype=dtype, low=-4, high=5), start, turned[0])
        b = placed(whole_numbers(batch, k, n, dtype=dtype, low=-4, high=5), start, turned[1])
        c = np.full((batch, m, n), 77, OUT[dtype])
        multiply((matmul_launch(a, b, c, form, TILES[warps]),), TARGETS[case % 4], warps)
        np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fused", "split-K", "stream-K"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_products_with_something_around(dtype: Any, kind: str) -> None:
    for turned, (batch, m, n, k) in ((False, (1, 40, 70, 100)), (True, (2, 33, 48, 96))):
        a, b = (placed(RNG.uniform(-1, 1, shape).astype(dtype), 0, turned) for shape in ((batch, m, k), (batch, k, n)))
        bias, add = RNG.uniform(-1, 1, n).astype(dtype), RNG.uniform(-1, 1, (batch, 1, n)).astype(dtype)
        whole = product_of(a, b, bias=bias, add=add, activation=silu, prologue="relu", out_dtype="float32")
        tile, around = Tile(32, 32, 16, 2), whole.prologue
        if kind == "fused":
            launches = (fused_matmul_launch(*whole.operands, around, tile),)
        elif kind == "split-K":
            launches = split_k_launches(*whole.operands, 3, around, tile)
        else:
            launches = stream_k_launches(*whole.operands, 5, around, tile)
        multiply(launches, "xe:bmg", 4)
        wide = np.maximum(a, 0).astype(float) @ b.astype(float) + bias.astype(float) + add.astype(float)
        np.testing.assert_allclose(whole.c, wide / (1 + np.exp(-wide)), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("warps", [1, 8, 32])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows(dtype: Any, warps: int) -> None:
    """One column, an odd number, rows longer than a block, at an odd address."""
    for columns, longest in ((1, 4096), (77, 4096), (1000, 4096), (77, 1)):
        x = RNG.standard_normal((5, 2 * columns)).astype(dtype)[:, 1 : columns + 1]
        weight, bias = RNG.standard_normal((2, columns)).astype(dtype)
        wide = x.astype(float)
        power = np.exp(wide - wide.max(1, keepdims=True))
        centred = wide - wide.mean(1, keepdims=True)
        norm = centred / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * weight + bias
        tolerance = {np.float16: 4e-3, np.float32: 2e-5, np.float64: 1e-11}[dtype]
        y, z = np.zeros((2, 5, columns), dtype)
        softmax_launch(x, y, longest, 32).on("xe:lnl", warps).run()
        np.testing.assert_allclose(y, power / power.sum(1, keepdims=True), rtol=tolerance, atol=tolerance / 10)
        layer_norm_launch(x, weight, bias, z, 1e-5, longest, 32).on("xe:ptl", warps).run()
        np.testing.assert_allclose(z, norm, rtol=tolerance, atol=tolerance)


@triton.jit
def shaped(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    cube = tl.permute(tl.reshape(value, (BLOCK // 16, 4, 4)), (2, 0, 1))
    tl.store(y + at, tl.reshape(cube, (BLOCK,)))
    even, odd = tl.split(tl.reshape(value, (BLOCK // 2, 2)))
    tl.store(y + n + at, tl.interleave(odd, even - odd))
    tl.store(y + 2 * n + at, tl.ravel(tl.join(odd, even)))
    tl.store(y + 3 * n + at, tl.flip(value))
    tl.store(y + 4 * n + at, tl.sort(value, descending=True))


@pytest.mark.slow
@pytest.mark.parametrize("codegen", ["simt", "simd"])
@pytest.mark.parametrize(("size", "dtype", "warps"), [(64, np.float32, 1), (256, np.int32, 4), (128, np.int64, 2)])
def test_shapes(size: int, dtype: Any, warps: int, codegen: str) -> None:
    x, y = whole_numbers(size, dtype=dtype), np.zeros(5 * size, dtype)
    shaped[(1,)](x, y, size, BLOCK=size, target=TARGET, num_warps=warps, codegen=codegen)
    pairs = x.reshape(-1, 2)
    even, odd = pairs[:, 0], pairs[:, 1]
    expected = [x.reshape(-1, 4, 4).transpose(2, 0, 1), np.stack([odd, even - odd], 1), pairs[:, ::-1], x[::-1]]
    np.testing.assert_array_equal(y, np.concatenate([*(e.ravel() for e in expected), np.sort(x)[::-1]]))


@triton.jit
def formulas(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside, other=1.0)
    size = tl.abs(value)
    tl.store(y + at, tl.exp(value) + tl.exp2(value), mask=inside)
    tl.store(y + n + at, tl.log(size + 0.1) + tl.log2(size + 0.1), mask=inside)
    tl.store(y + 2 * n + at, tl.sin(value) * tl.cos(value), mask=inside)
    tl.store(y + 3 * n + at, tl.sqrt(size) + tl.rsqrt(size + 0.5), mask=inside)
    tl.store(y + 4 * n + at, tl.erf(value) + tl.sigmoid(value), mask=inside)
    tl.store(y + 5 * n + at, tl.floor(value) - tl.ceil(value * 2), mask=inside)
    tl.store(y + 6 * n + at, tl.clamp(tl.fma(value, value, -1.5), -1.0, 3.0) / (value + 7), mask=inside)


@pytest.mark.slow
@pytest.mark.parametrize("codegen", ["simt", "simd"])
def test_formulas(codegen: str) -> None:
    x = np.concatenate([RNG.uniform(-5, 5, 995), [0.0, -0.0, 1e-30, 0.5, -4.5]]).astype(np.float32)
    y = np.zeros((7, 1000), np.float32)
    formulas[(4,)](x, y, 1000, BLOCK=256, target="xe:bmg", num_warps=2, codegen=codegen)
    wide = x.astype(float)
    size, erf = np.abs(wide), np.vectorize(__import__("math").erf)
    expected = [
        np.exp(wide) + np.exp2(wide),
        np.log(size + 0.1) + np.log2(size + 0.1),
        np.sin(wide) * np.cos(wide),
        np.sqrt(size) + 1 / np.sqrt(size + 0.5),
        erf(wide) + 1 / (1 + np.exp(-wide)),
        np.floor(wide) - np.ceil(wide * 2),
        np.clip(wide * wide - 1.5, -1, 3) / (wide + 7),
    ]
    np.testing.assert_allclose(y, expected, rtol=4e-6, atol=4e-6)
