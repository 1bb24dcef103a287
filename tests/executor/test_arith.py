"""`arith` against Python's integers and numpy in higher precision."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

RNG = np.random.default_rng(0)
EDGES = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


def integers(width: int, count: int = 64) -> Any:
    """Random integers of that width with the edges among them."""
    info = np.iinfo(EDGES[width])
    values = RNG.integers(info.min, info.max, count, dtype=EDGES[width], endpoint=True)
    values[:5] = [info.min, info.max, 0, 1, -1]
    return RNG.permutation(values)


def wrap(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def unsigned(value: int, width: int) -> int:
    return value & ((1 << width) - 1)


def divide(a: int, b: int, width: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


EXPECTED: dict[str, Callable[[int, int, int], int]] = {
    "addi": lambda a, b, w: a + b,
    "subi": lambda a, b, w: a - b,
    "muli": lambda a, b, w: a * b,
    "andi": lambda a, b, w: a & b,
    "ori": lambda a, b, w: a | b,
    "xori": lambda a, b, w: a ^ b,
    "maxsi": lambda a, b, w: max(a, b),
    "minsi": lambda a, b, w: min(a, b),
    "maxui": lambda a, b, w: max(unsigned(a, w), unsigned(b, w)),
    "minui": lambda a, b, w: min(unsigned(a, w), unsigned(b, w)),
}
DIVISIONS: dict[str, Callable[[int, int, int], int]] = {
    "divsi": divide,
    "remsi": lambda a, b, w: a - b * divide(a, b, w),
    "floordivsi": lambda a, b, w: a // b,
    "ceildivsi": lambda a, b, w: -(-a // b),
    "divui": lambda a, b, w: unsigned(a, w) // unsigned(b, w),
    "remui": lambda a, b, w: unsigned(a, w) % unsigned(b, w),
}
SHIFTS: dict[str, Callable[[int, int, int], int]] = {
    "shli": lambda a, b, w: a << b,
    "shrsi": lambda a, b, w: a >> b,
    "shrui": lambda a, b, w: unsigned(a, w) >> b,
}


def check(apply: Any, name: str, width: int, a: Any, b: Any, expected: Callable[[int, int, int], int]) -> None:
    text = f"%r = arith.{name} %x0, %x1 : tensor<Nxi{width}>"
    got = apply(text, [(f"i{width}", a), (f"i{width}", b)], f"i{width}")
    assert got.tolist() == [wrap(expected(int(x), int(y), width), width) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("width", EDGES)
@pytest.mark.parametrize("name", EXPECTED)
def test_integers_wrap(apply: Any, name: str, width: int) -> None:
    check(apply, name, width, integers(width), integers(width), EXPECTED[name])


@pytest.mark.parametrize("width", EDGES)
@pytest.mark.parametrize("name", DIVISIONS)
def test_division(apply: Any, name: str, width: int) -> None:
    divisors = integers(width)
    divisors[divisors == 0] = 7
    check(apply, name, width, integers(width), divisors, DIVISIONS[name])


@pytest.mark.parametrize("name", DIVISIONS)
def test_division_by_zero_does_not_trap(apply: Any, name: str) -> None:
    a, zero = integers(32), np.zeros(64, np.int32)
    apply(f"%r = arith.{name} %x0, %x1 : tensor<Nxi32>", [("i32", a), ("i32", zero)], "i32")


@pytest.mark.parametrize("width", EDGES)
@pytest.mark.parametrize("name", SHIFTS)
def test_shifts(apply: Any, name: str, width: int) -> None:
    amounts = RNG.integers(0, width, 64).astype(EDGES[width])
    check(apply, name, width, integers(width), amounts, SHIFTS[name])


BOOLEANS = {
    "addi": operator.xor,
    "muli": operator.and_,
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
    "maxsi": operator.and_,  # signed, true is -1
    "maxui": operator.or_,
    "minui": operator.and_,
}


@pytest.mark.parametrize("name", BOOLEANS)
def test_booleans_have_one_bit(apply: Any, name: str) -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    got = apply(f"%r = arith.{name} %x0, %x1 : tensor<Nxi1>", [("i1", a), ("i1", b)], "i1")
    assert got.tolist() == BOOLEANS[name](a, b).tolist()


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("eq", operator.eq),
        ("ne", operator.ne),
        ("slt", operator.lt),
        ("sle", operator.le),
        ("sgt", operator.gt),
        ("sge", operator.ge),
        ("ult", lambda a, b: unsigned(a, 16) < unsigned(b, 16)),
        ("uge", lambda a, b: unsigned(a, 16) >= unsigned(b, 16)),
        ("ule", lambda a, b: unsigned(a, 16) <= unsigned(b, 16)),
        ("ugt", lambda a, b: unsigned(a, 16) > unsigned(b, 16)),
    ],
)
def test_integer_comparison(apply: Any, predicate: str, expected: Callable[[int, int], bool]) -> None:
    a, b = integers(16), integers(16)
    b[:8] = a[:8]
    got = apply(f"%r = arith.cmpi {predicate}, %x0, %x1 : tensor<Nxi16>", [("i16", a), ("i16", b)], "i1")
    assert got.tolist() == [expected(int(x), int(y)) for x, y in zip(a, b, strict=True)]


NAN = math.nan
FLOAT_COMPARISONS: dict[str, list[bool]] = {  # on (1, 2), (2, 1), (1, 1), (nan, 1)
    "false": [False, False, False, False],
    "oeq": [False, False, True, False],
    "ogt": [False, True, False, False],
    "oge": [False, True, True, False],
    "olt": [True, False, False, False],
    "ole": [True, False, True, False],
    "one": [True, True, False, False],
    "ord": [True, True, True, False],
    "ueq": [False, False, True, True],
    "ugt": [False, True, False, True],
    "uge": [False, True, True, True],
    "ult": [True, False, False, True],
    "ule": [True, False, True, True],
    "une": [True, True, False, True],
    "uno": [False, False, False, True],
    "true": [True, True, True, True],
}


@pytest.mark.parametrize("predicate", FLOAT_COMPARISONS)
def test_float_comparison(apply: Any, predicate: str) -> None:
    a, b = np.array([1, 2, 1, NAN], np.float32), np.array([2, 1, 1, 1], np.float32)
    got = apply(f"%r = arith.cmpf {predicate}, %x0, %x1 : tensor<Nxf32>", [("f32", a), ("f32", b)], "i1")
    assert got.tolist() == FLOAT_COMPARISONS[predicate]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("maximumf", [2, NAN, NAN]), ("minimumf", [1, NAN, NAN]), ("maxnumf", [2, 1, 3]), ("minnumf", [1, 1, 3])],
)
def test_nan_in_maximum_and_minimum(apply: Any, name: str, expected: list[float]) -> None:
    a, b = np.array([1, 1, NAN], np.float32), np.array([2, NAN, 3], np.float32)
    got = apply(f"%r = arith.{name} %x0, %x1 : tensor<Nxf32>", [("f32", a), ("f32", b)], "f32")
    np.testing.assert_array_equal(got, np.array(expected, np.float32))


def test_bf16_rounds_after_each_operation(apply: Any) -> None:
    # 256 + 1 needs nine bits of mantissa: bf16 has eight, so the sum is the even neighbour.
    one = np.ones(1, np.float32)
    text = "%t = arith.addf %x0, %x1 : tensor<Nxbf16>\n%r = arith.subf %t, %x0 : tensor<Nxbf16>"
    assert apply(text, [("bf16", 256 * one), ("bf16", one)], "bf16").tolist() == [0.0]
    assert apply(text, [("bf16", 256 * one), ("bf16", 3 * one)], "bf16").tolist() == [4.0]


@pytest.mark.parametrize("type", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_narrow_floats_match_torch(apply: Any, name: str, type: str) -> None:
    torch = pytest.importorskip("torch")
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[type]
    a, b = ((torch.randn(1024, generator=torch.manual_seed(s)) * 10).to(dtype) for s in (0, 1))
    expected = getattr(torch, name)(a, b).float().numpy()
    numbers = [x.float().numpy().astype(np.float16 if type == "f16" else np.float32) for x in (a, b)]
    got = apply(f"%r = arith.{name}f %x0, %x1 : tensor<Nx{type}>", [(type, numbers[0]), (type, numbers[1])], type)
    np.testing.assert_array_equal(got.astype(np.float32), expected)


@pytest.mark.parametrize(
    ("operation", "source", "target", "values", "expected"),
    [
        ("extsi", "i8", "i32", [-1, 127], [-1, 127]),
        ("extui", "i8", "i32", [-1, 127], [255, 127]),
        ("extsi", "i1", "i8", [0, 1], [0, -1]),
        ("extui", "i1", "i8", [0, 1], [0, 1]),
        ("trunci", "i32", "i8", [300, -129], [44, 127]),
        ("trunci", "i32", "i1", [2, 3], [False, True]),
        ("sitofp", "i8", "f32", [-1, 5], [-1.0, 5.0]),
        ("uitofp", "i8", "f32", [-1, 5], [255.0, 5.0]),
        ("uitofp", "i1", "f32", [0, 1], [0.0, 1.0]),
        ("sitofp", "i32", "bf16", [257, 259], [256.0, 260.0]),
        ("fptosi", "f32", "i8", [-1.9, 100.5], [-1, 100]),
        ("fptoui", "f32", "i8", [0.9, 200.5], [0, -56]),
        ("bitcast", "f32", "i32", [1.0, -0.0], [0x3F800000, -(1 << 31)]),
        ("bitcast", "bf16", "i16", [1.0, -2.0], [0x3F80, -0x4000]),
        ("bitcast", "i16", "bf16", [0x3F80, -0x4000], [1.0, -2.0]),
        ("truncf", "f64", "bf16", [1.0 + 2.0**-8 + 2.0**-40, 1.0 + 2.0**-8], [1.0 + 2.0**-7, 1.0]),
        ("truncf", "f64", "f16", [1.0 + 2.0**-11 + 2.0**-40, 1.0 + 2.0**-11], [1.0 + 2.0**-10, 1.0]),
        ("extf", "bf16", "f32", [1.5, -2.0], [1.5, -2.0]),
    ],
)
def test_conversions(apply: Any, operation: str, source: str, target: str, values: Any, expected: Any) -> None:
    kinds = {"i1": bool, "i8": np.int8, "i16": np.int16, "i32": np.int32, "f64": np.float64}
    text = f"%r = arith.{operation} %x0 : tensor<Nx{source}> to tensor<Nx{target}>"
    got = apply(text, [(source, np.array(values, kinds.get(source, np.float32)))], target)
    assert got.tolist() == expected


def test_select_by_element(apply: Any) -> None:
    condition, a, b = np.array([1, 0], bool), np.array([1, 2], np.int32), np.array([3, 4], np.int32)
    text = "%r = arith.select %x0, %x1, %x2 : tensor<Nxi1>, tensor<Nxi32>"
    assert apply(text, [("i1", condition), ("i32", a), ("i32", b)], "i32").tolist() == [1, 4]


def test_constants(execute: Any) -> None:
    out = np.zeros(4, np.float32)
    execute(
        """
        tt.func @f(%p: !tt.ptr<f32>) {
          %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
          %d = arith.constant dense<0.5> : tensor<4xf32>
          %s = arith.addf %c, %d : tensor<4xf32>
          %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
          %b = tt.splat %p : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
          %a = tt.addptr %b, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
          tt.store %a, %s : tensor<4x!tt.ptr<f32>>
          tt.return
        }""",
        [out],
    )
    assert out.tolist() == [1.5, 2.5, 3.5, 4.5]
