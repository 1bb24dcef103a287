"""Results stored where their columns lie next to each other in memory: a lane stores 16 bytes of a column at a time."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from aligned_arrays import aligned

from .test_batches import FORMS

pytestmark = pytest.mark.usefixtures("queue")
RNG = np.random.default_rng(23)
Array = np.ndarray[Any, Any]


@triton.jit
def product(a, b, c, M, N, K, first, HOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """A block of a product whose rows begin at `first`, which may be negative; C is N x M in memory."""
    row, column = first + tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, 32])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [32, BN])
    total = tl.dot(left.load([row, 0]), right.load([0, column]))
    if HOW == "block pointer":
        out = tl.make_block_ptr(c, [M, N], [1, M], [row, column], [BM, BN], [0, 1])
        tl.store(out, total.to(c.dtype.element_ty), boundary_check=(0, 1))
    elif HOW == "pointers":
        rows, columns = row + tl.arange(0, BM)[:, None], column + tl.arange(0, BN)[None, :]
        there = (rows >= 0) & (rows < M) & (columns < N)
        tl.store(c + rows + columns * M, total.to(c.dtype.element_ty), mask=there)
    else:
        out = tl.make_tensor_descriptor(c, [N, M], [M, 1], [BN, BM])
        out.store([column, row], total.to(c.dtype.element_ty).T)


def multiplied(form: str, how: str, m: int, n: int, first: int, out: type = np.float16) -> tuple[Array, Array]:
    a, b = (
        aligned(RNG.standard_normal((m, 32)).astype(np.float16)),
        aligned(RNG.standard_normal((32, n)).astype(np.float16)),
    )
    c = aligned(np.full((n, m), 7, out))
    grid = (-(-(m - first) // 32), -(-n // 32))
    product[grid](a, b, c, m, n, 32, first, how, 32, 32, num_warps=2, **FORMS[form])
    return c, (a.astype(np.float64) @ b.astype(np.float64)).T


WAYS = ["block pointer", "descriptor", "pointers"]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("form", ["cpu", "simd"])
def test_edges(form: str, how: str) -> None:
    """Sizes that are multiples of 16 and others; blocks that begin before the first row."""
    for m, n, first, out in ((48, 40, 0, np.float16), (48, 48, -16, np.float32), (37, 40, -5, np.float16)):
        found, expected = multiplied(form, how, m, n, first, out)
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-2)


def test_edges_in_a_program_of_lanes() -> None:
    found, expected = multiplied("simt", "block pointer", 48, 40, -16)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("how", WAYS)
def test_rows_that_no_bound_tells_apart_are_stored_together(how: str) -> None:
    """Where rows are a multiple of 16 every store takes 16 bytes, without a branch."""
    x = aligned(np.zeros((64, 64), np.float16))
    options = {"target": "xe:pvc", "num_warps": 2}
    llvm = product.warmup(x, x, x, 64, 64, 64, 0, how, 32, 32, grid=(2, 2), **options).asm["llvm"]
    stored = re.findall(r"call void @\w*PredicatedStore\w*\(ptr addrspace\(1\) %\w+, (<8 x i16>|\w+)", llvm)
    assert stored == ["<8 x i16>"] * 4
    assert "br i1" not in llvm
