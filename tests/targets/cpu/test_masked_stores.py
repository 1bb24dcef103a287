"""Stores of which a constant mask holds for one lane write nothing beside it, whatever was narrowed for them."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from processors import WIDTHS


@triton.jit
def one_lane(x, y, LANE: tl.constexpr, COUNT: tl.constexpr):
    at = tl.arange(0, COUNT)
    tl.store(y + at, tl.load(x + at).to(y.dtype.element_ty), mask=at == LANE)


@triton.jit
def first(x, y, n, COUNT: tl.constexpr):
    """Of one element: `n` is known to be 1."""
    at = tl.arange(0, COUNT)
    tl.store(y + at, tl.load(x + at, mask=at < n).to(y.dtype.element_ty), mask=at < n)


PAIRS = [(f"int{wide}", f"int{narrow}") for wide in (64, 32, 16) for narrow in (32, 16, 8) if narrow < wide]


@pytest.mark.parametrize(("wide", "narrow"), [*PAIRS, ("uint64", "uint8"), ("float32", "int8"), ("float32", "float16")])
@pytest.mark.parametrize("count", [2, 8, 16, 64])
def test_one_lane(wide: str, narrow: str, count: int) -> None:
    x = np.random.default_rng(0).integers(1, 100, count).astype(wide)
    for lane in (0, 1, count - 1):
        y, wanted = np.full(count + 64, 7, narrow), np.full(count + 64, 7, narrow)
        wanted[lane] = x[lane]
        one_lane[(1,)](x, y, lane, count)
        np.testing.assert_array_equal(y, wanted)
    y, wanted = np.full(count + 64, 7, narrow), np.full(count + 64, 7, narrow)
    wanted[0] = x[0]
    first[(1,)](x, y, 1, count)
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("count", [2, 8, 16, 64])
def test_one_lane_of_bfloat16(count: int) -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.arange(1.0, count + 1), torch.full((count + 64,), 7.0, dtype=torch.bfloat16)
    for target in ("cpu", *WIDTHS):
        y.fill_(7)
        first[(1,)](x, y, 1, count, target=target)
        assert y[0] == 1
        assert (y[1:] == 7).all()
