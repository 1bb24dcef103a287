"""Promotion, exhaustively: upstream's rules for two tensors, for a tensor and a Python scalar, and for / // %."""

from __future__ import annotations

import operator

import pytest

import mltriton.language as tl
from mltriton.errors import TypeMismatchError
from mltriton.language.semantic import scalar_type
from mltriton.language.types import dtype

from .tracing import Trace, traced

NAMED = {
    "i1": tl.int1,
    "i8": tl.int8,
    "i16": tl.int16,
    "i32": tl.int32,
    "i64": tl.int64,
    "u8": tl.uint8,
    "u16": tl.uint16,
    "u32": tl.uint32,
    "u64": tl.uint64,
    "e4": tl.float8e4nv,
    "e5": tl.float8e5,
    "f16": tl.float16,
    "bf": tl.bfloat16,
    "f32": tl.float32,
    "f64": tl.float64,
}

# Row op column; "-": an error. From upstream's rules: fp64, fp32, fp16 win in that order; bf16 only with itself;
# fp8 not with integers; integers as in C.
ARITHMETIC = """
      i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
  i1  i1  i8 i16 i32 i64  u8 u16 u32 u64   -   - f16 f32 f32 f64
  i8  i8  i8 i16 i32 i64  u8 u16 u32 u64   -   - f16 f32 f32 f64
 i16 i16 i16 i16 i32 i64 i16 u16 u32 u64   -   - f16 f32 f32 f64
 i32 i32 i32 i32 i32 i64 i32 i32 u32 u64   -   - f16 f32 f32 f64
 i64 i64 i64 i64 i64 i64 i64 i64 i64 u64   -   - f16 f32 f32 f64
  u8  u8  u8 i16 i32 i64  u8 u16 u32 u64   -   - f16 f32 f32 f64
 u16 u16 u16 u16 i32 i64 u16 u16 u32 u64   -   - f16 f32 f32 f64
 u32 u32 u32 u32 u32 i64 u32 u32 u32 u64   -   - f16 f32 f32 f64
 u64 u64 u64 u64 u64 u64 u64 u64 u64 u64   -   - f16 f32 f32 f64
  e4   -   -   -   -   -   -   -   -   -  e4 f16 f16 f32 f32 f64
  e5   -   -   -   -   -   -   -   -   - f16  e5 f16 f32 f32 f64
 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f64
  bf f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f16  bf f32 f64
 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64
"""

# The same for %, where floats of less than 64 bits meet in fp32 and integers need one signedness (a bool counts as
# unsigned).
REMAINDER = """
      i1  i8 i16 i32 i64  u8 u16 u32 u64  e4  e5 f16  bf f32 f64
  i1  i1   -   -   -   -  u8 u16 u32 u64 f32 f32 f32 f32 f32 f64
  i8   -  i8 i16 i32 i64   -   -   -   - f32 f32 f32 f32 f32 f64
 i16   - i16 i16 i32 i64   -   -   -   - f32 f32 f32 f32 f32 f64
 i32   - i32 i32 i32 i64   -   -   -   - f32 f32 f32 f32 f32 f64
 i64   - i64 i64 i64 i64   -   -   -   - f32 f32 f32 f32 f32 f64
  u8  u8   -   -   -   -  u8 u16 u32 u64 f32 f32 f32 f32 f32 f64
 u16 u16   -   -   -   - u16 u16 u32 u64 f32 f32 f32 f32 f32 f64
 u32 u32   -   -   -   - u32 u32 u32 u64 f32 f32 f32 f32 f32 f64
 u64 u64   -   -   -   - u64 u64 u64 u64 f32 f32 f32 f32 f32 f64
  e4 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
  e5 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
 f16 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
  bf f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64
"""

# A tensor (row) with a Python scalar: one of an equal or lower kind (bool < int < float) takes the tensor's dtype.
SCALARS = {"True": True, "3": 3, "2**31": 2**31, "2**40": 2**40, "2**63": 2**63, "1.5": 1.5, "1e300": 1e300}
WITH_SCALAR = """
    True   3 2**31 2**40 2**63 1.5 1e300
  i1  i1 i32   u32   i64   u64 f32   f64
  i8  i8  i8     -     -     - f32   f64
 i16 i16 i16     -     -     - f32   f64
 i32 i32 i32     -     -     - f32   f64
 i64 i64 i64   i64   i64     - f32   f64
  u8  u8  u8     -     -     - f32   f64
 u16 u16 u16     -     -     - f32   f64
 u32 u32 u32   u32     -     - f32   f64
 u64 u64 u64   u64   u64   u64 f32   f64
  e4  e4  e4    e4    e4    e4  e4    e4
  e5  e5  e5    e5    e5    e5  e5    e5
 f16 f16 f16   f16   f16   f16 f16   f16
  bf  bf  bf    bf    bf    bf  bf    bf
 f32 f32 f32   f32   f32   f32 f32   f32
 f64 f64 f64   f64   f64   f64 f64   f64
"""


