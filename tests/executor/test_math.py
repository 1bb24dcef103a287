"""`math` and the float operations of `tt` against float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

X = np.random.default_rng(0).uniform(0.1, 4.0, 256)


@pytest.mark.parametrize("type", ["f16", "f32", "f64"])
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("exp", np.exp),
        ("exp2", np.exp2),
        ("log", np.log),
        ("log2", np.log2),
        ("sin", np.sin),
        ("cos", np.cos),
        ("tanh", np.tanh),
        ("erf", np.vectorize(math.erf)),
        ("sqrt", np.sqrt),
        ("rsqrt", lambda x: 1 / np.sqrt(x)),
        ("absf", np.abs),
        ("floor", np.floor),
        ("ceil", np.ceil),
    ],
)
def test_functions_are_rounded_once(apply: Any, name: str, function: Any, type: str) -> None:
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[type]
    numbers = X.astype(dtype)
    got = apply(f"%r = math.{name} %x0 : tensor<Nx{type}>", [(type, numbers)], type)
    np.testing.assert_array_equal(got, function(numbers.astype(np.float64)).astype(dtype))


def test_fma_rounds_once(apply: Any) -> None:
    for type, dtype, bits in (("f32", np.float32, 23), ("f64", np.float64, 52)):
        a = np.array([1 + 2.0**-bits], dtype)
        got = apply(f"%r = math.fma %x0, %x1, %x2 : tensor<Nx{type}>", [(type, a), (type, a), (type, -(a * a))], type)
        assert got[0] == 2.0 ** (-2 * bits)  # what a rounded product would lose
        least, zero = np.array([-0.0], dtype), np.array([0.0], dtype)
        operands = [(type, least), (type, zero), (type, least)]
        got = apply(f"%r = math.fma %x0, %x1, %x2 : tensor<Nx{type}>", operands, type)
        assert np.signbit(got[0])  # -0 + -0


def test_absolute_integer(apply: Any) -> None:
    numbers = np.array([-5, 5, -(2**31)], np.int32)
    assert apply("%r = math.absi %x0 : tensor<Nxi32>", [("i32", numbers)], "i32").tolist() == [5, 5, -(2**31)]


@pytest.mark.parametrize(("width", "dtype"), [(32, np.int32), (64, np.int64)])
def test_mulhi(apply: Any, width: int, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 100, dtype=dtype) for _ in "ab")
    got = apply(f"%r = tt.mulhiui %x0, %x1 : tensor<Nxi{width}>", [(f"i{width}", a), (f"i{width}", b)], f"i{width}")
    mask = (1 << width) - 1
    expected = [((int(x) & mask) * (int(y) & mask)) >> width for x, y in zip(a, b, strict=True)]
    assert [int(x) & mask for x in got] == expected


@pytest.mark.parametrize(("propagate", "expected"), [("true", math.nan), ("false", 0.0)])
def test_clamp(apply: Any, propagate: str, expected: float) -> None:
    x, low, high = (np.array(v, np.float32) for v in ([-1, 0.5, 2, math.nan], [0] * 4, [1] * 4))
    text = f'%r = "tt.clampf"(%x0, %x1, %x2) {{propagate_nan = {propagate}}} : (tensor<Nxf32>, tensor<Nxf32>, '
    got = apply(text + "tensor<Nxf32>) -> tensor<Nxf32>", [("f32", x), ("f32", low), ("f32", high)], "f32")
    np.testing.assert_array_equal(got, np.array([0, 0.5, 1, expected], np.float32))


def test_fp_to_fp_rounding(apply: Any) -> None:
    x = np.array([1.07, -1.07], np.float32)
    for rounding, expected in (("rtne", 1.125), ("rtz", 1.0)):
        text = f"%r = tt.fp_to_fp %x0, rounding = {rounding} : tensor<Nxf32> -> tensor<Nxf8E4M3FN>"
        assert apply(text, [("f32", x)], "f8E4M3FN").tolist() == [expected, -expected]
