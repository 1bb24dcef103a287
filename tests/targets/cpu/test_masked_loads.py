"""Loads of which a constant mask holds for no lane of a register read nothing there, whoever else uses the mask."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from processors import WIDTHS


@triton.jit
def checked(x, y, z, size: tl.constexpr, BLOCK: tl.constexpr):
    """Behind the first element; `sanitize=True` looks at the masks of the loads, too."""
    p = tl.make_block_ptr(x, (size,), (1,), (1,), (BLOCK,), (0,))
    found = tl.load(p, boundary_check=(0,))
    tl.store(y + tl.arange(0, BLOCK), found)
    tl.store(tl.make_block_ptr(z, (size,), (1,), (1,), (BLOCK,), (0,)), found, boundary_check=(0,))


@pytest.mark.parametrize("target", WIDTHS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("block", [16, 32])
def test_lanes_that_are_off(block: int, dtype: str, target: str) -> None:
    x = np.random.default_rng(0).integers(1, 100, 2 * block).astype(dtype)
    for size in (1, 3, 5, block // 2 + 1):
        y, z = np.full(block, 7, dtype), np.zeros(2 * block, dtype)
        checked[(1,)](x, y, z, size, block, target=target, sanitize=True)
        np.testing.assert_array_equal(y, np.where(np.arange(1, block + 1) < size, x[1 : block + 1], 0))
        np.testing.assert_array_equal(z[1:size], x[1:size])
