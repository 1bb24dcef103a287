"""Mathematical functions against numpy in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mltriton.language as tl
from mltriton.errors import OptionError, TypeMismatchError
from mltriton.language.extra import libdevice
from mltriton.language.math import UNARY

from .tracing import Trace, compute

SMALL = np.array([0.0, 1e-6, 0.1, 0.5, 1.0, 1.5, 2.5, 7.25], np.float32)
SIGNED = np.concatenate([-SMALL[1:], SMALL, [20.0]])
POSITIVE = SMALL[1:].repeat(2)[:8]

EXPECTED = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
    "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "floor": np.floor,
    "ceil": np.ceil,
}


def test_every_function_is_checked():
    assert set(EXPECTED) == set(UNARY)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str):
    needs_positive = name in ("log", "log2", "sqrt", "sqrt_rn", "rsqrt")
    values = POSITIVE if needs_positive else SIGNED[:16].astype(np.float32)
    for kind in (np.float32, np.float64) if tl.float64 in UNARY[name][1] else (np.float32,):
        x = values.astype(kind)
        found = compute(lambda x: getattr(tl.math, name)(x), x)
        assert found.dtype == kind
        np.testing.assert_allclose(found, EXPECTED[name](x.astype(np.float64)), rtol=4 * np.finfo(kind).eps, atol=1e-12)


def test_absolute_value():
    for kind in (np.float32, np.float16, np.int32, np.int8):
        x = np.array([-3, 0, 5, -0.0]).astype(kind)
        assert compute(lambda x: abs_of(x), x).tolist() == np.abs(x).tolist()
    assert compute(lambda x: tl.abs(x), np.array([200, 1], np.uint8)).tolist() == [200, 1]


def abs_of(x: tl.tensor) -> tl.tensor:
    return x.abs()


def test_division():
    x, y = np.array([1, 2, 10, -7], np.float32), np.array([3, 7, 3, 2], np.float32)
    for function in (tl.div_rn, lambda x, y: tl.fdiv(x, y, ieee_rounding=True)):
        np.testing.assert_array_equal(compute(function, x, y), x / y)
    np.testing.assert_array_max_ulp(compute(tl.fdiv, x, y), x / y, maxulp=2)  # On GPUs an instruction that is fast.


@pytest.mark.parametrize(
    ("name", "expected", "ulp"),
    [
        ("tan", np.tan, 8),
        ("exp10", lambda x: 10.0**x, 64),
        ("expm1", np.expm1, 4),
        ("sinh", np.sinh, 8),
        ("cosh", np.cosh, 8),
        ("erfc", np.vectorize(math.erfc), 4),
        ("trunc", np.trunc, 0),
        ("rint", np.rint, 0),
        ("round", lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5), 0),
    ],
)
def test_libdevice(name: str, expected, ulp: int):
    x = SIGNED[:16].astype(np.float32)
    wanted = expected(x.astype(np.float64))
    atol = 4 * np.finfo(np.float32).eps if name == "erfc" else 0
    np.testing.assert_allclose(
        compute(getattr(libdevice, name), x), wanted, rtol=ulp * np.finfo(np.float32).eps, atol=atol
    )


def test_logarithms():
    x = np.array([1e-7, 1e-3, 0.5, 1, 3, 1e6, 1e-20, 0], np.float32)
    np.testing.assert_allclose(compute(libdevice.log1p, x), np.log1p(x.astype(np.float64)), rtol=5e-7)
    np.testing.assert_allclose(
        compute(libdevice.log10, x[:4]), np.log10(x[:4].astype(np.float64)), rtol=5e-7, atol=1e-9
    )
    large = np.array([np.inf, 1e30], np.float32)
    assert compute(libdevice.log1p, large)[0] == np.inf and compute(libdevice.expm1, large)[0] == np.inf
    assert compute(libdevice.sinh, np.array([-np.inf, 88.0], np.float32))[0] == -np.inf


def test_powers():
    x = np.array([2, 2, -2, -2, -8, 0, 5, 1, -1.5, 3, -np.inf, 0, 10, 0.5, -1, np.nan], np.float32)
    y = np.array([10, 0.5, 3, 2, 1 / 3, 0, 0, np.nan, -2, -3, 3, 2, 38, 100, 1e9, 0], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(compute(libdevice.pow, x, y), np.power(x.astype(np.float64), y), rtol=3e-7)


def test_signs_and_classes():
    x = np.array([1, -1, 0, -0.0, np.inf, -np.inf, np.nan, -3], np.float32)
    assert compute(libdevice.isnan, x).tolist() == np.isnan(x).tolist()
    assert compute(libdevice.isinf, x).tolist() == np.isinf(x).tolist()
    assert compute(libdevice.finitef, x).tolist() == np.isfinite(x).tolist()
    assert compute(libdevice.signbit, x)[:6].tolist() == np.signbit(x)[:6].tolist()
    np.testing.assert_array_equal(compute(lambda x: libdevice.copysign(2.0, x), x)[:6], np.copysign(2, x)[:6])
    y = np.array([5.5, -5.5, 7, 1, 2, 3, 4, 9], np.float32)
    np.testing.assert_array_equal(compute(lambda y: libdevice.fmod(y, 2.0), y), np.fmod(y, 2))


def test_vendors_names_are_one_library():
    assert tl.extra.libdevice is tl.extra.cuda.libdevice is tl.extra.hip.libdevice is libdevice
    assert tl.math.exp is tl.exp


@pytest.mark.parametrize(
    ("attempt", "error", "text"),
    [
        (
            lambda h, i: tl.exp(h),
            TypeMismatchError,
            r"tl.exp does not take fp16\nexpected fp32 or fp64, found fp16\nconvert it: x.to\(tl.float32\)",
        ),
        (lambda h, i: tl.log(i), TypeMismatchError, "does not take int32"),
        (lambda h, i: tl.sqrt_rn(tl.full((), 1.0, tl.float64)), TypeMismatchError, "expected fp32,"),
        (lambda h, i: tl.fdiv(i, i), TypeMismatchError, "for floats"),
        (lambda h, i: tl.fdiv(h, h, True, True), OptionError, "exclude each other"),
        (lambda h, i: tl.sin("x"), TypeMismatchError, "cannot be used in arithmetic"),
        (lambda h, i: tl.umulhi(i.to(tl.int8), i.to(tl.int8)), TypeMismatchError, "32-bit and 64-bit"),
        (lambda h, i: libdevice.fmod(i, i), TypeMismatchError, "fmod is for floats"),
        (lambda h, i: tl.abs(tl.int32), TypeMismatchError, "cannot be used in arithmetic"),
    ],
)
def test_misuse(kernel: Trace, attempt, error, text: str):
    with pytest.raises(error, match=text):
        attempt(kernel.parameter(tl.float16), kernel.parameter(tl.int32))
