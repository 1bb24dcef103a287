"""`libdevice`'s special functions and directed roundings against float64 and exact references."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.executor import run
from mltriton.language.extra import libdevice

SIZE = 256
NORMAL = NormalDist()


@pytest.fixture(scope="module", autouse=True)
def cache_directory(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@triton.jit
def apply(out, x, y, z, F: tl.constexpr, COUNT: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    if COUNT == 1:
        tl.store(out + i, F(tl.load(x + i)))
    elif COUNT == 2:
        tl.store(out + i, F(tl.load(x + i), tl.load(y + i)))
    else:
        tl.store(out + i, F(tl.load(x + i), tl.load(y + i), tl.load(z + i)))


def results(name: str, *inputs: np.ndarray, dtype=None, executed: bool = False) -> np.ndarray:
    """What the machine code computes; with `executed` the executor as well, which must agree to a few units."""
    padded = [np.resize(values, SIZE) for values in inputs]
    three = (padded * 3)[:3] if len(padded) == 1 else [*padded, padded[0]][:3]
    out = np.zeros(SIZE, dtype or inputs[-1].dtype)
    compiled = apply[(1,)](out, *three, getattr(libdevice, name), len(inputs), SIZE)
    if executed:
        again = np.zeros_like(out)
        run(compiled.job.module("tt"), [again, *three], (1,))
        np.testing.assert_allclose(again, out, rtol=1e-5 if out.dtype == np.float32 else 1e-11, atol=1e-12)
    return out[: len(inputs[0])]


RNG = np.random.default_rng(0)


def signed(low: float, high: float, count: int) -> np.ndarray:
    return np.exp2(RNG.uniform(math.log2(low), math.log2(high), count)) * RNG.choice([-1, 1], count)


def erfcx(x: float) -> float:
    if x < 25:
        return math.exp(x * x) * math.erfc(x)
    return sum((-1) ** k * math.prod(range(1, 2 * k, 2)) / (2 * x * x) ** k for k in range(6)) / (
        x * math.sqrt(math.pi)
    )


def bessel_first(n: int, x: float) -> float:
    """The integral of a period, by a sum that converges as fast as powers."""
    t = np.arange(4096) * (2 * math.pi / 4096)
    return float(np.cos(n * t - x * np.sin(t)).mean())


@cache
def quadrature() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(400)


def bessel_second(n: int, x: float) -> float:
    nodes, weights = quadrature()
    a = (nodes + 1) * math.pi / 2
    first = float((np.sin(x * np.sin(a) - n * a) * weights).sum() / 2)
    top = math.asinh(60 / x) + 3 + n / 3
    t = (nodes + 1) * top / 2
    exponent = -x * np.sinh(t)
    values = np.exp(n * t + exponent) + (-1) ** n * np.exp(-n * t + exponent)
    return first - float((values * weights).sum()) * top / 2 / math.pi


def modified(n: int, x: float) -> float:
    t = np.arange(512) * (2 * math.pi / 512)
    return float((np.exp(x * np.cos(t)) * np.cos(n * t)).mean())


MASS = np.concatenate([RNG.uniform(0, 1, 80), np.exp2(-RNG.uniform(1, 900, 30)), [0.5, 0.02425, 0.1, 0.9]])
UNIT = np.concatenate([RNG.uniform(-1, 1, 80), signed(1e-12, 1e-2, 20), [0.0, 0.5, -0.5, 0.999999]])
REAL = np.concatenate([RNG.uniform(-5, 5, 60), RNG.uniform(0, 30, 40), [0.0, 1.0, 2.0, 8.0, 0.125]])
GAMMA = np.concatenate([RNG.uniform(-20, 0, 40), RNG.uniform(0, 20, 40), RNG.uniform(20, 170, 20), [1.0, 2.0, 0.5]])
WAVES = np.concatenate([RNG.uniform(0.01, 8, 50), RNG.uniform(8, 300, 40), [7.999, 8.0, 8.001, 1e-5]])

# Name -> the reference, numbers, the relative error in fp64, and the absolute one.
SPECIAL = {
    "erfc": (math.erfc, np.concatenate([np.minimum(REAL, 26), -REAL]), 1e-14, 0),
    "erfcx": (erfcx, np.concatenate([REAL, [50.0, 1e5]]), 1e-13, 0),
    "normcdf": (lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), np.concatenate([REAL, -REAL, [-30.0]]), 1e-12, 0),
    "normcdfinv": (NORMAL.inv_cdf, MASS, 1e-12, 1e-15),
    "erfcinv": (lambda x: -NORMAL.inv_cdf(x / 2) / math.sqrt(2), MASS * 2, 1e-12, 1e-15),
    "erfinv": (lambda x: NORMAL.inv_cdf((1 + x) / 2) / math.sqrt(2), UNIT, 1e-11, 3e-16),
    "lgamma": (math.lgamma, GAMMA, 1e-12, 1e-12),
    "tgamma": (math.gamma, GAMMA, 1e-12, 0),
    "j0": (lambda x: bessel_first(0, x), np.concatenate([WAVES, -WAVES[:9]]), 1e-13, 1e-14),
    "j1": (lambda x: bessel_first(1, x), np.concatenate([WAVES, -WAVES[:9]]), 1e-13, 1e-14),
    "y0": (lambda x: bessel_second(0, x), WAVES, 1e-12, 1e-12),
    "y1": (lambda x: bessel_second(1, x), WAVES, 1e-12, 1e-12),
    "cyl_bessel_i0": (lambda x: modified(0, x), REAL, 1e-13, 0),
    "cyl_bessel_i1": (lambda x: modified(1, x), REAL, 1e-12, 1e-15),
}


def some(names: Iterable[str], *quick: str) -> list[Any]:
    """All names; those that are not named again only in the long tests."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", some(SPECIAL, "erfc", "erfcx", "normcdfinv", "erfinv", "tgamma", "j0", "y1"))
