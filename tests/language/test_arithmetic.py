"""Arithmetic, comparison and choice: the IR operation for each dtype, and the values they give."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import mltriton.language as tl
from mltriton.errors import ConstexprError, OptionError, TypeMismatchError
from mltriton.language.tensor import METHODS

from .tracing import Trace, compute

INT, UINT, FLOAT = tl.int32, tl.uint32, tl.float32

OPERATIONS = [
    (operator.add, "arith.addi", "arith.addi", "arith.addf"),
    (operator.sub, "arith.subi", "arith.subi", "arith.subf"),
    (operator.mul, "arith.muli", "arith.muli", "arith.mulf"),
    (operator.mod, "arith.remsi", "arith.remui", "arith.remf"),
    (operator.floordiv, "arith.divsi", "arith.divui", None),
    (operator.truediv, "arith.divf", "arith.divf", "arith.divf"),
    (operator.and_, "arith.andi", "arith.andi", None),
    (operator.or_, "arith.ori", "arith.ori", None),
    (operator.xor, "arith.xori", "arith.xori", None),
    (operator.lshift, "arith.shli", "arith.shli", None),
    (operator.rshift, "arith.shrsi", "arith.shrui", None),
    (tl.minimum, "arith.minsi", "arith.minui", "arith.minnumf"),
    (tl.maximum, "arith.maxsi", "arith.maxui", "arith.maxnumf"),
    (lambda x, y: tl.minimum(x, y, tl.PropagateNan.ALL), "arith.minsi", "arith.minui", "arith.minimumf"),
    (lambda x, y: tl.maximum(x, y, tl.PropagateNan.ALL), "arith.maxsi", "arith.maxui", "arith.maximumf"),
    (tl.umulhi, "tt.mulhiui", "tt.mulhiui", None),
]


@pytest.mark.parametrize(("function", "signed", "unsigned", "floating"), OPERATIONS)
def test_operation_of_each_kind(kernel: Trace, function, signed: str, unsigned: str, floating: str | None):
    for kind, name in [(INT, signed), (UINT, unsigned), (FLOAT, floating)]:
        x, y = kernel.parameter(kind), kernel.parameter(kind)
        if name is None:
            with pytest.raises(TypeMismatchError) as caught:
                function(x, y)
            assert caught.value.expected and "fp32" in str(caught.value.found)
        else:
            function(x, y)
            assert kernel.names[-1] == name


@pytest.mark.parametrize(
    ("function", "signed", "unsigned", "floating"),
    [
        (operator.lt, "slt", "ult", "olt"),
        (operator.le, "sle", "ule", "ole"),
        (operator.gt, "sgt", "ugt", "ogt"),
        (operator.ge, "sge", "uge", "oge"),
        (operator.eq, "eq", "eq", "oeq"),
        (operator.ne, "ne", "ne", "une"),
    ],
)
def test_predicates(kernel: Trace, function, signed: str, unsigned: str, floating: str):
    for kind, predicate in [(INT, signed), (UINT, unsigned), (FLOAT, floating)]:
        x, y = kernel.parameter(kind), kernel.parameter(kind)
        assert function(x, y).type == tl.int1
        assert kernel.ops[-1].attributes["predicate"].case == predicate


INTEGERS = np.array([7, -7, 7, -7, 0, 2**31 - 1, -(2**31), 5], np.int32)
DIVISORS = np.array([3, 3, -3, -3, 5, -1, 2, 7], np.int32)


def test_integer_division_rounds_to_zero():
    quotient, remainder = compute(lambda x, y: (x // y, x % y), INTEGERS, DIVISORS)
    expected = np.array([int(a / b) for a, b in zip(INTEGERS.tolist(), DIVISORS.tolist(), strict=True)])
    np.testing.assert_array_equal(quotient, expected)
    np.testing.assert_array_equal(remainder, INTEGERS - expected * DIVISORS)


def test_unsigned_division_and_order():
    x, y = np.array([2**31, 5, 2**32 - 1, 9], np.uint32), np.array([3, 2, 7, 2**31 + 9], np.uint32)
    results = compute(lambda x, y: (x // y, x % y, tl.maximum(x, y), x >> 3, tl.umulhi(x, y), x / y), x, y)
    wide = x.astype(np.uint64) * y
    for found, expected in zip(
        results, (x // y, x % y, np.maximum(x, y), x >> 3, wide >> 32, (x / y).astype(np.float32)), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_true_division_of_integers_is_fp32():
    result = compute(lambda x, y: x / y, INTEGERS, DIVISORS)
    assert result.dtype == np.float32
    expected = INTEGERS.astype(np.float32) / DIVISORS.astype(np.float32)
    np.testing.assert_array_max_ulp(result, expected, maxulp=2)


def test_integers_wrap():
    x = np.array([127, -128, 100, 1], np.int8)
    total, product, negated = compute(lambda x: (x + x, x * x, -x), x)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(total, x + x)
        np.testing.assert_array_equal(product, x * x)
        np.testing.assert_array_equal(negated, -x)


def test_shifts_follow_the_signedness_of_the_left_operand():
    x = np.array([-16, -1, 16, 7], np.int32)
    assert compute(lambda x: x >> 2, x).tolist() == [-4, -1, 4, 1]
    assert compute(lambda x: x.to(tl.uint32) >> 2, x).tolist() == [(int(v) % 2**32) >> 2 for v in x]
    assert compute(lambda x: 1 << x, np.array([0, 1, 4, 31], np.int32)).tolist() == [1, 2, 16, -(2**31)]


def test_unary():
    x = np.array([1.5, -0.0, np.inf, -2.0], np.float32)
    np.testing.assert_array_equal(np.signbit(compute(lambda x: -x, x)), np.signbit(-x))
    i = np.array([0, 5, -6, 2**31 - 1], np.int32)
    np.testing.assert_array_equal(compute(lambda x: ~x, i), ~i)
    u = np.array([0, 5, 2**31, 2**32 - 1], np.uint32)
    np.testing.assert_array_equal(compute(lambda x: ~x, u), ~u)
    assert compute(lambda x: ~(x > 0), i).tolist() == [True, False, True, False]
    assert compute(lambda x: +x, i).tolist() == i.tolist()


def test_not_a_number():
    nan = np.nan
    x, y = np.array([nan, 1, nan, 2], np.float32), np.array([3, nan, nan, 1], np.float32)
    keep, spread = tl.PropagateNan.NONE, tl.PropagateNan.ALL
    np.testing.assert_array_equal(compute(lambda x, y: tl.maximum(x, y, keep), x, y), [3, 1, nan, 2])
    np.testing.assert_array_equal(compute(lambda x, y: tl.maximum(x, y, spread), x, y), [nan, nan, nan, 2])
    np.testing.assert_array_equal(compute(lambda x, y: tl.minimum(x, y, spread), x, y), [nan, nan, nan, 1])
    assert compute(lambda x, y: x != y, x, y).tolist() == [True] * 4
    assert compute(lambda x, y: (x < y) | (x >= y), x, y).tolist() == [False, False, False, True]
    np.testing.assert_array_equal(compute(lambda x: tl.clamp(x, 0.0, 1.5), x), [0, 1, 0, 1.5])
    np.testing.assert_array_equal(compute(lambda x: tl.clamp(x, 0.0, 1.5, spread), x), [nan, 1, nan, 1.5])


def test_clamp_of_integers_and_fma():
    x = np.array([-5, 0, 5, 50], np.int32)
    assert compute(lambda x: tl.clamp(x, -1, 9), x).tolist() == [-1, 0, 5, 9]
    # Rounded once: 1 + 2**-23 squared minus its rounding.
    a = np.full(4, 1 + 2.0**-23, np.float32)
    assert compute(lambda x: tl.fma(x, x, -(1 + 2.0**-22)), a).tolist() == [2.0**-46] * 4


def test_cdiv():
    x = np.array([0, 1, 16, 17], np.int32)
    assert compute(lambda x: tl.cdiv(x, 16), x).tolist() == [0, 1, 1, 2]
    assert compute(lambda x: x.cdiv(x + 1), x).tolist() == [0, 1, 1, 1]
    assert tl.cdiv(tl.constexpr(17), 16) == 2


@pytest.mark.parametrize("kind", [np.int8, np.float32, np.float16, np.uint64])
def test_where(kind):
    x, y = np.arange(8).astype(kind), np.arange(8).astype(kind) * 3
    assert compute(lambda x, y: tl.where(x > 3, x, y), x, y).tolist() == np.where(x > 3, x, y).tolist()
    assert compute(lambda x: tl.where(x > 3, 1, 0), x).tolist() == [0] * 4 + [1] * 4


def test_where_broadcasts_and_takes_pointers(kernel: Trace):
    rows, columns = tl.arange(0, 4)[:, None], tl.arange(0, 8)[None, :]
    assert tl.where(rows < columns, rows, 0.0).type == tl.block_type(tl.float32, (4, 8))
    scalar = kernel.parameter(tl.int1)
    assert tl.where(scalar, rows, columns).type == tl.block_type(tl.int32, (4, 8))
    pointer = kernel.parameter(tl.pointer_type(tl.int8))
    assert tl.where(rows < 2, pointer, pointer + 4).type == tl.block_type(pointer.type, (4, 1))
    with pytest.raises(TypeMismatchError, match="a pointer and something else"):
        tl.where(scalar, pointer, 0)


def test_pointer_arithmetic(kernel: Trace):
    pointer = kernel.parameter(tl.pointer_type(tl.float16))
    for moved in (pointer + 3, 3 + pointer, pointer - 3, pointer + kernel.parameter(tl.int64)):
        assert moved.type == pointer.type and kernel.names[-1] == "tt.addptr"
    assert (pointer + tl.arange(0, 8)[:, None]).type == tl.block_type(pointer.type, (8, 1))
    for narrow, name in [(tl.uint32, "arith.extui"), (tl.uint8, "arith.extui"), (tl.int16, "arith.extsi")]:
        _ = pointer + kernel.parameter(narrow)
        assert kernel.names[-2:] == [name, "tt.addptr"]
    for attempt in (
        lambda: pointer + 1.5,
        lambda: pointer + pointer,
        lambda: pointer * 2,
        lambda: pointer < pointer,
        lambda: -pointer,
        lambda: 3 - pointer,
    ):
        with pytest.raises(TypeMismatchError):
            attempt()


def test_logic(kernel: Trace):
    x, y, n = kernel.parameter(tl.int1), kernel.parameter(tl.int1), kernel.parameter(tl.int32)
    assert x.logical_and(y).type == x.logical_or(tl.constexpr(True)).type == n.logical_not().type == tl.int1
    assert compute(lambda n: n.logical_not(), np.array([0, 3, -1, 0], np.int32)).tolist() == [True, False, False, True]
    with pytest.raises(TypeMismatchError, match="`and` needs booleans"):
        n.logical_and(x)


def test_misuse(kernel: Trace):
    x = kernel.parameter(tl.float32)
    for attempt in (lambda: x + "a", lambda: x * None, lambda: tl.add(x, [1]), lambda: tl.fma(x, x, "b")):
        with pytest.raises(TypeMismatchError, match="cannot be used in arithmetic"):
            attempt()
    with pytest.raises(ConstexprError, match="truth"):
        bool(x > 0)
    with pytest.raises(ConstexprError, match="iterated"):
        _first, _second = x
    with pytest.raises(OptionError, match="propagate_nan"):
        tl.minimum(x, x, "yes")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeMismatchError, match=r"tl\.fma is for floats"):
        tl.fma(1, 2, 3)
    with pytest.raises(TypeMismatchError, match="integers"):
        _ = ~x
    with pytest.raises(AttributeError):
        _ = x.atomic_nothing


def test_methods_are_functions_of_the_language():
    assert all(hasattr(tl, name) for name in METHODS)
