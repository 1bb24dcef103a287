"""What a stranger tries first on Xe, emulated: a few sharp cases in every run, and a broad sweep under `slow`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl

pytestmark = pytest.mark.usefixtures("queue")
TARGET = "xe:pvc"
RNG = np.random.default_rng(23)
Array = np.ndarray[Any, Any]


@triton.jit
def negated(x, y, largest, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    first, second, third = tl.exp(-value), tl.abs(value * -1.0), tl.exp(value / -1.0)
    tl.store(largest, tl.max(value, 0))  # warps meet here
    tl.store(y + at, first)
    tl.store(y + n + at, second)
    tl.store(y + 2 * n + at, third)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_computed_of_negated_numbers_outlives_barriers(dtype: Any) -> None:
    x, y, largest = RNG.standard_normal(64).astype(dtype), np.zeros((3, 64), dtype), np.zeros(1, dtype)
    negated[(1,)](x, y, largest, 64, 64, target=TARGET, num_warps=4)
    np.testing.assert_allclose(y, [np.exp(-x), np.abs(x), np.exp(-x)], rtol=1e-6)
    assert largest[0] == x.max()
