"""Blocks of rank 3 and more in memory, on Xe by 2D block messages and on the CPU: every leading index is checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from aligned_arrays import aligned
from mltriton.compiler import CompiledKernel

pytestmark = pytest.mark.usefixtures("queue")
RNG = np.random.default_rng(17)
FORMS = {"cpu": {"target": "cpu"}, "simt": {"target": "xe:pvc"}, "simd": {"target": "xe:pvc", "codegen": "simd"}}
Array = np.ndarray[Any, Any]


@triton.jit
def batched(a, b, c, B, M, N, K, BB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Products of several matrices at once."""
    row, column, z = tl.program_id(0) * BM, tl.program_id(1) * BN, tl.program_id(2) * BB
    left = tl.make_tensor_descriptor(a, [B, M, K], [M * K, K, 1], [BB, BM, BK])
    right = tl.make_tensor_descriptor(b, [B, K, N], [K * N, N, 1], [BB, BK, BN])
    out = tl.make_tensor_descriptor(c, [B, M, N], [M * N, N, 1], [BB, BM, BN])
    total = tl.zeros((BB, BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([z, row, k]), right.load([z, k, column]), total)
    out.store([z, row, column], total.to(c.dtype.element_ty))


@triton.jit
def turned(a, b, c, B, M, N, K, BB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The same through block pointers, where columns of the right operand lie next to each other."""
    row, column, z = tl.program_id(0) * BM, tl.program_id(1) * BN, tl.program_id(2) * BB
    left = tl.make_block_ptr(a, [B, M, K], [M * K, K, 1], [z, row, 0], [BB, BM, BK], [2, 1, 0])
    right = tl.make_block_ptr(b, [B, K, N], [K * N, 1, K], [z, 0, column], [BB, BK, BN], [1, 2, 0])
    out = tl.make_block_ptr(c, [B, M, N], [M * N, N, 1], [z, row, column], [BB, BM, BN], [2, 1, 0])
    total = tl.zeros((BB, BM, BN), tl.float32)
    for _ in range(0, K, BK):
        x, y = tl.load(left, boundary_check=(0, 1, 2)), tl.load(right, boundary_check=(0, 1, 2))
        total = tl.dot(x, y, total)
        left, right = tl.advance(left, (0, 0, BK)), tl.advance(right, (0, BK, 0))
    tl.store(out, total.to(c.dtype.element_ty), boundary_check=(0, 1, 2))


@triton.jit
def heads(a, b, c, B, M, N, K, BB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One matrix of five dimensions at a time, whose batch lies one further than its program says."""
    row, column, z = tl.program_id(0) * BM, tl.program_id(1) * BN, tl.program_id(2) - 1
    left = tl.make_tensor_descriptor(a, [1, B, 1, M, K], [1, M * K, 1, K, 1], [1, 1, 1, BM, BK])
    right = tl.make_tensor_descriptor(b, [1, B, 1, K, N], [1, K * N, 1, N, 1], [1, 1, 1, BK, BN])
    out = tl.make_tensor_descriptor(c, [1, B, 1, M, N], [1, M * N, 1, N, 1], [1, 1, 1, BM, BN])
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x, y = left.load([0, z, 0, row, k]), right.load([0, z, 0, k, column])
        total = tl.dot(x.reshape(BM, BK), y.reshape(BK, BN), total)
    out.store([0, z, 0, row, column], total.to(c.dtype.element_ty).reshape(1, 1, 1, BM, BN))


def operands(batch: int, m: int, n: int, k: int) -> tuple[Array, Array, Array]:
    """Operands and a result with more batches than a kernel is told of."""
    a, b = (RNG.standard_normal((batch + 3, *shape)).astype(np.float16) for shape in ((m, k), (k, n)))
    return aligned(a), aligned(b), aligned(np.full((batch + 3, m, n), 7, np.float16))


def check(a: Array, b: Array, c: Array, batch: int) -> None:
    expected = a[:batch].astype(np.float64) @ b[:batch].astype(np.float64)
    np.testing.assert_allclose(c[:batch], expected, rtol=2e-3, atol=2e-2)
    assert (c[batch:] == 7).all()


@pytest.mark.parametrize("form", FORMS)
def test_batches_that_end_within_a_block(form: str) -> None:
    """Three batches, two in a block: of the fourth nothing is read or written."""
    a, b, c = operands(3, 40, 40, 32)
    batched[(2, 2, 2)](a, b, c, 3, 40, 40, 32, 2, 32, 32, 32, num_warps=4, **FORMS[form])
    check(a, b, c, 3)


@pytest.mark.parametrize("form", ["cpu", "simd"])
@pytest.mark.parametrize("warps", [1, 8])
def test_transposed_operands_of_batches(warps: int, form: str) -> None:
    """A warp has all batches of a block, or a batch two warps."""
    a, b, c = operands(5, 40, 40, 96)
    y = aligned(np.ascontiguousarray(b.swapaxes(1, 2)))
    turned[(2, 2, 2)](a, y, c, 5, 40, 40, 96, 4, 32, 32, 32, num_warps=warps, **FORMS[form])
    check(a, b, c, 5)


@pytest.mark.parametrize("form", ["cpu", "simd"])
def test_batches_of_odd_sizes(form: str) -> None:
    """Matrices that no message takes go element by element."""
    a, b, c = operands(3, 37, 39, 35)
    batched[(2, 2, 2)](a, b, c, 3, 37, 39, 35, 2, 32, 32, 32, num_warps=4, **FORMS[form])
    check(a, b, c, 3)


@triton.jit
def from_batch_to_batch(a, c, B, M, N, BB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Blocks of the last batches first; the first block begins before the first batch."""
    there = ((0, 1, 2),)
    x = tl.make_block_ptr(a, (B, M, N), (M * N, N, 1), (-1, 0, 0), (BB, BM, BN), (2, 1, 0))
    y = tl.make_block_ptr(c, (B, M, N), (M * N, N, 1), (-1, 0, 0), (BB, BM, BN), (2, 1, 0))
    for _ in range(-1, B, BB):
        tl.store(y, tl.load(x, boundary_check=there[0]) * 2, boundary_check=there[0])
        x, y = tl.advance(x, (BB, 0, 0)), tl.advance(y, (BB, 0, 0))


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_block_pointers_that_go_from_batch_to_batch(batch: int, form: str) -> None:
    a, _, c = operands(4, 24, 40, 40)
    from_batch_to_batch[(1,)](a[1:], c[1:], 4, 24, 40, batch, 32, 64, num_warps=4, **FORMS[form])
    np.testing.assert_array_equal(c[1:5], 2 * a[1:5])
    assert (c[0] == 7).all()
    assert (c[5:] == 7).all()


@pytest.mark.parametrize("form", ["cpu", "simd"])
def test_dimensions_of_one_matrix(form: str) -> None:
    a, b, c = operands(2, 40, 40, 48)
    heads[(2, 2, 4)](a, b, c, 2, 40, 40, 48, 1, 32, 32, 32, num_warps=2, **FORMS[form])
    check(a, b, c, 2)


def built(function: Any, batch: int, warps: int) -> CompiledKernel:
    x = aligned(np.zeros((8, 64, 64), np.float16))
    return function.warmup(x, x, x, 8, 64, 64, 64, batch, 64, 64, 32, target="xe:pvc", num_warps=warps)


@pytest.mark.parametrize(("function", "batch", "warps"), [(batched, 4, 16), (turned, 2, 4), (heads, 1, 4)])
def test_all_accesses_are_messages_that_a_launch_judges(function: Any, batch: int, warps: int) -> None:
    """No lane accesses elements of its own, and the kernel asks nothing."""
    lowered: Any = built(function, batch, warps).asm.lowered
    assert lowered.facts.checked
    assert lowered.text.count("define ") == 1
    assert "Subgroup2DBlockPrefetch" in lowered.text


@triton.jit
def of_loaded_sizes(a, b, c, sizes, BB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Products of batches whose sizes only the kernel sees."""
    B, M, N, K = tl.load(sizes), tl.load(sizes + 1), tl.load(sizes + 2), tl.load(sizes + 3)
    batched(a, b, c, B, M, N, K, BB, BM, BN, BK)


@pytest.mark.parametrize("form", ["cpu", "simd"])
@pytest.mark.parametrize(("m", "n", "k"), [(40, 40, 32), (5, 40, 32)])
def test_sizes_that_are_loaded(m: int, n: int, k: int, form: str) -> None:
    """The kernel asks before its loops; where matrices are 400 bytes apart, it takes the other version."""
    a, b, c = operands(3, m, n, k)
    sizes = np.array([3, m, n, k], np.int32)
    of_loaded_sizes[(2, 2, 2)](a, b, c, sizes, 2, 32, 32, 32, num_warps=4, **FORMS[form])
    check(a, b, c, 3)


def test_loaded_sizes_are_judged_before_loops() -> None:
    x = aligned(np.zeros((3, 64, 64), np.float16))
    options = {"target": "xe:pvc", "num_warps": 4}
    llvm = of_loaded_sizes.warmup(x, x, x, np.zeros(4, np.int32), 2, 32, 32, 32, **options).asm["llvm"]
    assert llvm.count("label %if.then") == 1
