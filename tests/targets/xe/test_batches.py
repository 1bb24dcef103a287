"""Blocks of rank 3 and more in memory, on Xe by 2D block messages and on the CPU: every leading index is checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl

from .test_products import aligned

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


def operands(batch: int, *sizes: int) -> tuple[Array, Array, Array]:
    """Operands and a result with more batches than a kernel is told of."""
    m, n, k = sizes
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
