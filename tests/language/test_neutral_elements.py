"""Reductions of numbers that a wrong neutral element would beat: all negative, largest or smallest, of every type.

Rows are long enough for accumulators, and short enough for none; every level agrees with numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from combinations import each_value
from mltriton.tools.verify import verify_kernel

Array = np.ndarray[Any, Any]
INTEGERS = [f"{sign}{size}" for sign in "iu" for size in (1, 2, 4, 8)]
FLOATS = ["f2", "f4", "f8"]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the kernels out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def both(a, b):
    return a & b


@triton.jit
def either(a, b):
    return a | b


@triton.jit
def odd(a, b):
    return a ^ b


@triton.jit
def greatest(a, b):
    return tl.maximum(a, b)


@triton.jit
def least(a, b):
    return tl.minimum(a, b)


@triton.jit
def extremes(x, o, place, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    """Largest and smallest elements and their places, along an axis, and of all in their own type."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + j[None, :])
    out = i if AXIS == 1 else j
    SIZE: tl.constexpr = M if AXIS == 1 else N
    tl.store(o + out, tl.max(v, AXIS))
    tl.store(o + SIZE + out, tl.min(v, AXIS))
    tl.store(o + 2 * SIZE + out, tl.reduce(v, AXIS, greatest))
    tl.store(o + 3 * SIZE + out, tl.reduce(v, AXIS, least))
    tl.store(o + 4 * SIZE + out, tl.reduce(v, AXIS, larger))
    tl.store(o + 5 * SIZE + out, tl.max(v))
    tl.store(place + out, tl.argmax(v, AXIS))
    tl.store(place + SIZE + out, tl.argmin(v, AXIS))


@triton.jit
def bits(x, o, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    """Bits of integers and sums of them."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + j[None, :])
    out = i if AXIS == 1 else j
    SIZE: tl.constexpr = M if AXIS == 1 else N
    tl.store(o + out, tl.reduce(v, AXIS, both))
    tl.store(o + SIZE + out, tl.reduce(v, AXIS, either))
    tl.store(o + 2 * SIZE + out, tl.reduce(v, AXIS, odd))
    tl.store(o + 3 * SIZE + out, tl.sum(v, AXIS))
    tl.store(o + 4 * SIZE + out, tl.xor_sum(v, AXIS))
    tl.store(o + 5 * SIZE + out, tl.reduce_or(v, AXIS))


def numbers(dtype: str, shape: tuple[int, int]) -> list[Array]:
    """All negative (for unsigned ones: all large), all the smallest, all the largest."""
    kind = np.dtype(dtype)
    limits = np.iinfo(kind) if kind.kind in "iu" else np.finfo(kind)
    low, high = kind.type(limits.min), kind.type(limits.max)
    near = np.random.default_rng(0).integers(1, 9, shape).astype(kind)
    return [high - near if kind.kind == "u" else -near, np.full(shape, low), np.full(shape, high)]


def expected_extremes(x: Array, axis: int) -> tuple[Array, Array]:
    """By numpy."""
    high, low = x.max(axis), x.min(axis)
    return np.stack([high, low, high, low, high, np.full_like(high, x.max())]), np.stack(
        [x.argmax(axis), x.argmin(axis)]
    ).astype("i4")


def expected_bits(x: Array, axis: int) -> Array:
    """By numpy."""
    reduced = [np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.add, np.bitwise_xor, np.bitwise_or]
    return np.stack([ufunc.reduce(x, axis, dtype=x.dtype) for ufunc in reduced])


def outputs(dtype: str, left: int) -> dict[str, Array]:
    """Room for what `extremes` stores."""
    return {"o": np.zeros((6, left), dtype), "place": np.zeros((2, left), "i4")}


@each_value(("dtype", [*INTEGERS, *FLOATS]), ("m, n, axis", [(2, 512, 1), (64, 16, 0)]))
def test_machine_code(dtype: str, m: int, n: int, axis: int) -> None:
    left = m if axis == 1 else n
    for x in numbers(dtype, (m, n)):
        out = outputs(dtype, left)
        extremes[(1,)](x, *out.values(), m, n, axis)
        for found, wanted in zip(out.values(), expected_extremes(x, axis), strict=True):
            np.testing.assert_array_equal(found, wanted)
        if dtype in INTEGERS:
            bits[(1,)](x, out["o"], m, n, axis)
            np.testing.assert_array_equal(out["o"], expected_bits(x, axis))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_every_level(dtype: str) -> None:
    m, n = 4, 64
    args = {"x": numbers(dtype, (m, n))[0], **outputs(dtype, m), "M": m, "N": n, "AXIS": 1}
    for target, warps in (("cpu", 1), ("generic", 4)):
        result = verify_kernel(extremes, args=args, grid=(1,), target=target, num_warps=warps, uninitialised=True)
        assert result.ok, str(result)


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize(
    "dtype",
    ["i1", "u4", *[pytest.param(t, marks=pytest.mark.slow) for t in ("u1", "i2", "u2", "i4", "i8", "u8", "f4")]],
)
def test_on_xe(dtype: str, warps: int) -> None:
    pytest.importorskip("dpctl")
    m, n, axis = (4, 128, 1) if warps == 1 else (64, 16, 0)
    for x in numbers(dtype, (m, n)):
        out = outputs(dtype, m if axis == 1 else n)
        extremes[(1,)](x, *out.values(), m, n, axis, target="xe:pvc", num_warps=warps)
        for found, wanted in zip(out.values(), expected_extremes(x, axis), strict=True):
            np.testing.assert_array_equal(found, wanted)
        if dtype in INTEGERS:
            bits[(1,)](x, out["o"], m, n, axis, target="xe:pvc", num_warps=warps)
            np.testing.assert_array_equal(out["o"], expected_bits(x, axis))
