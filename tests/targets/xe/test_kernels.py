"""Kernels of the language run for Xe, emulated on the CPU, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from aligned_arrays import aligned
from mltriton.ir.parser import parse_module
from mltriton.targets.target import find_target
from on_target import run_on
from processors import ROUGH_POWERS

from .block_pointer_kernels import multiply

pytestmark = pytest.mark.usefixtures("queue")
TARGET = "xe:pvc"
RNG = np.random.default_rng(3)
POWER_ERROR = 1e-4 if ROUGH_POWERS else 2e-6  # relative, of f32
Array = np.ndarray[Any, Any]


def numbers(*shape: int, dtype: Any = np.float32) -> Array:
    return RNG.standard_normal(shape).astype(dtype)


@triton.jit
def add(a, b, c, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(c + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64, np.float64])
@pytest.mark.parametrize("warps", [1, 4])
def test_masked_loads_and_stores(dtype: Any, warps: int) -> None:
    a, b = (RNG.integers(-50, 50, 1003).astype(dtype) for _ in range(2))
    c = np.full(1010, 77, dtype)
    add[(4,)](a, b, c, 1003, 256, target=TARGET, num_warps=warps)
    assert (c[:1003] == a + b).all()
    assert (c[1003:] == 77).all()


@triton.jit
def up_to(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at <= n, other=7), mask=n >= at - 1)


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
@pytest.mark.parametrize("n", [-1, 0, 48, 51, 127])
def test_masked_up_to_a_bound(dtype: Any, n: int) -> None:
    x, y = RNG.integers(-50, 50, 128).astype(dtype), np.full(128, 77, dtype)
    up_to[(1,)](x, y, n, 128, target=TARGET, num_warps=1)
    at = np.arange(128)
    np.testing.assert_array_equal(y, np.where(at <= n, x, np.where(at - 1 <= n, 7, 77)))


@triton.jit
def permuted(x, y, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    v = tl.load(x + a[:, None, None] * (B * C) + b[None, :, None] * C + c[None, None, :])
    tl.store(y + c[:, None, None] * (A * B) + a[None, :, None] * B + b[None, None, :], tl.permute(v, (2, 0, 1)))


@pytest.mark.parametrize("warps", [1, 4])
def test_permutations(warps: int) -> None:
    x, y = numbers(4, 8, 16), np.zeros((16, 4, 8), np.float32)
    permuted[(1,)](x, y, 4, 8, 16, target=TARGET, num_warps=warps)
    np.testing.assert_array_equal(y, x.transpose(2, 0, 1))


@triton.jit
def hyperbolic(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.math.tanh(tl.load(x + at)))


def test_tanh() -> None:
    x = np.linspace(-12, 12, 2048, dtype=np.float32)
    x[:8] = 0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-5, 100
    y = np.zeros_like(x)
    hyperbolic[(2,)](x, y, 1024, target=TARGET)
    np.testing.assert_allclose(y, np.tanh(x.astype(np.float64)), rtol=POWER_ERROR / 2, atol=0)


@triton.jit
def powers(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y + at, tl.exp2(tl.load(x + at)))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-15), (np.float32, POWER_ERROR)])
def test_powers_of_two(dtype: Any, tolerance: float) -> None:
    """Those of f32 are the instruction's."""
    x, y = RNG.uniform(-14, 14, 256).astype(dtype), np.zeros(256, dtype)
    powers[(1,)](x, y, 256, target=TARGET)
    np.testing.assert_allclose(y, np.exp2(x.astype(np.float64)), rtol=tolerance)


@triton.jit
def layer_norm(x, y, scale, shift, n, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + row * n + at, mask=inside, other=0.0)
    mean = tl.sum(value, 0) / n
    centred = tl.where(inside, value - mean, 0.0)
    variance = tl.sum(centred * centred, 0) / n
    made = centred / tl.sqrt(variance + eps) * tl.load(scale + at, mask=inside) + tl.load(shift + at, mask=inside)
    tl.store(y + row * n + at, made, mask=inside)


@pytest.mark.parametrize("warps", [1, 4])
def test_layer_norm(warps: int) -> None:
    x, y = numbers(5, 777), np.zeros((5, 777), np.float32)
    scale, shift = numbers(777), numbers(777)
    layer_norm[(5,)](x, y, scale, shift, 777, 1e-5, 1024, target=TARGET, num_warps=warps)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * scale + shift
    np.testing.assert_allclose(y, expected, atol=4e-6)


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * n + at, power / tl.sum(power, 0), mask=at < n)


@pytest.mark.parametrize("warps", [1, 4])
def test_softmax(warps: int) -> None:
    x, y = numbers(7, 1000), np.zeros((7, 1000), np.float32)
    softmax[(7,)](x, y, 1000, 1024, target=TARGET, num_warps=warps)
    power = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, power / power.sum(1, keepdims=True), rtol=2e-6)


