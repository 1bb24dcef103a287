"""Blocks that are NaN outside of a tensor: loaded by 2D block messages, which give 0 there, and filled afterwards."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from aligned_arrays import aligned

from .test_batches import FORMS

pytestmark = pytest.mark.usefixtures("queue")
RNG = np.random.default_rng(29)


@triton.jit
def copied(a, c, B, M, N, BB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Copy a block of every program, with the elements outside of `a`, into one that is all there."""
    z, row, column = tl.program_id(2) * BB, tl.program_id(1) * BM, tl.program_id(0) * BN
    source = tl.make_tensor_descriptor(a, [B, M, N], [M * N, N, 1], [BB, BM, BN], padding_option="nan")
    sizes = [tl.num_programs(2) * BB, tl.num_programs(1) * BM, tl.num_programs(0) * BN]
    target = tl.make_tensor_descriptor(c, sizes, [sizes[1] * sizes[2], sizes[2], 1], [BB, BM, BN])
    target.store([z, row, column], source.load([z, row, column]))


@triton.jit
def multiplied(a, b, c, M, N, K, rows, BLOCK: tl.constexpr):
    """A product in whose right operand what lies outside is 1; it has so many rows."""
    left = tl.make_block_ptr(a, (M, K), (K, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    right = tl.make_block_ptr(b, (rows, N), (N, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    x, y = tl.load(left), tl.load(right, boundary_check=(0, 1), padding_option="nan")
    there = tl.make_block_ptr(c, (M, BLOCK), (BLOCK, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    tl.store(there, tl.dot(x, tl.where(y != y, 1.0, y).to(tl.float16)))


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("form", ["cpu", "simd"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_outside_is_nan(dtype: type, form: str, batch: int) -> None:
    a = aligned(RNG.standard_normal((3, 40, 48)).astype(dtype))
    c = aligned(np.zeros((4, 64, 64), dtype))
    copied[(2, 2, 4 // batch)](a, c, 3, 40, 48, batch, 32, 32, num_warps=2, **FORMS[form])
    expected = np.full(c.shape, np.nan, dtype)
    expected[:3, :40, :48] = a
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize(("form", "rows"), [("cpu", 27), ("simt", 27), ("simd", 27), ("simt", 16), ("simd", 16)])
def test_right_operands(form: str, rows: int) -> None:
    """There rows are in pairs, one of which may be outside; bounds may leave whole values of a product in or out."""
    a, b = (aligned(RNG.standard_normal((32, 32)).astype(np.float16)) for _ in range(2))
    c = aligned(np.zeros((32, 32), np.float32))
    multiplied[(1,)](a, b, c, 32, 32, 32, rows, 32, num_warps=1, **FORMS[form])
    b[rows:] = 1
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, expected, rtol=1e-3, atol=1e-2)


def test_all_loads_are_messages() -> None:
    x = aligned(np.zeros((3, 64, 64), np.float16))
    llvm = copied.warmup(x, x, 3, 64, 64, 1, 32, 32, grid=(2, 2, 3), num_warps=2, target="xe:pvc").asm["llvm"]
    assert "Subgroup2DBlockLoad" in llvm
    assert "Subgroup2DBlockStore" in llvm
    assert "PredicatedLoad" not in llvm
