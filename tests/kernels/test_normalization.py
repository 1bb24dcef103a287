"""`softmax` and `layer_norm` on the CPU against numpy in float64: dtypes, lengths, strides, extremes, mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accuracy import FLOATS, assert_accurate, dtype_of, random, wide
from mltriton.errors import ArgumentError
from mltriton.kernels import layer_norm, softmax
from mltriton.kernels.normalization import LONGEST_BLOCK, PIECE, Rows, choose_rows

RNG = np.random.default_rng(3)
LENGTHS = [1, 2, 3, 17, 100, 1000, 1024, LONGEST_BLOCK, LONGEST_BLOCK + 1, 4 * LONGEST_BLOCK + 12345]


def check_softmax(x: Any, target: str | None = None) -> Any:
    """Softmax; its errors are relative, and those of the exponents: the size of x. Returns the result."""
    y = softmax(x, target=target)
    assert type(y) is type(x)
    assert dtype_of(y) == dtype_of(x)
    values = wide(x)
    with np.errstate(invalid="ignore"):
        e = np.exp(values - values.max(-1, keepdims=True))
        expected = e / e.sum(-1, keepdims=True)
        exponents = 4 + np.where(np.isfinite(values), np.abs(values), 0).max(-1, keepdims=True)
    assert_accurate(y, expected, expected * exponents)
    return y


def check_layer_norm(x: Any, weight: Any, bias: Any, eps: float = 1e-5, target: str | None = None) -> Any:
    """Normalise; errors are those of the mean, scaled as the row is. Returns the result."""
    y = layer_norm(x, weight, bias, eps, target=target)
    assert type(y) is type(x)
    assert dtype_of(y) == dtype_of(x)
    values, w, b = wide(x), wide(weight), wide(bias)
    deviation = np.sqrt(values.var(-1, keepdims=True) + eps)
    normal = (values - values.mean(-1, keepdims=True)) / deviation
    largest = np.abs(values).max(-1, keepdims=True) / deviation
    assert_accurate(y, normal * w + b, np.abs(w) * (4 * np.abs(normal) + largest) + np.abs(b))
    return y


def parameters(columns: int, dtype: str = "float32", kind: str = "numpy") -> tuple[Any, Any]:
    return random(RNG, (columns,), dtype, kind), random(RNG, (columns,), dtype, kind)


@pytest.mark.parametrize("columns", [77, LONGEST_BLOCK + 99])
@pytest.mark.parametrize("dtype", FLOATS)
def test_dtypes(dtype: str, columns: int) -> None:
    x = random(RNG, (3, columns), dtype)
    check_softmax(x)
    check_layer_norm(x, *parameters(columns, dtype))


@pytest.mark.parametrize("columns", LENGTHS)
def test_lengths(columns: int) -> None:
    x = random(RNG, (5, columns))
    check_softmax(x)
    check_layer_norm(x, *parameters(columns))


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("shape", [(50,), (3, 50), (2, 3, 50), (2, 3, 4, 50), (1, 1, 1)])
def test_ranks(shape: tuple[int, ...], kind: str) -> None:
    x = random(RNG, shape, kind=kind)
    check_softmax(x)
    check_layer_norm(x, *parameters(shape[-1], kind=kind))


STRIDED = {
    "columns apart": lambda: random(RNG, (90, 50)).T,
    "every second": lambda: random(RNG, (50, 180))[:, ::2],
    "rows apart": lambda: random(RNG, (50, 200))[::3, 5:95],
    "backwards": lambda: random(RNG, (50, 90))[::-1, ::-1],
    "one row for all": lambda: np.broadcast_to(random(RNG, (90,)), (50, 90)),
    "three dimensions swapped": lambda: random(RNG, (5, 6, 90)).swapaxes(0, 1),
}


@pytest.mark.parametrize("case", STRIDED)
def test_any_strides(case: str) -> None:
    x = STRIDED[case]()
    check_softmax(x)
    w, b = parameters(2 * x.shape[-1])
    check_layer_norm(x, w[::2], b[::-2])


@pytest.mark.parametrize("columns", [100, LONGEST_BLOCK + 5000])
def test_softmax_of_extremes(columns: int) -> None:
    x = random(RNG, (6, columns))
    x[1] *= 1e4
    x[2] += 3e38
    x[3, : PIECE + 10] = -np.inf  # the whole first block of a long row; all but nothing of a short one
    x[3, -1] = 0
    x[4, 1::2] = -np.inf
    x[5] = -7
    check_softmax(x)


@pytest.mark.parametrize("columns", [100, LONGEST_BLOCK + 5000])
def test_softmax_without_a_value_is_not_a_number(columns: int) -> None:
    x = random(RNG, (3, columns))
    x[0], x[1, 50] = -np.inf, np.nan
    y = softmax(x)
    assert np.isnan(y[:2]).all()
    assert np.isfinite(y[2]).all()


@pytest.mark.parametrize("columns", [200, LONGEST_BLOCK + 5000])
def test_layer_norm_of_rows_far_from_zero(columns: int) -> None:
    check_layer_norm(random(RNG, (4, columns)) + np.float32(1000), *parameters(columns))


@pytest.mark.parametrize("columns", [200, LONGEST_BLOCK + 5000])
def test_layer_norm_of_equal_elements_is_the_bias(columns: int) -> None:
    w, b = parameters(columns)
    x = np.full((2, columns), np.float32(0.5))
    np.testing.assert_allclose(layer_norm(x, w, b), np.broadcast_to(b, x.shape), rtol=1e-6)


def test_eps_in_float64() -> None:
    x = random(RNG, (3, 64), "float64") * 1e-6
    check_layer_norm(x, *parameters(64, "float64"), eps=1e-11)


def test_nothing_to_compute() -> None:
    assert softmax(np.ones((0, 5), np.float32)).shape == (0, 5)
    assert softmax(np.ones((5, 0), np.float32)).shape == (5, 0)
    assert layer_norm(np.ones((0, 5)), np.ones(5), np.ones(5)).shape == (0, 5)


X, ONE = np.ones((3, 4), np.float32), np.ones(4, np.float32)


@pytest.mark.parametrize(
    "x, message",
    [
        ([1.0, 2.0], "x is no array"),
        (np.float32(1) * np.ones((), np.float32), "x is no array|softmax needs an axis"),
        (np.ones((3, 4), np.int32), "softmax: unsupported dtype"),
        (np.ones((3, 4), np.complex64), "softmax: unsupported dtype"),
    ],
)
def test_mistakes_of_softmax(x: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        softmax(x)


@pytest.mark.parametrize(
    "x, weight, bias, message",
    [
        (X, ONE, None, "bias is no array"),
        (X, ONE[:3], ONE, "weight and bias do not fit x"),
        (X, X, ONE, "weight and bias do not fit x"),
        (X, ONE.astype(np.float16), ONE, "the arrays differ in kind or dtype"),
        (*[np.ones(4, np.int64)] * 3, "layer_norm: unsupported dtype"),
    ],
)
def test_mistakes_of_layer_norm(x: Any, weight: Any, bias: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        layer_norm(x, weight, bias)


@pytest.mark.parametrize(("dtype", "columns"), [("float16", 300), ("float32", 8200)])
def test_rows_on_xe(dtype: str, columns: int) -> None:
    """Emulated where there is no GPU: rows in two warps, and rows that are longer than registers hold."""
    pytest.importorskip("dpctl")
    x, weight, bias = (RNG.standard_normal(shape).astype(dtype) for shape in ((3, columns), columns, columns))
    exact = [array.astype(np.float64) for array in (x, weight, bias)]
    tolerance = 2e-3 if dtype == "float16" else 1e-6
    np.testing.assert_allclose(softmax(x, target="xe:pvc"), softmax(exact[0]), rtol=tolerance, atol=1e-6)
    found = layer_norm(x, weight, bias, target="xe:pvc")
    np.testing.assert_allclose(found, layer_norm(*exact), rtol=tolerance, atol=5 * tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 2, 31, 513, 3000, 9000])
@pytest.mark.parametrize("dtype", FLOATS)
def test_lengths_on_xe(dtype: str, columns: int) -> None:
    """Emulated: every dtype, from one column to rows in pieces, inside of longer rows at odd addresses."""
    pytest.importorskip("dpctl")
    target = ["xe:pvc", "xe:bmg", "xe:lnl", "xe:ptl"][FLOATS.index(dtype)]
    x = random(RNG, (3, columns + 3), dtype)[:, 1 : columns + 1]
    check_softmax(x, target)
    check_layer_norm(x, *parameters(columns, dtype), target=target)


@pytest.mark.parametrize(
    ("dtype", "columns", "rows"),
    [
        ("float32", 1, Rows(8192, 8192, 1)),
        ("float16", 1000, Rows(8192, 8192, 4)),
        ("float32", 100_000, Rows(8192, 8192, 32)),
        ("float64", 1000, Rows(4096, 4096, 8)),
    ],
)
def test_warps_of_a_row(dtype: str, columns: int, rows: Rows) -> None:
    x = np.zeros((1, columns), dtype)
    assert choose_rows(x, "xe:bmg") == rows
    assert choose_rows(x, None) == choose_rows(x, "cpu") == Rows(LONGEST_BLOCK, PIECE)
