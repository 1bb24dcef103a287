"""Constants that are functions or dtypes: `@tl.constexpr` on a Python function, `dtype.value` in a function."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import NameNotFoundError


@tl.constexpr
def accumulator(kind):
    return tl.float32 if kind.is_fp16() else kind


def plain(kind):
    return kind


@triton.jit
def largest(dtype: tl.constexpr):
    kind = dtype.value
    if kind.is_floating():
        value: tl.constexpr = float("inf")
        return value
    else:
        value: tl.constexpr = 2 ** (kind.int_bitwidth - 1) - 1
        return value


@triton.jit
def total(x, out, top, N: tl.constexpr):
    kind: tl.constexpr = accumulator(x.dtype.element_ty)
    i = tl.arange(0, N)
    tl.store(out, tl.sum(tl.load(x + i).to(kind)))
    tl.store(top, largest(x.dtype.element_ty))


@triton.jit
def calls_plain(x):
    tl.store(x, plain(x.dtype.element_ty))


@pytest.mark.parametrize(
    ("dtype", "end"), [(np.float16, np.inf), (np.float32, np.inf), (np.int32, 2**31 - 1), (np.int8, 127)]
)
def test_functions_that_are_constants_run_when_compiling(dtype, end):
    x = np.full(64, 100, dtype)
    out, top = np.zeros(1, np.float32), np.zeros(1, np.float64)
    total[(1,)](x, out, top, N=64)
    assert top[0] == end
    assert out[0] == (6400 if dtype != np.int8 else np.full(64, 100, np.int8).sum(dtype=np.int32))


def test_other_functions_are_not_called():
    with pytest.raises(NameNotFoundError, match="plain is a Python function"):
        calls_plain[(1,)](np.zeros(1, np.float32))


@triton.jit
def scaled(x, out, stride, n, SCALE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i * stride, tl.load(x + i, i < n) * SCALE, i < n)


@pytest.mark.parametrize("stride", [1, 3])
def test_a_compiled_kernel_takes_what_is_no_constexpr_parameter(stride):
    """Upstream's form: values that were compiled in come along, tl.constexpr parameters do not."""
    x, out = np.arange(8, dtype=np.float32), np.zeros(32, np.float32)
    compiled = scaled.warmup(x, out, stride, 8, SCALE=3.0, N=8, grid=(1,))
    compiled[(1,)](x, out, stride, 8)
    np.testing.assert_array_equal(out[: 8 * stride : stride], 3 * x)
    out[:] = 0
    compiled[(1,)](x, out, stride, 8, 3.0, 8)
    np.testing.assert_array_equal(out[: 8 * stride : stride], 3 * x)


@triton.jit
def annotated_values(x, out, n, m, BLOCK: tl.constexpr):
    width: tl.constexpr = BLOCK * n
    last: tl.constexpr = m
    for start in range(0, width, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i) * width + last)


def test_the_annotation_of_a_computed_value_says_nothing():
    x, out = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    for n in (1, 3):
        annotated_values[(1,)](x, out, n, 5, BLOCK=8)
        assert (out[: 8 * n] == x[: 8 * n] * 8 * n + 5).all()
