"""`arith` on numpy: integers wrap, floats round after each operation.

Level: tt to intrinsic. Division by zero gives 0, a shift by the width or more gives 0 (or the sign), an out-of-range
conversion gives what numpy gives: unspecified values, never a trap.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mltriton.dialects import arith
from mltriton.dialects.arith_folding import MAX_EXACT
from mltriton.executor.code import Handler, Maker, Table
from mltriton.executor.values import Array, choose, decode, encode, is_block, is_wide, rounder, scalar, value_dtype
from mltriton.ir.attributes import DenseAttr
from mltriton.ir.operation import Operation
from mltriton.ir.types import FloatType, TensorType, element_type

Function = Callable[..., Array]
Binary = Callable[[Array, Array], Array]
Unary = Callable[[Array], Array]


def without_warp(function: Function) -> Handler:
    """A handler that ignores the warp."""

    def call(warp: Any, *operands: Array) -> Array:
        return function(*operands)

    return call


def binary(function: Binary) -> Handler:
    """A handler of two operands that ignores the warp: the commonest kind, spelled out for speed."""
    return lambda warp, a, b: function(a, b)


def integers(function: Binary) -> Maker:
    """Signed integer arithmetic; i1 is computed in i8 and keeps its lowest bit."""

    def make(op: Operation) -> Handler:
        if value_dtype(element_type(op.results[0].type)) != np.bool_:
            return binary(function)
        return lambda warp, a, b: (function(signed(a), signed(b)) & 1).astype(np.bool_)

    return make


def unsigned_integers(function: Binary) -> Maker:
    """Arithmetic on the operands read as unsigned."""

    def make(op: Operation) -> Handler:
        dtype = value_dtype(element_type(op.results[0].type))
        if dtype == np.bool_:
            return lambda warp, a, b: (function(unsigned(a), unsigned(b)) & 1).astype(np.bool_)
        return lambda warp, a, b: function(unsigned(a), unsigned(b)).view(dtype)

    return make


def bitwise(function: Binary) -> Maker:
    """Arithmetic that is the same for every width, i1 included."""

    def make(op: Operation) -> Handler:
        return binary(function)

    return make


def floats(function: Function) -> Maker:
    """Float arithmetic rounded to the type."""

    def make(op: Operation) -> Handler:
        type = element_type(op.results[0].type)
        if is_wide(type):
            return without_warp(function)
        to_type = rounder(type)

        def call(warp: Any, *operands: Array) -> Array:
            return to_type(function(*operands))

        return call

    return make


def operands_own(function: Function) -> Maker:
    """What gives an operand, or its negative: rounding to fp8 would make infinity the largest number."""

    def make(op: Operation) -> Handler:
        return without_warp(function)

    return make


def signed(values: Array) -> Array:
    """i1 as 0 and -1; other integers as they are."""
    return -values.astype(np.int8) if values.dtype == np.bool_ else values


def unsigned(values: Array) -> Array:
    """The same bits as unsigned numbers."""
    return values.astype(np.uint8) if values.dtype == np.bool_ else values.view(f"u{values.dtype.itemsize}")


def divide(a: Array, b: Array) -> Array:
    """Signed division rounding to zero."""
    return np.floor_divide(a - np.fmod(a, b), b)


def divide_up(a: Array, b: Array) -> Array:
    """Signed division rounding up."""
    return divide(a, b) + ((np.fmod(a, b) != 0) & ((a < 0) == (b < 0))).astype(a.dtype)


def constant(op: arith.Constant) -> Handler:
    """The constant, made once."""
    value = op.value
    if isinstance(value, DenseAttr):
        assert isinstance(value.type, TensorType)
        element, shape = value.type.element, value.type.shape
        numbers = np.array([scalar(number, element) for number in value.values], value_dtype(element))
        made: Array = np.full(shape, numbers[0]) if value.is_splat else numbers.reshape(shape)
    else:
        made = scalar(value.value, value.type)

    def call(warp: Any) -> Array:
        return made

    return call


def select(op: arith.Select) -> Handler:
    """Element by element for blocks, whole for a scalar condition (which also chooses between pointers to blocks)."""

    def call(warp: Any, condition: Array, a: Any, b: Any) -> Any:
        if is_block(condition):
            return choose(condition, a, b)
        return a if condition else b

    return call


def _one(a: Array, b: Array) -> Array:
    return (a < b) | (a > b)


def _unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


def _always(constant: bool) -> Binary:
    return lambda a, b: np.full(np.broadcast(a, b).shape, constant)[()]


_SIGNED: dict[str, Binary] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
}
_UNSIGNED: dict[str, Binary] = {"ult": operator.lt, "ule": operator.le, "ugt": operator.gt, "uge": operator.ge}
_FLOATS: dict[str, Binary] = {
    "false": _always(False),
    "oeq": operator.eq,
    "ogt": operator.gt,
    "oge": operator.ge,
    "olt": operator.lt,
    "ole": operator.le,
    "one": _one,
    "ord": lambda a, b: ~_unordered(a, b),
    "ueq": lambda a, b: ~_one(a, b),
    "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b),
    "ule": lambda a, b: ~(a > b),
    "une": operator.ne,
    "uno": _unordered,
    "true": _always(True),
}


def compare_integers(op: arith.CmpI) -> Handler:
    """A comparison of signed or unsigned integers."""
    if op.predicate in _UNSIGNED:
        function = _UNSIGNED[op.predicate]
        return lambda warp, a, b: function(unsigned(a), unsigned(b))
    function = _SIGNED[op.predicate]
    if value_dtype(element_type(op.lhs.type)) == np.bool_:
        return lambda warp, a, b: function(signed(a), signed(b))
    return binary(function)


def compare_floats(op: arith.CmpF) -> Handler:
    """A comparison of floats."""
    return binary(_FLOATS[op.predicate])


def to_dtype(read: Unary) -> Maker:
    """A conversion of integers, read as `read` says, by numpy's own rules (truncation wraps)."""

    def make(op: Operation) -> Handler:
        dtype = value_dtype(element_type(op.results[0].type))
        if dtype == np.bool_:
            return lambda warp, values: (read(values) & 1).astype(np.bool_)
        return lambda warp, values: read(values).astype(dtype)

    return make