def cells(table: str) -> list[tuple[str, str, str]]:
    """(row, column, entry) of each cell."""
    header, *rows = [line.split() for line in table.strip("\n").splitlines()]
    return [(row[0], column, entry) for row in rows for column, entry in zip(header, row[1:], strict=True)]


def outcome(function, *types: dtype) -> str:
    """The short name of the result's dtype, "-" for an error."""
    found: list[dtype] = []
    try:
        traced(lambda *values: found.append(function(*values).dtype), *types)
    except TypeMismatchError as error:
        assert error.message and (error.found or error.hint)
        return "-"
    return next(name for name, kind in NAMED.items() if kind == found[0])


def check(table: str, function, operands) -> None:
    wrong = [
        f"{row} {column}: expected {entry}, found {made}"
        for row, column, entry in cells(table)
        if (made := outcome(function(column), *operands(row, column))) != entry
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("function", [operator.add, operator.mul])
def test_arithmetic(function):
    check(ARITHMETIC, lambda _: function, lambda row, column: (NAMED[row], NAMED[column]))


def test_remainder():
    check(REMAINDER, lambda _: operator.mod, lambda row, column: (NAMED[row], NAMED[column]))


def test_true_division():
    table = "\n".join(
        " ".join("f32" if i and j and cell != "f64" and cell != "-" else cell for j, cell in enumerate(line.split()))
        for i, line in enumerate(REMAINDER.strip("\n").splitlines())
    )
    check(table, lambda _: operator.truediv, lambda row, column: (NAMED[row], NAMED[column]))


def test_floor_division_is_for_integers():
    is_float = {name: kind.is_floating() for name, kind in NAMED.items()}
    header, *rows = REMAINDER.strip("\n").splitlines()
    names = header.split()
    table = [header]
    for line in rows:
        row, *entries = line.split()
        kept = ["-" if is_float[row] or is_float[n] else e for n, e in zip(names, entries, strict=True)]
        table.append(" ".join([row, *kept]))
    check("\n".join(table), lambda _: operator.floordiv, lambda row, column: (NAMED[row], NAMED[column]))


@pytest.mark.parametrize("is_left", [True, False])
def test_with_scalars(is_left: bool):
    def function(column: str):
        scalar = SCALARS[column]
        return lambda x: scalar + x if is_left else x + scalar

    check(WITH_SCALAR, function, lambda row, column: (NAMED[row],))


def test_comparison_promotes_and_gives_bools():
    for a, b in [(tl.int8, tl.uint8), (tl.bfloat16, tl.float16), (tl.int32, tl.float32)]:
        assert outcome(operator.lt, a, b) == "i1"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (True, "int1"),
        (0, "int32"),
        (2**31 - 1, "int32"),
        (-(2**31), "int32"),
        (2**31, "uint32"),
        (2**32, "int64"),
        (-(2**31) - 1, "int64"),
        (2**63, "uint64"),
        (0.0, "fp32"),
        (1e38, "fp32"),
        (1e39, "fp64"),
        (1e-38, "fp64"),
        (2.0**-126, "fp32"),
        (float("inf"), "fp32"),
        (float("nan"), "fp32"),
    ],
)
def test_scalar_types(value, name):
    assert scalar_type(value).name == name


def test_scalar_out_of_range():
    with pytest.raises(TypeMismatchError, match="does not fit in 64 bits"):
        scalar_type(2**64)


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ((tl.float32, tl.float32, tl.float32), "fp32"),
        ((tl.float16, tl.float32, tl.float16), "fp32"),
        ((tl.bfloat16, tl.float16, tl.bfloat16), "fp16"),
        ((tl.int8, tl.float16, tl.int32), "fp16"),
    ],
)
def test_three_operands(types, expected: str):
    found: list[str] = []
    traced(lambda x, y, z: found.append(tl.fma(x, y, z).dtype.name), *types)
    assert found == [expected]


def test_three_operands_with_scalars(kernel: Trace):
    half, number = kernel.parameter(tl.float16), kernel.parameter(tl.int32)
    assert tl.clamp(half, 0, 1.0).dtype == tl.clamp(0.5, half, 3).dtype == tl.float16
    assert tl.clamp(number, 0, 5).dtype == tl.int32
    assert tl.clamp(number, 0, 5.5).dtype == tl.float32
    assert tl.fma(1.0, 2.0, 3).dtype == tl.float32


def test_a_negative_scalar_and_an_unsigned_tensor(kernel: Trace):
    x = kernel.parameter(tl.uint32)
    with pytest.raises(TypeMismatchError, match="the negative number -1 meets an unsigned tensor"):
        _ = x + -1
    _ = x + 1
