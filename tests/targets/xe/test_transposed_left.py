"""Products whose left operand has to be put in order by moves of regions, emulated, against numpy.

A transposing load brings words of several rows; moves of regions (`xe/layouts/region_moves.py`) make rows of them, and
the matrix engine takes f16 and bf16 in another order of rows where that takes half as many.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from aligned_arrays import aligned
from mltriton.targets.xe import isa

pytestmark = pytest.mark.usefixtures("queue")
TARGET = "xe:pvc"
RNG = np.random.default_rng(11)
Array = np.ndarray[Any, Any]


@triton.jit
def product(a, b, c, bias, add, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = silu-like epilogue of a.T b: what follows the loop sees rows in the order of the products."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_tensor_descriptor(a, [K, M], [M, 1], [BK, BM])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    added = tl.make_tensor_descriptor(add, [M, N], [N, 1], [BM, BN])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    total = added.load([row, column]).to(tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([k, row]).T, right.load([k, column]), total)
    rows = row + tl.arange(0, BM)
    total += tl.load(bias + rows, mask=rows < M)[:, None] + tl.max(total, 1)[:, None]
    out.store([row, column], total.to(c.dtype.element_ty))


@triton.jit
def chained(a, b, d, c, M, K, BK: tl.constexpr):
    """c = (a.T b) d: the first result is an operand, so that its rows keep the natural order."""
    row = tl.program_id(0) * 32
    left = tl.make_tensor_descriptor(a, [K, M], [M, 1], [BK, 32])
    right = tl.make_tensor_descriptor(b, [K, 32], [32, 1], [BK, 32])
    last = tl.make_tensor_descriptor(d, [32, 32], [32, 1], [32, 32])
    out = tl.make_tensor_descriptor(c, [M, 32], [32, 1], [32, 32])
    total = tl.zeros((32, 32), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([k, row]).T, right.load([k, 0]), total)
    out.store([row, 0], tl.dot(total.to(tl.float16), last.load([0, 0])))


@triton.jit
def bytes_product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_tensor_descriptor(a, [K, M], [M, 1], [BK, BM])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    total = tl.zeros((BM, BN), tl.int32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([k, row]).T, right.load([k, column]), total, out_dtype=tl.int32)
    out.store([row, column], total)


def normal(shape: tuple[int, ...], dtype: Any) -> Array:
    return aligned(RNG.standard_normal(shape).astype(dtype))


FORMS = ["simt", "simd"]


def expected_product(a: Array, b: Array, add: Array, bias: Array) -> Array:
    """Columns outside of the matrix are zeros in the block of which rows have their maximum."""
    total = a.astype(np.float64).T @ b.astype(np.float64) + add
    return total + bias[:, None] + np.maximum(total.max(1), 0)[:, None]


@triton.jit
def few_rows(a, b, c, K, stride_a, stride_b, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """Warps have one row each: a transposing load would begin in the middle of a word for every other warp."""
    rows, columns, at = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BK):
        inside = k + at < K
        left = tl.load(a + rows + (k + at)[None, :] * stride_a, inside[None, :], other=0)
        right = tl.load(b + (k + at)[:, None] + columns * stride_b, inside[:, None], other=0)
        total = tl.dot(left, right, total)
    tl.store(c + rows * N + columns, total)


@pytest.mark.parametrize("warps", [1, 8, 16])
@pytest.mark.parametrize("rows", [2, 4])
def test_warps_that_meet_take_the_same_way(rows: int, warps: int):
    a, b = (aligned(RNG.integers(1, 4, shape).astype(np.float16)) for shape in ((80, rows), (16, 80)))
    c = np.zeros((rows, 16), np.float32)
    few_rows[(1,)](a, b, c, 80, rows, 80, M=rows, N=16, BK=32, num_warps=warps, target=TARGET)
    np.testing.assert_array_equal(c, (b.astype(np.float64) @ a.astype(np.float64)).T)


@pytest.mark.parametrize("codegen", FORMS)
def test_rows_come_back_in_order(codegen: str) -> None:
    """Through an addend, a number for each row, a maximum of each row, and a store; sizes that fill no block."""
    m, n, k = 72, 40, 56
    a, b, bias = normal((k, m), np.float16), normal((k, n), np.float16), normal((m,), np.float32)
    add, c = normal((m, n), np.float16), aligned(np.zeros((m, n), np.float32))
    blocks = {"BM": 32, "BN": 64, "BK": 32}
    kernel = product[(3, 1)](a, b, c, bias, add, m, n, k, **blocks, num_warps=2, target=TARGET, codegen=codegen)
    assert "rowBases = [2, 1, 4]" in kernel.asm["ttg"]
    np.testing.assert_allclose(c, expected_product(a, b, add, bias), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("codegen", FORMS)
def test_rows_of_bf16(codegen: str) -> None:
    torch = pytest.importorskip("torch")
    m, n, k = 40, 64, 48
    a, b = (torch.from_numpy(normal((k, size), np.float32)).bfloat16() for size in (m, n))
    bias, add, c = torch.randn(m), torch.randn(m, n).bfloat16(), torch.zeros(m, n).bfloat16()
    blocks = {"BM": 32, "BN": 64, "BK": 16}
    kernel = product[(2, 1)](a, b, c, bias, add, m, n, k, **blocks, num_warps=4, target=TARGET, codegen=codegen)
    assert "rowBases = [2, 1, 4]" in kernel.asm["ttg"]
    expected = expected_product(*(x.double().numpy() for x in (a, b, add, bias)))
    np.testing.assert_allclose(c.double().numpy(), expected, rtol=1e-2, atol=0.1)


@pytest.mark.parametrize("codegen", FORMS)
def test_a_result_that_is_an_operand_keeps_its_order(codegen: str) -> None:
    m, k = 56, 40
    a, b, d = normal((k, m), np.float16), normal((k, 32), np.float16), normal((32, 32), np.float16)
    c = aligned(np.zeros((m, 32), np.float32))
    kernel = chained[(2,)](a, b, d, c, m, k, 16, num_warps=2, target=TARGET, codegen=codegen)
    assert "packedRows = 2" in kernel.asm["ttg"]
    assert "rowBases" not in kernel.asm["ttg"]
    expected = (a.astype(np.float64).T @ b.astype(np.float64)).astype(np.float16).astype(np.float64) @ d
    np.testing.assert_allclose(c, expected, rtol=1e-2, atol=0.1)


@pytest.mark.parametrize("codegen", FORMS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_bytes(dtype: Any, codegen: str) -> None:
    """Rows of 32 bytes out of words of four rows."""
    m, n, k = 80, 48, 72
    low, high = (-128, 128) if dtype is np.int8 else (0, 256)
    a, b = (aligned(RNG.integers(low, high, shape).astype(dtype)) for shape in ((k, m), (k, n)))
    c = aligned(np.zeros((m, n), np.int32))
    blocks = {"BM": 32, "BN": 32, "BK": 32}
    kernel = bytes_product[(3, 2)](a, b, c, m, n, k, **blocks, num_warps=1, target=TARGET, codegen=codegen)
    assert "packedRows = 4" in kernel.asm["ttg"]
    np.testing.assert_array_equal(c, a.astype(np.int64).T @ b.astype(np.int64))


@triton.jit
def bytes_of_results(a, b, d, c, M, K, BM: tl.constexpr, BK: tl.constexpr):
    """c = the sum over steps of K of ((a b) >> 7) d: what a product gives is an operand of the next, as bytes."""
    row = tl.program_id(0) * BM
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [K, 64], [64, 1], [BK, 64])
    last = tl.make_tensor_descriptor(d, [64, 64], [64, 1], [64, 64])
    out = tl.make_tensor_descriptor(c, [M, 64], [64, 1], [BM, 64])
    factor = last.load([0, 0])
    total = tl.zeros((BM, 64), tl.int32)
    for k in range(0, K, BK):
        step = tl.dot(left.load([row, k]), right.load([k, 0]), out_dtype=tl.int32)
        total = tl.dot((step >> 7).to(tl.int8), factor, total, out_dtype=tl.int32)
    out.store([row, 0], total)


@pytest.mark.parametrize("codegen", FORMS)
def test_bytes_of_results(codegen: str) -> None:
    """Columns of results, one in each lane, become rows of bytes, two in each lane."""
    m, k = 48, 96
    a, b, d = (aligned(RNG.integers(-128, 128, shape).astype(np.int8)) for shape in ((m, k), (k, 64), (64, 64)))
    c = aligned(np.zeros((m, 64), np.int32))
    kernel = bytes_of_results[(2,)](a, b, d, c, m, k, 32, 32, num_warps=2, target=TARGET, codegen=codegen)
    assert ("region_moves." in kernel.asm["llvm"]) == (codegen == "simt")
    expected = np.zeros((m, 64), np.int64)
    for start in range(0, k, 32):
        step = a[:, start : start + 32].astype(np.int64) @ b[start : start + 32]
        expected += (step >> 7).astype(np.int8).astype(np.int64) @ d
    np.testing.assert_array_equal(c, expected)


@pytest.mark.usefixtures("needs_ocloc")
def test_bytes_of_results_take_few_instructions() -> None:
    """A move for 16 bytes; lanes that exchange them would take four times as many instructions."""
    a, b, d = (np.zeros(shape, np.int8) for shape in ((1024, 1024), (1024, 64), (64, 64)))
    c = np.zeros((1024, 64), np.int32)
    kernel = bytes_of_results.warmup(a, b, d, c, 1024, 1024, 128, 32, grid=(8,), num_warps=8, target=TARGET)
    assert kernel.n_spills == 0
    [loop] = [found.instructions for found in isa.innermost_loops(kernel.asm["isa"])]
    assert loop.operations["dpas"] == 24
    assert loop.total <= 265