def test_special_functions(name: str):
    reference, numbers, relative, absolute = SPECIAL[name]
    expected = np.array([reference(float(x)) for x in numbers])
    np.testing.assert_allclose(results(name, numbers, executed=True), expected, rtol=relative, atol=absolute)
    narrow = numbers.astype(np.float32)
    inside = (np.abs(narrow) > 1e-30) | (numbers == 0)
    expected = np.array([reference(float(x)) for x in narrow[inside]])
    with np.errstate(over="ignore"):
        expected = expected.astype(np.float32)
    # fp32 is computed in fp64: one rounding.
    np.testing.assert_allclose(results(name, narrow)[inside], expected, rtol=1.3e-7, atol=absolute)


@pytest.mark.parametrize(
    ("name", "numbers", "expected"),
    [
        ("erfc", [math.inf, -math.inf, math.nan, 0.0, 30.0], [0, 2, math.nan, 1, 0]),
        ("erfcx", [math.inf, -30.0, math.nan], [0, math.inf, math.nan]),
        ("normcdf", [math.inf, -math.inf, math.nan], [1, 0, math.nan]),
        ("normcdfinv", [0.0, 1.0, -0.5, 1.5, math.nan, 0.5], [-math.inf, math.inf, math.nan, math.nan, math.nan, 0]),
        ("erfcinv", [0.0, 2.0, -1.0, 3.0, 1.0], [math.inf, -math.inf, math.nan, math.nan, 0]),
        ("erfinv", [1.0, -1.0, 1.5, math.nan, 0.0], [math.inf, -math.inf, math.nan, math.nan, 0]),
        ("lgamma", [0.0, -3.0, math.inf, -math.inf, math.nan], [math.inf] * 4 + [math.nan]),
        ("tgamma", [0.0, -0.0, -3.0, math.inf, math.nan], [math.inf, -math.inf, math.nan, math.inf, math.nan]),
        ("j0", [0.0, math.inf, math.nan], [1, 0, math.nan]),
        ("j1", [0.0, -math.inf, math.nan], [0, 0, math.nan]),
        ("y0", [0.0, -1.0, math.inf, math.nan], [-math.inf, math.nan, 0, math.nan]),
        ("y1", [0.0, -1.0, math.inf, math.nan], [-math.inf, math.nan, 0, math.nan]),
        ("cyl_bessel_i0", [0.0, math.inf, -math.inf, math.nan, 800.0], [1, math.inf, math.inf, math.nan, math.inf]),
        ("cyl_bessel_i1", [0.0, math.inf, -math.inf, math.nan], [0, math.inf, -math.inf, math.nan]),
    ],
)  # fmt: skip
def test_edges(name: str, numbers: list[float], expected: list[float]):
    np.testing.assert_allclose(results(name, np.array(numbers)), expected, rtol=1e-15)


@pytest.mark.parametrize("name", ["jn", "yn"])
def test_bessel_functions_of_integer_order(name: str):
    orders = RNG.integers(0, 30, 100).astype(np.int32)
    numbers = np.concatenate([RNG.uniform(0.5, 40, 90), [0.5, 1.0, 2.0, 5.0, 29.0, 100.0, 3.0, 8.0, 12.0, 20.0]])
    reference = {"jn": bessel_first, "yn": bessel_second}[name]
    if name == "yn":
        orders %= 8
    expected = np.array([reference(int(n), float(x)) for n, x in zip(orders, numbers, strict=True)])
    found = results(name, orders, numbers)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    edges = results(name, np.array([-1, 2, 2, 0, 3], np.int32), np.array([1.0, 0.0, math.inf, 0.0, -2.0]))
    if name == "jn":
        np.testing.assert_allclose(edges, [math.nan, 0, 0, 1, -bessel_first(3, 2.0)], atol=1e-14)
    else:
        np.testing.assert_array_equal(edges, [math.nan, -math.inf, 0, -math.inf, math.nan])


EXACT = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "rcp": lambda x: 1 / x,
    "fma": lambda x, y, z: x * y + z,
}


