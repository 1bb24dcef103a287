"""Versions without masks: where all elements lie inside them, and none in what runs where that does not hold."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.dialects import scf, tile
from mltriton.ir.operation import Operation, Value
from processors import RUNNABLE


@triton.jit
def product(a, b, c, m, k, LEFT: tl.constexpr, K: tl.constexpr):
    """The left operand's memory runs along k (`LEFT`) or along m."""
    i, j, r = tl.arange(0, 64), tl.arange(0, 32), tl.arange(0, K)
    place = i[:, None] * k + r[None, :] if LEFT else r[None, :] * m + i[:, None]
    x = tl.load(a + place, (i[:, None] < m) & (r[None, :] < k), other=0.0)
    y = tl.load(b + r[:, None] * 32 + j[None, :])
    tl.store(c + i[:, None] * 32 + j[None, :], tl.dot(x, y))


def refuted_again(op: Operation, refuted: frozenset[Value]) -> list[Operation]:
    """Branches on what does not hold where they stand."""
    found = [op] if isinstance(op, scf.If) and op.operands[0] in refuted else []
    for number, region in enumerate(op.regions):
        here = refuted | {op.operands[0]} if isinstance(op, scf.If) and number else refuted
        found += [each for inner in region.block.ops for each in refuted_again(inner, here)]
    return found


@pytest.mark.parametrize("left", [0, 1], ids=["columns", "rows"])
def test_a_copy_is_made_outside_the_masks_only(left: int) -> None:
    kernel = triton.compile(product, f"*fp32:16, *fp32:16, *fp32:16, i32, i32, {left}, 64", target="cpu:avx2")
    module = kernel.job.module("intrinsic")
    assert any(isinstance(op, tile.Load) and op.mask is not None for op in module.walk())
    assert any(isinstance(op, scf.If) and op.results for op in module.walk())
    assert not refuted_again(module, frozenset())


@triton.jit
def masked(x, y, dtype: tl.constexpr, LESS: tl.constexpr, BOUND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    numbers = i.to(dtype) - LESS
    tl.store(y + i, tl.load(x + i), mask=numbers > BOUND)
    tl.store(y + BLOCK + i, tl.load(x + i), mask=numbers <= BOUND)


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize(("dtype", "less", "bound"), [("uint8", 6, 7), ("int8", -100, 100), ("uint32", 6, 7)])
def test_masks_that_hold_at_both_ends_only(target: str, dtype: str, less: int, bound: int) -> None:
    x, y = np.arange(32, dtype=np.int32), np.full((2, 32), 99, np.int32)
    masked[(1,)](x, y, getattr(tl, dtype), less, bound, 32, target=target)
    numbers = (x - less).astype(dtype)
    np.testing.assert_array_equal(y, [np.where(numbers > bound, x, 99), np.where(numbers <= bound, x, 99)])
