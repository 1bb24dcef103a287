"""`matmul` with a prologue and an epilogue against numpy in float64: functions, bias, residual, dtypes, mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from accuracy import FLOATS, ROUNDING, SUMS, assert_accurate, dtype_of, random, wide
from combinations import each_pair, each_value
from mltriton.errors import ArgumentError
from mltriton.kernels import gemm, matmul
from mltriton.kernels.epilogues import FUNCTIONS
from mltriton.kernels.products import product_of

RNG = np.random.default_rng(7)

REFERENCES: dict[str | None, Callable[[np.ndarray], np.ndarray]] = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + np.vectorize(math.erf, otypes=[np.float64])(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "exp": np.exp,
}


def check(
    a: Any,
    b: Any,
    *,
    bias: Any = None,
    add: Any = None,
    activation: str | None = None,
    prologue: str | None = None,
    out: str | None = None,
    **others: Any,
) -> Any:
    """Compare with the same in float64; each function may carry the errors of its argument with a slope of e at most
    and a few roundings of its own. Returns the result.
    """
    c = matmul(a, b, bias=bias, add=add, activation=activation, prologue=prologue, out_dtype=out, **others)
    assert type(c) is type(a)
    assert dtype_of(c) == (out or dtype_of(a))
    left, right = REFERENCES[prologue](wide(a)), wide(b)
    exact, size = left @ right, np.abs(left) @ np.abs(right)
    for addend in (bias, add):
        if addend is not None:
            exact, size = exact + wide(addend), size + np.abs(wide(addend))
    if prologue is not None:  # what it gives is rounded to the dtype of a
        size = size * (1 + 2 * ROUNDING[dtype_of(a)] * 2.0**20)
    size = size * max(1.0, SUMS[dtype_of(a)] / SUMS[dtype_of(c)])
    reference = REFERENCES[activation](exact)
    slope = 1.2 if activation != "exp" else np.exp(exact)
    assert_accurate(c, reference, size * slope + np.abs(reference))
    return c


@each_value(("activation", REFERENCES), ("dtype", FLOATS))
def test_every_activation_and_dtype(activation: str | None, dtype: str) -> None:
    a, b = random(RNG, (45, 70), dtype), random(RNG, (70, 37), dtype)
    check(a, b / 16 if dtype != "bfloat16" else b * 0.0625, bias=random(RNG, (37,), dtype), activation=activation)


@each_pair(("prologue", FUNCTIONS), ("dtype", FLOATS), ("n", [37, 700]))
def test_every_prologue_and_dtype(prologue: str, dtype: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few columns: inside the product's kernel. Many: before it."""
    monkeypatch.setattr(gemm, "REPEATED", 0)
    check(random(RNG, (45, 70), dtype), random(RNG, (70, n), dtype), prologue=prologue)