def to_float(read: Unary) -> Maker:
    """A conversion to the result's float type, rounding to nearest even."""

    def make(op: Operation) -> Handler:
        to_type = rounder(element_type(op.results[0].type))
        is_direct = is_wide(element_type(op.results[0].type))
        return lambda warp, values: to_type(_exact_float(read(values), is_direct))

    return make


def _exact_float(values: Array, is_direct: bool) -> Array:
    """Integers as float64, so that they are rounded once; int64 converts directly where numpy has the type, and else
    as a number between the same two neighbours in float64, which no narrower type tells from it.
    """
    if values.dtype.kind == "f" or (is_direct and values.dtype.itemsize == 8):
        return values
    if values.dtype.itemsize == 8:
        inside = values & values.dtype.type(0xFFF)
        odd = values - inside + choose(inside != 0, values.dtype.type(0x800), values.dtype.type(0))
        values = choose(np.abs(values) <= values.dtype.type(MAX_EXACT), values, odd)
    return values.astype(np.float64)


def to_integer(through: type[np.generic]) -> Maker:
    """A conversion of floats to integers, rounding to zero."""

    def make(op: Operation) -> Handler:
        dtype = value_dtype(element_type(op.results[0].type))
        return lambda warp, values: np.trunc(values).astype(through).astype(dtype)

    return make


def bitcast(op: Operation) -> Handler:
    """The same bits as another type."""
    source, target = (element_type(value.type) for value in (op.operands[0], op.results[0]))
    dtype = value_dtype(target) if not isinstance(target, FloatType) else encode(scalar(0, target), target).dtype
    return lambda warp, values: decode(encode(values, source).view(dtype), target)


def same(values: Array) -> Array:
    """The values themselves."""
    return values


TABLE: Table = {
    arith.Constant: constant,
    arith.AddI: integers(operator.add),
    arith.SubI: integers(operator.sub),
    arith.MulI: integers(operator.mul),
    arith.DivSI: integers(divide),
    arith.DivUI: unsigned_integers(np.floor_divide),
    arith.CeilDivSI: integers(divide_up),
    arith.FloorDivSI: integers(np.floor_divide),
    arith.RemSI: integers(np.fmod),
    arith.RemUI: unsigned_integers(np.fmod),
    arith.AndI: bitwise(lambda a, b: a & b),
    arith.OrI: bitwise(lambda a, b: a | b),
    arith.XOrI: bitwise(lambda a, b: a ^ b),
    arith.ShLI: integers(lambda a, b: a << b),
    arith.ShRSI: integers(lambda a, b: a >> b),
    arith.ShRUI: unsigned_integers(lambda a, b: a >> b),
    arith.MaxSI: integers(np.maximum),
    arith.MinSI: integers(np.minimum),
    arith.MaxUI: unsigned_integers(np.maximum),
    arith.MinUI: unsigned_integers(np.minimum),
    arith.AddF: floats(operator.add),
    arith.SubF: floats(operator.sub),
    arith.MulF: floats(operator.mul),
    arith.DivF: floats(np.divide),
    arith.RemF: floats(np.fmod),
    arith.MaximumF: operands_own(np.maximum),
    arith.MinimumF: operands_own(np.minimum),
    arith.MaxNumF: operands_own(np.fmax),
    arith.MinNumF: operands_own(np.fmin),
    arith.NegF: operands_own(operator.neg),
    arith.CmpI: compare_integers,
    arith.CmpF: compare_floats,
    arith.Select: select,
    arith.ExtSI: to_dtype(signed),
    arith.ExtUI: to_dtype(unsigned),
    arith.TruncI: to_dtype(signed),
    arith.ExtF: to_float(same),
    arith.TruncF: to_float(same),
    arith.SIToFP: to_float(signed),
    arith.UIToFP: to_float(unsigned),
    arith.FPToSI: to_integer(np.int64),
    arith.FPToUI: to_integer(np.uint64),
    arith.Bitcast: bitcast,
    arith.IndexCast: to_dtype(signed),
}
