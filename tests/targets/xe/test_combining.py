"""Reductions, scans and atomic updates of what was converted, of every type on Xe, emulated, against numpy."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl

from ..simt import ties
from .element_moves import FLOATS, TYPES, packed, raw, values

pytestmark = pytest.mark.usefixtures("queue")
RNG = np.random.default_rng(31)
Array = np.ndarray[Any, Any]


@triton.jit
def first(a, b):
    return a


@triton.jit
def chosen(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def combined(
    x, y, H, W, SRC: tl.constexpr, KIND: tl.constexpr, OUT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    HOW: tl.constexpr, AXIS: tl.constexpr,
):  # fmt: skip
    here, there = x.to(tl.pointer_type(SRC), bitcast=True), y.to(tl.pointer_type(OUT), bitcast=True)
    i, j = tl.arange(0, BM), tl.arange(0, BN)
    inside = (i[:, None] < H) & (j[None, :] < W)
    value = tl.load(here + i[:, None] * BN + j[None, :], mask=inside, other=1).to(KIND)
    if HOW == "sum":
        result = tl.sum(value, AXIS)
    elif HOW == "max":
        result = tl.max(value, AXIS)
    elif HOW == "min":
        result = tl.min(value, AXIS)
    elif HOW == "argmax":
        result = tl.argmax(value, AXIS)
    elif HOW == "xor":
        result = tl.xor_sum(value, AXIS)
    elif HOW == "cumsum":
        result = tl.cumsum(value, AXIS)
    elif HOW == "maxima":
        result = tl.associative_scan(value, AXIS, chosen)
    elif HOW == "maxima behind":
        result = tl.associative_scan(value, AXIS, chosen, reverse=True)
    else:
        result = tl.associative_scan(value, AXIS, first)
    if len(result.shape) == 2:
        tl.store(there + i[:, None] * BN + j[None, :], result.to(OUT))
    else:
        tl.store(there + tl.arange(0, BN if AXIS == 0 else BM), result.to(OUT))


EXPECTED = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "argmax": np.argmax,
    "xor": np.bitwise_xor.reduce,
    "cumsum": np.cumsum,
    "maxima": np.maximum.accumulate,
    "maxima behind": lambda x, axis: np.flip(np.maximum.accumulate(np.flip(x, axis), axis), axis),
    "first": lambda x, axis: np.broadcast_to(np.take(x, [0], axis), x.shape),
}


def combine(rng: random.Random, target: str = "xe:pvc") -> None:
    """One random case, of whole numbers that every type has, also summed."""
    source, kind = rng.choice(TYPES), rng.choice(TYPES)
    how = rng.choice(["max" if kind in FLOATS and name == "xor" else name for name in EXPECTED])
    longest = 8 if kind.startswith("float8") else 64  # whose sums are numbers of the type
    rows, columns = rng.choice([1, 4, 8]), min(longest, rng.choice([1, 4, 16, 32, 64]))
    if rng.random() < 0.4 and longest > 8:
        rows, columns = columns, rows
    inside = (max(1, rows - 1), max(1, columns - 3)) if rng.random() < 0.3 else (rows, columns)
    held = RNG.integers(0 if "u" in (source[0], kind[0]) else -1, 2, (rows, columns))
    seen = np.ones_like(held)
    seen[: inside[0], : inside[1]] = held[: inside[0], : inside[1]]
    axis, out = rng.choice([0, 1]), "int32" if how == "argmax" else "float32" if kind in FLOATS else "int64"
    expected = EXPECTED[how](seen, axis=axis)
    y = np.zeros(expected.size, raw(out))
    types = (getattr(tl, name) for name in (source, kind, out))
    options = {"num_warps": rng.choice([1, 2, 4]), "codegen": rng.choice(["simt", "simd"])}
    sizes = (rows, columns, how, axis)
    combined[(1,)](packed(held, source), y, *inside, *types, *sizes, target=target, **options)
    message = f"{source} as {kind}: {how} of {rows}x{columns} along {axis}, inside {inside}, {options}"
    np.testing.assert_array_equal(values(y, out).reshape(expected.shape).astype(np.int64), expected, err_msg=message)


@pytest.mark.parametrize("seed", range(5))
def test_combining(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        combine(rng)


@triton.jit
def updated(
    x, y, n, SRC: tl.constexpr, KIND: tl.constexpr, HOW: tl.constexpr, SIZE: tl.constexpr, PLACES: tl.constexpr
):
    at = tl.arange(0, SIZE)
    here, there = x.to(tl.pointer_type(SRC), bitcast=True), y.to(tl.pointer_type(KIND), bitcast=True)
    value, there, inside = tl.load(here + at, mask=at < n, other=0).to(KIND), there + at % PLACES, at < n
    if HOW == "add":
        tl.atomic_add(there, value, mask=inside)
    elif HOW == "max":
        tl.atomic_max(there, value, mask=inside)
    elif HOW == "min":
        tl.atomic_min(there, value, mask=inside)
    elif HOW == "and":
        tl.atomic_and(there, value, mask=inside)
    elif HOW == "or":
        tl.atomic_or(there, value, mask=inside)
    else:
        tl.atomic_xor(there, value, mask=inside)


UPDATES = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
UPDATED = {
    **dict.fromkeys(("int32", "uint32", "int64", "uint64"), tuple(UPDATES)),
    **dict.fromkeys(("float32", "float64"), ("add", "max", "min")),
    **dict.fromkeys(("float16", "bfloat16"), ("add",)),
}


def update(rng: random.Random, target: str = "xe:pvc") -> None:
    """One random case: several lanes update one place."""
    source, kind = rng.choice(TYPES), rng.choice(list(UPDATED))
    how, size, places = rng.choice(UPDATED[kind]), rng.choice([1, 4, 16, 64, 128]), rng.choice([1, 4, 16, 64])
    count = max(1, size - 3) if rng.random() < 0.3 else size
    held, before = RNG.integers(0 if "u" in (source[0], kind[0]) else -1, 2, size), RNG.integers(0, 5, places)
    expected = before.copy()
    UPDATES[how].at(expected, np.arange(count) % places, held[:count])
    y, assert_equal = packed(before, kind), np.testing.assert_array_equal
    types = getattr(tl, source), getattr(tl, kind)
    options = {"num_warps": rng.choice([1, 2, 4]), "codegen": rng.choice(["simt", "simd"])}
    updated[(1,)](packed(held, source), y, count, *types, how, size, places, target=target, **options)
    message = f"{source} as {kind}: {how} of {size} to {places} places, {count} of them, {options}"
    assert_equal(values(y, kind).astype(np.int64), expected, err_msg=message)


@pytest.mark.parametrize("seed", range(3))
def test_atomic_updates(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        update(rng)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_many_cases(seed: int) -> None:
    rng = random.Random(1000 + seed)
    for _ in range(20):
        combine(rng, rng.choice(["xe:pvc", "xe:bmg", "xe:lnl"]))
        update(rng, rng.choice(["xe:pvc", "xe:bmg", "xe:lnl"]))


@pytest.mark.parametrize("num_warps", [1, 4])
def test_lanes_agree_about_equal_elements(num_warps: int):
    ties.check("xe:pvc", num_warps)
