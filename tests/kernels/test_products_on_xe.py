"""Matrix products on Xe, emulated where there is no GPU, against numpy in float64: dtypes, transposed operands, few
rows, odd addresses, any strides, batches, nothing to add up, epilogues. A few cases in every run, all under `slow`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accuracy import assert_accurate, dtype_of, random, wide
from mltriton.errors import TargetError
from mltriton.kernels import grouped_gemm, matmul, split_k_matmul, stream_k_matmul

pytest.importorskip("dpctl")
RNG = np.random.default_rng(41)
STORED = {"bfloat16": np.uint16, "float8_e4m3fn": np.uint8, "float8_e5m2": np.uint8}  # what numpy has not
TARGETS = ("xe:pvc", "xe:bmg", "xe:lnl", "xe:ptl")


def placed(x: Any, start: int, turned: bool) -> Any:
    """A copy that begins `start` elements behind an address for block accesses; `turned`: its columns lie together."""
    source = x.swapaxes(-1, -2) if turned else x
    size = math.prod(x.shape)
    memory = np.zeros(size + start + 64, STORED.get(dtype_of(x), dtype_of(x)))
    first = -memory.ctypes.data % 64 // memory.itemsize + start
    made: Any = memory[first : first + size].reshape(source.shape)
    if dtype_of(x) in STORED:
        made = pytest.importorskip("torch").from_numpy(made).view(x.dtype)
    made[...] = source
    return made.swapaxes(-1, -2) if turned else made


def check(a: Any, b: Any, product: Callable[..., Any] = matmul, **options: Any) -> None:
    """Multiply; errors are measured by |a| |b|, those of integers are none."""
    whole = dtype_of(a) in ("int8", "uint8")
    c = product(a, b, out_dtype="int32" if whole else "float32", **options)
    if whole:
        np.testing.assert_array_equal(c, wide(a) @ wide(b))
    else:
        assert_accurate(c, wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b)))


CASES = [
    (dtype, (left, right))
    for dtype in ("float16", "bfloat16", "float32", "int8", "uint8", "float8_e4m3fn", "float8_e5m2")
    for left in (False, True)
    for right in (False, True)
]
QUICK = {("bfloat16", (False, True)), ("float32", (True, True)), ("uint8", (False, False))}


@pytest.mark.parametrize(
    ("dtype", "turned"), [pytest.param(*case, marks=[] if case in QUICK else [pytest.mark.slow]) for case in CASES]
)
def test_dtypes_turned_operands_and_odd_addresses(dtype: str, turned: tuple[bool, bool]) -> None:
    case, kind = CASES.index((dtype, turned)), "torch" if dtype in STORED else "numpy"
    for (m, n, k), start in (((1, 70, 40), 0), ((7, 33, 100), 0), ((16, 64, 64), 0), ((37, 130, 48), 1 + case % 3)):
        a, b = (random(RNG, shape, dtype, kind) for shape in ((m, k), (k, n)))
        a, b = placed(a, start, turned[0]), placed(b, start, turned[1])
        check(a, b, target=TARGETS[case % 4])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_few_rows(dtype: str) -> None:
    for m in range(1, 17):
        check(random(RNG, (m, 48), dtype), random(RNG, (48, 64), dtype), target="xe:pvc")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_any_strides(dtype: str) -> None:
    """Every other element, backwards, parts of rows, one row for all, one column by one row, a batch of one matrix."""
    x = random(RNG, (3, 100, 200), dtype)
    for a, b in (
        (x[0, ::2, ::3], x[1, :67, 1::2]),
        (x[0, ::-1, :64], x[1, 20:84, ::-1]),
        (x[2, 3:40, 5:69], x[2, 7:71, 9:80]),
        (np.broadcast_to(x[0, :1, :50], (20, 50)), x[0, 50:, 1:34]),
        (x[0, :33, :1], x[0, :1, :33]),
        (x[0, :, :32], x[:, :32, 3:50]),
        (x[:2, None, :17, :40], x[None, :, :40, :33]),
    ):
        check(a, b, target="xe:bmg")


def test_nothing_to_compute_or_to_add_up() -> None:
    for m, n, k in ((0, 5, 5), (5, 0, 5), (0, 0, 0), (1, 1, 1), (5, 5, 0)):
        for dtype in ("float16", "int8"):
            check(random(RNG, (m, k), dtype), random(RNG, (k, n), dtype), target="xe:pvc")
    a, b, bias = (random(RNG, shape, "float16") for shape in ((5, 0), (0, 6), (6,)))
    for product in (matmul, split_k_matmul, stream_k_matmul):
        np.testing.assert_array_equal(product(a, b, bias=bias, target="xe:pvc"), np.broadcast_to(bias, (5, 6)))


def test_doubles_are_refused() -> None:
    with pytest.raises(TargetError):
        matmul(*(random(RNG, (16, 16), "float64") for _ in range(2)), target="xe:pvc")


ACTIVATIONS: list[tuple[str | None, Callable[[Any], Any]]] = [
    ("silu", lambda x: x / (1 + np.exp(-x))),
    ("gelu", lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))),
    ("gelu_tanh", lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
    (None, lambda x: x),
]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("product", [matmul, split_k_matmul, stream_k_matmul])
def test_epilogues(product: Callable[..., Any], dtype: str) -> None:
    """A bias, an addend, an activation, relu in front; a batch with few rows."""
    for number, (name, activation) in enumerate(ACTIVATIONS):
        batch, m, n, k = [((), 40, 70, 200), ((2,), 3, 48, 97)][number % 2]
        a, b, bias, add = (random(RNG, shape, dtype) for shape in ((*batch, m, k), (*batch, k, n), (n,), (m, n)))
        parts = {} if product is matmul else {"splits" if product is split_k_matmul else "programs": 3 + number}
        c = product(
            a, b, bias=bias, add=add, activation=name, prologue="relu", out_dtype="float32", target=TARGETS[number],
            **parts,
        )  # fmt: skip
        left = np.maximum(wide(a), 0)
        size = np.abs(left) @ np.abs(wide(b)) + np.abs(wide(bias)) + np.abs(wide(add))
        # An activation is steep by 1.13 at most, and right to a few roundings of its argument.
        assert_accurate(c, activation(left @ wide(b) + wide(bias) + wide(add)), 2 * size)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
def test_groups(dtype: str) -> None:
    """Of all sizes, some turned, some at odd addresses, some empty."""
    sizes = [(40, 70, 50), (1, 16, 16), (5, 40, 0), (0, 8, 8), (33, 26, 64), (7, 64, 64)]
    a = [placed(random(RNG, (m, k), dtype), place % 3, place % 2 == 1) for place, (m, _, k) in enumerate(sizes)]
    b = [placed(random(RNG, (k, n), dtype), place % 2, place > 3) for place, (_, n, k) in enumerate(sizes)]
    found = grouped_gemm(a, b, out_dtype="int32" if dtype == "int8" else "float32", target="xe:lnl")
    for left, right, c in zip(a, b, found, strict=True):
        check(left, right, lambda *_, made=c, **__: made)
