"""A copy of an operand that is read in place inside its masks has no version for inside its masks."""

from __future__ import annotations

import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.dialects import scf, tile
from mltriton.ir.operation import Operation, Value


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
