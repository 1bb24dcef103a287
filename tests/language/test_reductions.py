"""Reductions, scans and sorting against numpy: every axis, dtype rules, combining functions, misuse."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton.language as tl
from mltriton.errors import AxisError, ConstexprError, PowerOfTwoError, ShapeMismatchError, TypeMismatchError

from .tracing import DTYPES, Trace, compute

RANDOM = np.random.default_rng(1)
X = RANDOM.integers(-50, 50, (4, 8, 2)).astype(np.int32)
F = RANDOM.permutation(64).reshape(4, 16).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, None])
@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (tl.sum, np.sum),
        (tl.max, np.max),
        (tl.min, np.min),
        (tl.xor_sum, np.bitwise_xor.reduce),
        (tl.reduce_or, np.bitwise_or.reduce),
        (tl.argmax, np.argmax),
        (tl.argmin, np.argmin),
    ],
)
def test_every_axis(function, expected, axis, keep_dims):
    found = compute(lambda x: function(x, axis, keep_dims=keep_dims), X)
    np.testing.assert_array_equal(found, expected(X, axis=axis, keepdims=keep_dims))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("function", "expected"), [(tl.cumsum, np.cumsum), (tl.cumprod, np.cumprod)])
def test_scans(function, expected, axis, reverse):
    order = slice(None, None, -1) if reverse else slice(None)
    flip = (
        (order, slice(None), slice(None))
        if axis == 0
        else (slice(None), order, slice(None))
        if axis == 1
        else (..., order)
    )
    found = compute(lambda x: function(x, axis, reverse=reverse), X)
    np.testing.assert_array_equal(found, expected(X[flip], axis=axis)[flip].astype(np.int32))


SUM = {"int1": "uint32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
MAXIMUM = {
    "int1": "int32",
    "int8": "int32",
    "int16": "int32",
    "uint8": "int32",
    "uint16": "int32",
    "fp16": "fp32",
    "bf16": "fp32",
}


@pytest.mark.parametrize("kind", [*DTYPES.values(), tl.bfloat16], ids=str)
def test_dtypes(kernel: Trace, kind: tl.dtype):
    block = tl.zeros((4, 8), kind)
    name = kind.name
    running = "fp32" if kind == tl.bfloat16 else SUM.get(name, name)
    assert tl.sum(block, 0).dtype.name == SUM.get(name, name)
    assert tl.cumsum(block, 0).dtype.name == tl.cumprod(block).dtype.name == running
    assert tl.max(block, 1).dtype.name == tl.min(block).dtype.name == MAXIMUM.get(name, name)
    values, indices = tl.max(block, 1, return_indices=True)
    assert (values.dtype, indices.dtype) == (tl.float32 if kind == tl.bfloat16 else kind, tl.int32)
    assert tl.sum(block, 0, dtype=tl.float64).dtype == tl.float64


def test_narrow_sums_do_not_wrap():
    x = np.full(64, 100, np.int8)
    assert compute(lambda x: tl.sum(x), x) == 6400
    assert compute(lambda x: tl.sum(x > 0), x) == 64


@pytest.mark.parametrize("function", [tl.max, tl.min])
def test_where_the_extreme_is(function):
    x = np.array([[3, 9, 9, 1], [0, 0, 5, 5]], np.float32)
    values, indices = compute(lambda x: function(x, 1, return_indices=True), x)
    first = np.argmax if function is tl.max else np.argmin
    assert (
        indices.tolist() == first(x, 1).tolist()
        and values.tolist() == np.take_along_axis(x, first(x, 1)[:, None], 1)[:, 0].tolist()
    )
    value, index = compute(lambda x: function(x, None, return_indices=True, keep_dims=True), x)
    assert value.shape == index.shape == (1, 1) and index[0, 0] == first(x)
    fast = compute(lambda x: tl.argmax(x, 1, tie_break_left=False), F)
    assert fast.tolist() == F.argmax(1).tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("function", [tl.max, tl.min])
def test_a_nan_is_the_extreme(function, dtype: str):
    x = RANDOM.integers(1, 9, (16, 64)).astype(dtype)
    x[:-1][RANDOM.random((15, 64)) < 0.1] = np.nan  # as many as make each order of combining another result
    assert np.isnan(x).sum(1)[:4].all() and not np.isnan(x[-1]).any()
    first = np.argmax if function is tl.max else np.argmin
    values, indices = compute(lambda x: function(x, 1, return_indices=True), x)
    assert indices.tolist() == first(x, 1).tolist()
    np.testing.assert_array_equal(values, np.take_along_axis(x, first(x, 1)[:, None], 1)[:, 0])
    assert compute(lambda x: function(x, None, return_indices=True)[1], x) == first(x)
    fast = compute(lambda x: function(x, 1, return_indices=True, return_indices_tie_break_left=False)[1], x)
    np.testing.assert_array_equal(x[np.arange(16), fast], values)


def test_reduce_with_a_function():
    def combine(count1, mean1, count2, mean2):
        count = count1 + count2
        return count, (mean1 * count1 + mean2 * count2) / count

    def body(x):
        return tl.reduce((tl.full((4, 16), 1.0, tl.float32), x), 1, combine)

    count, mean = compute(body, F)
    assert count.tolist() == [16] * 4
    np.testing.assert_allclose(mean, F.mean(1), rtol=1e-6)
    assert compute(lambda x: tl.reduce(x, None, tl.minimum), F) == F.min()
    assert compute(lambda x: x.reduce(0, lambda a, b: a * b), X).tolist() == X.prod(0).astype(np.int32).tolist()


def test_scan_with_a_function():
    def combine(a1, b1, a2, b2):
        return a1 * a2, b1 * a2 + b2

    a, b = RANDOM.uniform(0.5, 1, (2, 8)).astype(np.float32), RANDOM.uniform(0, 1, (2, 8)).astype(np.float32)
    _, found = compute(lambda a, b: tl.associative_scan((a, b), 1, combine), a, b)
    expected, state = np.zeros_like(b), np.zeros(2, np.float32)
    for i in range(8):
        state = state * a[:, i] + b[:, i]
        expected[:, i] = state
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_region(kernel: Trace):
    tl.sum(tl.zeros((4, 8), tl.float16), 1)
    reduce = kernel.ops[-1]
    region = reduce.regions[0].block
    assert [str(argument.type) for argument in region.arguments] == ["f16", "f16"]
    assert [op.name for op in region.ops] == ["arith.addf", "tt.reduce.return"]
    assert reduce.attributes["axis"].value == 1 and str(reduce.result.type) == "tensor<4xf16>"


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("shape", [(16,), (4, 8), (2, 2, 32), (4, 1)])
def test_sort(shape, descending):
    x = RANDOM.integers(-20, 20, shape).astype(np.int32)
    expected = np.sort(x, -1)[..., ::-1] if descending else np.sort(x, -1)
    np.testing.assert_array_equal(compute(lambda x: tl.sort(x, descending=descending), x), expected)


def test_sort_keeps_every_nan():
    x = np.array([3, np.nan, 1, np.nan, 2, 0, np.nan, 5], np.float32)
    found = compute(lambda x: tl.sort(x), x)
    assert np.isnan(found).sum() == 3 and sorted(found[~np.isnan(found)].tolist()) == [0, 1, 2, 3, 5]


def test_topk_and_merge():
    np.testing.assert_array_equal(compute(lambda x: tl.topk(x, 4), F), np.sort(F, 1)[:, :-5:-1])
    np.testing.assert_array_equal(compute(lambda x: x.topk(2, descending=False), F), np.sort(F, 1)[:, :2])
    bitonic = np.concatenate([np.sort(F[:, :8], 1), np.sort(F[:, 8:], 1)[:, ::-1]], 1)
    np.testing.assert_array_equal(compute(lambda x: tl.bitonic_merge(x), bitonic), np.sort(F, 1))
    np.testing.assert_array_equal(
        compute(lambda x: tl.bitonic_merge(x, descending=True), bitonic), np.sort(F, 1)[:, ::-1]
    )


@pytest.mark.parametrize("dtype", [name for name, dtype in DTYPES.items() if dtype.is_int()])
@pytest.mark.parametrize("bins", [16, 256])
def test_histogram(dtype: str, bins: int):
    x = RANDOM.integers(-300, 300, 128).astype(dtype)
    inside = x[(x >= 0) & (x < bins)].astype(int)
    found = compute(lambda x: tl.histogram(x, bins), x)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, np.bincount(inside, minlength=bins))
    found = compute(lambda x: x.histogram(bins, x < 5), x)
    np.testing.assert_array_equal(found, np.bincount(inside[inside < 5], minlength=bins))


def test_softmax_and_sigmoid():
    power = np.exp(F.astype(np.float64) - F.max(1, keepdims=True))
    np.testing.assert_allclose(compute(lambda x: tl.softmax(x, 1), F), power / power.sum(1, keepdims=True), rtol=1e-6)
    power = np.exp(F.astype(np.float64) - F.max(0))
    np.testing.assert_allclose(compute(lambda x: x.softmax(), F), power / power.sum(0), rtol=1e-6)
    np.testing.assert_allclose(
        compute(lambda x: tl.sigmoid(x - 30), F), 1 / (1 + np.exp(30 - F.astype(np.float64))), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("attempt", "error", "text"),
    [
        (lambda x: tl.sum(x, 2), AxisError, "the axis of a reduction is out of range"),
        (lambda x: tl.sum(x, tl.program_id(0)), ConstexprError, "must be known when compiling"),
        (lambda x: tl.max(tl.program_id(0)), TypeMismatchError, "needs a block"),
        (lambda x: tl.argmax(tl.program_id(0), 0), TypeMismatchError, "needs a block"),
        (lambda x: tl.xor_sum(x, 0), TypeMismatchError, "tl.xor_sum is for integers"),
        (lambda x: tl.cumsum(x, 2), AxisError, "the axis of a scan"),
        (
            lambda x: tl.reduce((x, tl.arange(0, 4)), 0, lambda a, b, c, d: (a, b)),
            ShapeMismatchError,
            "have different shapes",
        ),
        (lambda x: tl.reduce((), 0, tl.maximum), TypeMismatchError, "one block or more"),
        (lambda x: tl.reduce(x, 0, 3), TypeMismatchError, "needs a function"),
        (lambda x: tl.reduce(x, 0, lambda a, b: a > b), TypeMismatchError, "expected fp32, found int1"),
        (lambda x: tl.reduce(x, 0, lambda a, b: (a, b)), TypeMismatchError, "found fp32, fp32"),
        (lambda x: tl.reduce(x, 0, lambda a, b: None), TypeMismatchError, "found no tensor"),
        (
            lambda x: tl.associative_scan(x, 0, lambda a, b: a.to(tl.float64)),
            TypeMismatchError,
            "expected fp32, found fp64",
        ),
        (lambda x: tl.sum(x, 0, dtype=3), TypeMismatchError, "needs a dtype"),
        (lambda x: tl.sort(x, 0), AxisError, "works along the last dimension"),
        (lambda x: tl.topk(x, 3), PowerOfTwoError, "a power of two up to 8"),
        (lambda x: tl.topk(x, tl.program_id(0)), ConstexprError, "must be known when compiling"),
        (lambda x: tl.histogram(x, 8), TypeMismatchError, "a 1D block of integers"),
        (lambda x: tl.softmax(x, 5), AxisError, "the axis of tl.softmax"),
        (lambda x: tl.softmax(x.to(tl.int32), 0), TypeMismatchError, "tl.exp does not take int32"),
    ],
)
def test_misuse(kernel: Trace, attempt, error, text: str):
    with pytest.raises(error, match=text):
        attempt(tl.zeros((4, 8), tl.float32))