@triton.jit
def both_ways(x, largest, total, best, turned, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    value = tl.load(x + row[:, None] * COLUMNS + column[None, :])
    tl.store(largest + row, tl.max(value, 1))
    tl.store(total + column, tl.sum(value, 0))
    tl.store(best + row, tl.argmax(value, 1))
    tl.store(turned + column[:, None] * ROWS + row[None, :], tl.trans(value))


@pytest.mark.parametrize(("rows", "columns", "warps"), [(32, 64, 1), (32, 64, 4), (64, 16, 2)])
def test_reductions_on_both_axes_and_a_transposition(rows: int, columns: int, warps: int) -> None:
    x = numbers(rows, columns)
    largest, total = np.zeros(rows, np.float32), np.zeros(columns, np.float32)
    best, turned = np.zeros(rows, np.int32), np.zeros((columns, rows), np.float32)
    both_ways[(1,)](x, largest, total, best, turned, rows, columns, target=TARGET, num_warps=warps)
    assert (largest == x.max(1)).all()
    np.testing.assert_allclose(total, x.sum(0, dtype=np.float64), atol=1e-5)
    assert (best == x.argmax(1)).all()
    assert (turned == x.T).all()


@triton.jit
def running(x, y, z, N: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at)
    tl.store(y + at, tl.cumsum(value, 0))
    tl.store(z + at, tl.cumsum(value, 0, reverse=True))


@pytest.mark.parametrize("warps", [1, 4])
def test_scans_in_both_directions(warps: int) -> None:
    x, y, z = numbers(512), np.zeros(512, np.float32), np.zeros(512, np.float32)
    running[(1,)](x, y, z, 512, target=TARGET, num_warps=warps)
    np.testing.assert_allclose(y, np.cumsum(x.astype(np.float64)), atol=5e-5)
    np.testing.assert_allclose(z, np.cumsum(x[::-1].astype(np.float64))[::-1], atol=5e-5)


@triton.jit
def chosen(x, which, y, z, N: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at)
    tl.store(y + at, tl.gather(value, tl.load(which + at), 0))
    tl.store(z + at, tl.sort(value))


@pytest.mark.parametrize("warps", [1, 4])
def test_gathers_and_sorts(warps: int) -> None:
    x, which = numbers(128), RNG.integers(0, 128, 128).astype(np.int32)
    y, z = np.zeros(128, np.float32), np.zeros(128, np.float32)
    chosen[(1,)](x, which, y, z, 128, target=TARGET, num_warps=warps)
    assert (y == x[which]).all()
    assert (z == np.sort(x)).all()


@triton.jit
def counts(x, bins, total, largest, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside, other=0)
    tl.atomic_add(bins + value, 1, mask=inside)
    tl.atomic_add(total, tl.sum(value.to(tl.float32), 0))
    tl.atomic_max(largest + at % 8, value.to(tl.float32), mask=inside)


@pytest.mark.parametrize("warps", [1, 4])
def test_atomics(warps: int) -> None:
    x = RNG.integers(0, 37, 1003).astype(np.int32)
    bins, total, largest = np.zeros(37, np.int32), np.zeros(1, np.float32), np.zeros(8, np.float32)
    counts[(4,)](x, bins, total, largest, 1003, 256, target=TARGET, num_warps=warps)
    assert (bins == np.bincount(x, minlength=37)).all()
    assert total[0] == x.sum()
    assert (largest == [x[lane::8].max() for lane in range(8)]).all()


@pytest.mark.parametrize("place", [aligned, lambda array: aligned(np.append(array, array[:1]))[1:]])
@pytest.mark.parametrize("size", [(128, 64, 64), (100, 208, 80), (33, 70, 40)])
def test_products_through_block_pointers(size: tuple[int, int, int], place: Callable[[Array], Array]) -> None:
    """Within the limits of block accesses, ragged, with a pitch that the hardware does not take, at odd addresses."""
    m, n, k = size
    a, b = (place(numbers(*shape, dtype=np.float16).ravel()).reshape(shape) for shape in ((m, k), (k, n)))
    c = aligned(np.full((m, n), np.nan, np.float32))
    multiply[(-(-m // 64), -(-n // 64))](a, b, c, m, n, k, 64, 64, 32, target=TARGET)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)


@triton.jit
def multiply_strided(a, b, c, M, N, K, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        left_at, right_at = row[:, None] * sam + inner[None, :] * sak, inner[:, None] * sbk + column[None, :] * sbn
        left = tl.load(a + left_at, mask=(row[:, None] < M) & (inner[None, :] < K), other=0.0)
        right = tl.load(b + right_at, mask=(inner[:, None] < K) & (column[None, :] < N), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + row[:, None] * N + column[None, :], total, mask=(row[:, None] < M) & (column[None, :] < N))


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)])
def test_products_through_blocks_of_pointers(turned: tuple[bool, bool]) -> None:
    a, b = numbers(50, 100, dtype=np.float16), numbers(100, 70, dtype=np.float16)
    left, right = (np.ascontiguousarray(x.T).T if turn else x for x, turn in zip((a, b), turned, strict=True))
    strides = [stride // 2 for x in (left, right) for stride in x.strides]
    c = np.zeros((50, 70), np.float32)
    multiply_strided[(2, 3)](
        *(x.base if x.base is not None else x for x in (left, right)),
        c,
        50,
        70,
        100,
        *strides,
        32,
        32,
        32,
        target=TARGET,
    )
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)


@triton.jit
def multiply_described(a, b, c, M, N, K, WHOLE: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [32, 32])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [32, 32])
    there = tl.make_tensor_descriptor(c, [M, N], [N, 1], [32, 32])
    row, column = tl.program_id(0) * 32, tl.program_id(1) * 32
    total = tl.zeros((32, 32), tl.int32 if WHOLE else tl.float32)
    for start in range(0, K, 32):
        total = tl.dot(left.load([row, start]), right.load([start, column]), total)
    there.store([row, column], total)


def test_products_of_int8() -> None:
    a, b = (aligned(RNG.integers(-128, 127, shape).astype(np.int8)) for shape in ((96, 64), (64, 128)))
    c = aligned(np.zeros((96, 128), np.int32))
    multiply_described[(3, 4)](a, b, c, 96, 128, 64, True, target=TARGET)
    assert (c == a.astype(np.int32) @ b.astype(np.int32)).all()


@triton.jit
def attend(q, k, v, o, n, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    block = tl.program_id(0)
    queries = tl.make_block_ptr(q, (n, D), (D, 1), (block * BM, 0), (BM, D), (1, 0))
    keys = tl.make_block_ptr(k, (D, n), (1, D), (0, 0), (D, BN), (0, 1))
    values = tl.make_block_ptr(v, (n, D), (D, 1), (0, 0), (BN, D), (1, 0))
    there = tl.make_block_ptr(o, (n, D), (D, 1), (block * BM, 0), (BM, D), (1, 0))
    query = tl.load(queries, boundary_check=(0,))
    row = block * BM + tl.arange(0, BM)
    largest = tl.full((BM,), -float("inf"), tl.float32)
    weight, total = tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    for start in range(0, (block + 1) * BM if CAUSAL else n, BN):
        score = tl.dot(query, tl.load(keys, boundary_check=(1,))) * (scale * 1.44269504)
        column = start + tl.arange(0, BN)
        score = tl.where(column[None, :] < n, score, -1e30)
        if CAUSAL:
            score = tl.where(row[:, None] >= column[None, :], score, -1e30)
        raised = tl.maximum(largest, tl.max(score, 1))
        power, shrink = tl.exp2(score - raised[:, None]), tl.exp2(largest - raised)
        weight = weight * shrink + tl.sum(power, 1)
        value = tl.load(values, boundary_check=(0,))
        total = tl.dot(power.to(value.dtype), value, total * shrink[:, None])
        largest = raised
        keys, values = tl.advance(keys, (0, BN)), tl.advance(values, (BN, 0))
    tl.store(there, (total / weight[:, None]).to(query.dtype), boundary_check=(0,))


@pytest.mark.parametrize(("n", "causal"), [(128, False), (100, False), (128, True)])
def test_attention(n: int, causal: bool) -> None:
    q, k, v = (aligned(numbers(n, 64, dtype=np.float16)) for _ in range(3))
    o = aligned(np.zeros((n, 64), np.float16))
    attend[(-(-n // 64),)](q, k, v, o, n, 0.125, 64, 64, 32, causal, target=TARGET)
    score = q.astype(np.float64) @ k.astype(np.float64).T * 0.125
    if causal:
        score = np.where(np.tril(np.ones((n, n), bool)), score, -np.inf)
    power = np.exp(score - score.max(1, keepdims=True))
    expected = power / power.sum(1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(o, expected, atol=3e-3)


PROGRAM = """module {
  tt.func public @scaled(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %by: f32, %n: i32) {
    %at = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %end = tt.splat %n : i32 -> tensor<64xi32>
    %inside = arith.cmpi slt, %at, %end : tensor<64xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %from = tt.addptr %xs, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %to = tt.addptr %ys, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %value = tt.load %from, %inside : tensor<64x!tt.ptr<f32>>
    %factor = tt.splat %by : f32 -> tensor<64xf32>
    %made = arith.mulf %value, %factor : tensor<64xf32>
    tt.store %to, %made, %inside : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}"""


@pytest.mark.parametrize("codegen", [None, "simd"])
def test_programs_of_the_executor_run_here_too(codegen: str | None) -> None:
    """What `pytest --target` does with the tests of the language."""
    x, y = numbers(64), np.zeros(64, np.float32)
    run_on(find_target(TARGET), parse_module(PROGRAM), [x, y, 1.5, 50], (1,), 2, codegen)
    np.testing.assert_array_equal(y, np.where(np.arange(64) < 50, x * np.float32(1.5), 0))