def rounded(exact: Fraction, rounding: str, dtype) -> float:
    """An exact number rounded to a dtype."""
    with np.errstate(over="ignore"):
        near = dtype(float(exact))
    below, above = np.nextafter(near, dtype(-np.inf)), np.nextafter(near, dtype(np.inf))
    is_below = near < 0 if np.isinf(near) else Fraction(float(near)) < exact
    is_exact = np.isfinite(near) and Fraction(float(near)) == exact
    low = near if is_below or is_exact else below
    high = near if is_exact or not is_below else above
    return float({"rd": low, "ru": high, "rz": low if exact >= 0 else high}[rounding])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rounding", ["rz", "rd", "ru"])
@pytest.mark.parametrize("name", some(EXACT, "add", "fma", "rcp"))
def test_directed_arithmetic(name: str, rounding: str, dtype):
    count = EXACT[name].__code__.co_argcount
    numbers = [
        np.concatenate([signed(1e-3, 1e3, 90), signed(1e-12, 1e12, 20), [1.0, -1.0, 3.0, 7.0, 0.1, 1e30]]).astype(dtype)
        for _ in range(count)
    ]
    found = results(f"{name}_{rounding}", *numbers)
    expected = [
        rounded(EXACT[name](*(Fraction(float(part[i])) for part in numbers)), rounding, dtype)
        for i in range(len(found))
    ]
    np.testing.assert_array_equal(found, np.array(expected, dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rounding", ["rz", "rd", "ru"])
def test_directed_roots_and_overflow(rounding: str, dtype):
    numbers = np.abs(np.concatenate([signed(1e-6, 1e6, 100), [1.0, 4.0, 2.0, 0.0]])).astype(dtype)
    found = results(f"sqrt_{rounding}", numbers)
    for x, root in zip(numbers, found, strict=True):
        square, step = Fraction(float(root)) ** 2, Fraction(float(np.nextafter(root, dtype(np.inf)))) ** 2
        below = Fraction(float(np.nextafter(root, dtype(0)))) ** 2
        exact = Fraction(float(x))
        assert below < exact <= square if rounding == "ru" and x else square <= exact < step or not x
    most = np.finfo(dtype).max
    pair = np.array([most, -most], dtype)
    expected = {"rz": [most, -most], "rd": [most, -np.inf], "ru": [np.inf, -most]}[rounding]
    np.testing.assert_array_equal(results(f"add_{rounding}", pair, pair), expected)
    np.testing.assert_array_equal(results(f"mul_{rounding}", pair, np.abs(pair)), expected)
    np.testing.assert_array_equal(results(f"div_{rounding}", pair, np.zeros(2, dtype)), [np.inf, -np.inf])


@pytest.mark.parametrize("rounding", ["rz", "rd", "ru"])
@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        ("int2float", np.int32, np.float32), ("uint2float", np.uint32, np.float32), ("ll2float", np.int64, np.float32),
        ("ull2float", np.uint64, np.float32), ("ll2double", np.int64, np.float64),
        ("ull2double", np.uint64, np.float64),
        ("double2float", np.float64, np.float32),
    ],
)  # fmt: skip
def test_directed_conversions(name: str, source, target, rounding: str):
    if source is np.float64:
        numbers = np.concatenate([signed(1e-30, 1e30, 100), [1.0, 0.1, 1e300, -1e300]])
    else:
        limits = np.iinfo(source)
        numbers = RNG.integers(limits.min, limits.max, 100, dtype=source, endpoint=True)
        numbers = np.concatenate([numbers, np.array([limits.min, limits.max, 0, 1, 2**24 + 1], source)])
    found = results(f"{name}_{rounding}", numbers, dtype=target)
    expected = [
        rounded(Fraction(float(x)) if source is np.float64 else Fraction(int(x)), rounding, target) for x in numbers
    ]
    np.testing.assert_array_equal(found, np.array(expected, target))


def test_bits():
    x = np.concatenate([signed(1e-200, 1e200, 60), [0.0, -1.0, np.inf]])
    bits = x.view(np.int64)
    high, low = (bits >> 32).astype(np.int32), bits.astype(np.int32)
    np.testing.assert_array_equal(results("double2hiint", x, dtype=np.int32), high)
    np.testing.assert_array_equal(results("double2loint", x, dtype=np.int32), low)
    np.testing.assert_array_equal(results("hiloint2double", high, low, dtype=np.float64), x)
    nonzero = x[np.isfinite(x) & (x != 0)]
    np.testing.assert_allclose(results("rcp64h", nonzero), 1 / nonzero, rtol=2.0**-20)
    assert not np.any(results("rcp64h", nonzero).view(np.int64) & 0xFFFFFFFF)
    positive = np.abs(signed(1e-30, 1e30, 100)).astype(np.float32)
    np.testing.assert_array_equal(
        results("rsqrt_rn", positive), (1 / np.sqrt(positive.astype(np.float64))).astype(np.float32)
    )
    a, b, s = RNG.integers(-(2**31), 2**31, (3, 100)).astype(np.int32)
    pool = np.stack([a, b], 1).view(np.uint8).reshape(100, 8)
    chosen = np.stack([pool[np.arange(100), (s >> (4 * k)) & 7] for k in range(4)], 1)
    np.testing.assert_array_equal(results("byte_perm", a, b, s), np.ascontiguousarray(chosen).view(np.int32)[:, 0])