@pytest.mark.parametrize(("size", "launches"), [(128, 1), (512, 2)])
def test_prologues_of_small_products_are_computed_again(
    size: int, launches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each block of columns on 16 threads, where that takes less than a launch."""
    monkeypatch.setattr(gemm, "num_threads", lambda: 16)
    a = random(RNG, (size, size), "float32")
    options = dict.fromkeys(("bias", "add", "activation", "out_dtype"))
    assert len(list(gemm._launches(product_of(a, a, prologue="exp", **options), "auto", None))) == launches
    check(a, a, prologue="exp")


def test_the_edge_of_k_stays_zero_where_the_prologue_of_zero_is_infinite() -> None:
    @triton.jit
    def reciprocal(x: Any) -> Any:
        return 1 / x

    a, b = RNG.uniform(0.5, 2.0, (20, 33)), random(RNG, (33, 20), "float64")
    assert_accurate(matmul(a, b, prologue=reciprocal), 1 / a @ b, np.abs(1 / a) @ np.abs(b))


def test_a_function_of_ones_own() -> None:
    @triton.jit
    def clipped(x: Any) -> Any:
        return tl.minimum(tl.maximum(x, -1.0), 1.0)

    a, b = random(RNG, (20, 33)), random(RNG, (33, 20))
    c = matmul(a, b, activation=clipped)
    assert_accurate(c, np.clip(wide(a) @ wide(b), -1, 1), np.abs(a) @ np.abs(b))


@each_value(("m, n, k", [(1, 1, 1), (1, 100, 33), (129, 257, 65), (64, 64, 64)]), ("kind", ["numpy", "torch"]))
def test_everything_at_once(m: int, n: int, k: int, kind: str) -> None:
    a, b = random(RNG, (m, k), kind=kind), random(RNG, (k, n), kind=kind)
    bias, add = random(RNG, (n,), kind=kind), random(RNG, (m, n), kind=kind)
    check(a * 0.1, b, bias=bias, add=add, activation="gelu", prologue="silu", out="float16")


STRIDED: dict[str, Callable[[], dict[str, Any]]] = {
    "a transposed": lambda: {"a": random(RNG, (50, 40)).T},
    "b transposed": lambda: {"b": random(RNG, (60, 50)).T},
    "bias every third": lambda: {"bias": random(RNG, (180,))[::3]},
    "add transposed": lambda: {"add": random(RNG, (60, 40)).T},
    "add a row": lambda: {"add": random(RNG, (60,))},
    "add a column": lambda: {"add": random(RNG, (40, 1))},
    "all backwards": lambda: {
        "a": random(RNG, (40, 50))[::-1, ::-1],
        "bias": random(RNG, (60,))[::-1],
        "add": random(RNG, (80, 60))[::-2],
    },
}


@pytest.mark.parametrize("case", STRIDED)
def test_any_strides(case: str) -> None:
    arrays = {"a": random(RNG, (40, 50)), "b": random(RNG, (50, 60)), **STRIDED[case]()}
    check(**arrays, activation="silu")


@pytest.mark.parametrize("add_shape", [(2, 3, 20, 25), (3, 20, 25), (2, 1, 20, 25), (1, 25)])
def test_batches(add_shape: tuple[int, ...]) -> None:
    a, b = random(RNG, (2, 1, 20, 30)), random(RNG, (3, 30, 25))
    check(a, b, add=random(RNG, add_shape), bias=random(RNG, (25,)), activation="relu", prologue="relu")


@pytest.mark.parametrize("dtype, out", [("float16", "float32"), ("float32", "float64"), ("float64", "float32")])
def test_out_dtype(dtype: str, out: str) -> None:
    check(random(RNG, (20, 30), dtype), random(RNG, (30, 40), dtype), out=out)


def test_out_dtype_as_the_librarys_own() -> None:
    torch = pytest.importorskip("torch")
    a = random(RNG, (20, 30), "bfloat16")
    assert matmul(a, a.T, out_dtype=torch.float32).dtype == torch.float32
    assert matmul(np.ones((3, 3)), np.ones((3, 3)), out_dtype=np.float32).dtype == np.float32


def test_operands_of_other_dtypes() -> None:
    a, b = random(RNG, (20, 30), "float16"), random(RNG, (30, 40), "float16")
    check(a, b, bias=random(RNG, (40,), "float32"), add=random(RNG, (20, 40), "float64"), out="float32")


def test_integers_are_exact() -> None:
    a, b = random(RNG, (33, 100), "int8"), random(RNG, (100, 40), "int8")
    bias, add = RNG.integers(-1000, 1000, 40, np.int32), random(RNG, (33, 40), "int8")
    exact = a.astype(np.int32) @ b.astype(np.int32)
    np.testing.assert_array_equal(matmul(a, b, out_dtype="int32"), exact)
    result = matmul(a, b, bias=bias, add=add, activation="relu", out_dtype="int32")
    np.testing.assert_array_equal(result, np.maximum(exact + bias + add, 0))


def test_integers_become_floats() -> None:
    a, b = random(RNG, (33, 100), "int8"), random(RNG, (100, 40), "int8")
    bias = random(RNG, (40,))
    c = matmul(a, b, bias=bias, activation="gelu", out_dtype="float32")
    assert_accurate(c, REFERENCES["gelu"](wide(a) @ wide(b) + bias), np.abs(wide(a)) @ np.abs(wide(b)))


def test_an_empty_sum_leaves_bias_and_add() -> None:
    bias, add = random(RNG, (4,)), random(RNG, (3, 4))
    c = matmul(np.ones((3, 0), np.float32), np.ones((0, 4), np.float32), bias=bias, add=add)
    np.testing.assert_array_equal(c, bias + add)


def test_nothing_to_compute() -> None:
    a, b = np.ones((0, 5), np.float32), np.ones((5, 3), np.float32)
    assert matmul(a, b, bias=b[0], activation="gelu", out_dtype="float16").shape == (0, 3)


def test_relu_keeps_a_nan() -> None:
    a = random(RNG, (20, 30))
    a[3] = np.nan
    assert np.isnan(matmul(a, random(RNG, (30, 40)), activation="relu")[3]).all()


ONES = np.ones((4, 4), np.float32)
BYTES = np.ones((4, 4), np.int8)


@pytest.mark.parametrize(
    "a, around, message",
    [
        (ONES, {"activation": "tanhh"}, "matmul: unknown activation"),
        (ONES, {"prologue": np.exp}, "matmul: unknown prologue"),
        (ONES, {"bias": ONES[0, :3]}, "matmul: the bias does not fit"),
        (ONES, {"bias": ONES}, "matmul: the bias does not fit"),
        (ONES, {"add": ONES[:3]}, "matmul: the added matrix does not fit"),
        (ONES, {"add": ONES[None]}, "matmul: the added matrix does not fit"),
        (ONES, {"add": 1.0}, "add is no array"),
        (ONES, {"add": ONES.astype(complex)}, "matmul: unsupported dtype of add"),
        (ONES, {"out_dtype": "float12"}, "numpy has no such dtype"),
        (ONES, {"out_dtype": "uint16"}, "matmul: unsupported dtype of out_dtype"),
        (ONES, {"out_dtype": "int32"}, "matmul: an int32 result has only integer operands"),
        (BYTES, {"activation": "gelu"}, "matmul: an int8 result has only integer operands"),
        (BYTES, {"bias": ONES[0]}, "matmul: an int8 result has only integer operands"),
        (BYTES, {"prologue": "relu"}, "matmul: a prologue is for floats"),
        (ONES, {"bias": ONES[0], "form": "pointer"}, "matmul: only a plain product has forms"),
        (ONES, {"split_k": 0}, "matmul: split_k must be positive"),
        (ONES, {"split_k": 2.5}, "matmul: split_k must be an integer"),
        (ONES, {"split_k": True}, "matmul: split_k must be an integer"),
    ],
)
def test_mistakes(a: Any, around: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        matmul(a, a, **around)


def test_numpy_and_torch_do_not_mix() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ArgumentError, match="the arrays differ in kind"):
        matmul(ONES, ONES, bias=torch.ones(4))
