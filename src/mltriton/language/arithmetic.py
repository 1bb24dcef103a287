"""Arithmetic and bitwise logic, element by element: the operators of a tensor and the functions that go
with them.

Takes tensors and Python scalars; guarantees upstream's results: integers wrap, `/` of integers is fp32, `//` and
`%` of integers round to zero as in C, comparisons give int1. Each operation is a row: which IR operation stands for
it on signed integers, unsigned integers and floats.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any

from mltriton.dialects import arith, math, tt
from mltriton.errors import OptionError, TypeMismatchError
from mltriton.ir.operation import Operation
from mltriton.language import types
from mltriton.language.building import builtin, current, is_sanitizing
from mltriton.language.casting import cast
from mltriton.language.semantic import (
    as_number,
    as_operand,
    broadcast,
    computable,
    literal,
    promoted,
    promoted_three,
    to_tensor,
)
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype
from mltriton.records import NamedTuple

OperationClass = type[Operation]


class PropagateNan(Enum):
    """What a minimum or maximum gives where an operand is NaN: the other operand (NONE) or NaN (ALL)."""

    NONE = 0
    ALL = 0xFFFF


class Row(NamedTuple):
    """The IR operations of an operator by kind of operand; None where it has no meaning."""

    signed: OperationClass | None
    unsigned: OperationClass | None
    floating: OperationClass | None


ADD = Row(arith.AddI, arith.AddI, arith.AddF)
SUB = Row(arith.SubI, arith.SubI, arith.SubF)
MUL = Row(arith.MulI, arith.MulI, arith.MulF)
FLOORDIV = Row(arith.DivSI, arith.DivUI, None)
MOD = Row(arith.RemSI, arith.RemUI, arith.RemF)
MINIMUM = {
    PropagateNan.NONE: Row(arith.MinSI, arith.MinUI, arith.MinNumF),
    PropagateNan.ALL: Row(arith.MinSI, arith.MinUI, arith.MinimumF),
}
MAXIMUM = {
    PropagateNan.NONE: Row(arith.MaxSI, arith.MaxUI, arith.MaxNumF),
    PropagateNan.ALL: Row(arith.MaxSI, arith.MaxUI, arith.MaximumF),
}
AND, OR, XOR = (Row(operation, operation, None) for operation in (arith.AndI, arith.OrI, arith.XOrI))
SHIFT_LEFT = Row(arith.ShLI, arith.ShLI, None)
SHIFT_RIGHT = Row(arith.ShRSI, arith.ShRUI, None)


def _select(row: Row, kind: dtype, symbol: str) -> OperationClass:
    chosen = (
        row.floating
        if kind.is_floating()
        else row.signed
        if kind.is_int_signed()
        else row.unsigned
        if kind.is_int()
        else None
    )
    if chosen is None:
        raise TypeMismatchError(
            f"{symbol} has no meaning for {kind}",
            expected=_kinds(row),
            found=str(kind),
            hint=_conversion_hint(kind),
            upstream=f"invalid operands of type {kind!r} and {kind!r}",
        )
    return chosen


def _kinds(row: Row) -> str:
    return "integers" if row.floating is None else "floats" if row.signed is None else "integers or floats"


def _conversion_hint(kind: dtype) -> str | None:
    return "for floats use tl.floor, tl.ceil or convert with .to(tl.int32)" if kind.is_floating() else None


def _combine(row: Row, a: tensor, b: tensor, symbol: str) -> tensor:
    """One IR operation on two tensors of the same type."""
    return tensor(current().emit(_select(row, a.dtype, symbol), a.handle, b.handle), a.type)


def _arithmetic(row: Row, a: object, b: object, symbol: str, division: bool = False) -> tensor:
    left, right = promoted(a, b, division)
    return _combine(row, left, right, symbol)


def _sanitized(row: Row, x: object, y: object, symbol: str, name: str, sanitize_overflow: bool) -> tensor:
    """x and y combined; integers of less than 64 bits wrap, unless the kernel checks that they need not."""
    a, b = promoted(x, y)
    kind, made = a.dtype, _combine(row, a, b, symbol)
    if sanitize_overflow and kind.is_int() and kind.bits < 64 and is_sanitizing():
        from mltriton.language.debug import device_assert  # It stands on arithmetic.

        fits = _wide_fits(a, b, row, symbol) if row is MUL else _fits(a, b, made, row)
        device_assert(fits, f"int{kind.bits} overflow detected for operation {name}")
    return made


def _fits(a: tensor, b: tensor, made: tensor, row: Row) -> tensor:
    """Whether a sum or difference is the exact one, seen in its own width: Intel's vector compiler refuses what it
    makes of wider ones.
    """
    from mltriton.language.comparison import greater_equal, less_equal  # It stands on arithmetic.

    if a.dtype.is_int_unsigned():
        return greater_equal(made, a) if row is ADD else less_equal(b, a)
    # A sum overflows where its sign is that of neither operand, a difference where its sign and that of what is taken
    # away are not the first operand's: the sign bit of both `xor` is set.
    others = (a, b) if row is ADD else (b, made)
    one, other = (bitwise_xor(operand, made if row is ADD else a) for operand in others)
    return greater_equal(bitwise_and(one, other), literal(0, a.dtype))


def _wide_fits(a: tensor, b: tensor, row: Row, symbol: str) -> tensor:
    """Whether the result in 64 bits is in the type's range."""
    from mltriton.language.comparison import greater_equal, less_equal  # It stands on arithmetic.

    kind, exact = a.dtype, _combine(row, cast(a, types.int64), cast(b, types.int64), symbol)
    low, high = (literal(bound, types.int64) for bound in (kind.get_int_min_value(), kind.get_int_max_value()))
    return bitwise_and(less_equal(exact, high), greater_equal(exact, low))


@builtin
def add(x: object, y: object, sanitize_overflow: bool = True) -> tensor:
    """x + y.

    A pointer plus an integer is the pointer moved by that many elements. In kernels compiled with `debug=True` a sum of
    integers below 64 bits that does not fit stops the launch, unless `sanitize_overflow` is false.
    """
    a, b = as_operand(x), as_operand(y)
    if isinstance(b, tensor) and b.dtype.is_ptr():
        a, b = b, a
    if isinstance(a, tensor) and a.dtype.is_ptr():
        return _moved(a, to_tensor(b))
    return _sanitized(ADD, a, b, "+", "add", sanitize_overflow)


def _moved(pointer: tensor, offset: tensor) -> tensor:
    """A pointer moved by an integer; an unsigned offset is widened, because the IR reads offsets as signed."""
    if pointer.is_block_pointer:
        raise TypeMismatchError(
            "a block pointer is moved with tl.advance",
            found=f"{pointer!r} + {offset!r}",
            hint="write p = tl.advance(p, (rows, columns))",
        )
    if not offset.dtype.is_int():
        raise TypeMismatchError(
            "a pointer can only be moved by integers",
            expected="an integer offset",
            found=offset.type.name,
            upstream=f"invalid operands of type {pointer.dtype!r} and {offset.dtype!r}",
        )
    if (offset.dtype.is_int_unsigned() and offset.dtype.bits < 64) or offset.dtype.bits < 32:
        offset = cast(offset, types.int64 if offset.dtype.bits == 32 else types.int32)
    base, steps = broadcast(pointer, offset)
    return tensor(current().emit(tt.AddPtr, base.handle, steps.handle), base.type)


@builtin
def sub(x: object, y: object, sanitize_overflow: bool = True) -> tensor:
    """x - y, checked as `add` is; a pointer minus an integer is the pointer moved back by that many elements."""
    if isinstance(x, tensor) and x.dtype.is_ptr():
        return add(x, negative(y) if isinstance(y, tensor) else -as_number(y))
    return _sanitized(SUB, x, y, "-", "sub", sanitize_overflow)


@builtin
def mul(x: object, y: object, sanitize_overflow: bool = True) -> tensor:
    """x * y; checked as `add` is."""
    return _sanitized(MUL, x, y, "*", "mul", sanitize_overflow)


def truediv(x: object, y: object) -> tensor:
    """x / y: fp32, or fp64 if one of them is fp64."""
    a, b = promoted(x, y, division=True)
    if not a.dtype.is_floating():
        a, b = cast(a, types.float32), cast(b, types.float32)
    return tensor(current().emit(arith.DivF, a.handle, b.handle), a.type)


def floordiv(x: object, y: object) -> tensor:
    """x // y of integers, rounding to zero."""
    return _arithmetic(FLOORDIV, x, y, "//", division=True)


def mod(x: object, y: object) -> tensor:
    """x % y with the sign of x."""
    return _arithmetic(MOD, x, y, "%", division=True)


def negative(x: object) -> tensor:
    """-x; of an unsigned integer modulo 2**bits."""
    value = computable(x)
    if value.dtype.is_floating():
        return tensor(current().emit(arith.NegF, value.handle), value.type)
    if not value.dtype.is_int():
        raise TypeMismatchError(
            f"unary - has no meaning for {value.dtype}",
            expected="integers or floats",
            found=value.type.name,
            upstream=f"wrong type argument to unary minus ({value.dtype!r})",
        )
    return _combine(SUB, literal(0, value.dtype, value.type.shape), value, "-")


def positive(x: object) -> tensor:
    """+x."""
    return to_tensor(x)


def invert(x: object) -> tensor:
    """~x of integers; of a bool its negation."""
    value = to_tensor(x)
    if not value.dtype.is_int():
        raise TypeMismatchError(
            f"~ has no meaning for {value.dtype}",
            expected="integers or bools",
            found=value.type.name,
            upstream=f"wrong type argument to unary invert ({value.dtype!r})",
        )
    ones = -1 if value.dtype.is_int_signed() else value.dtype.get_int_max_value()
    return _combine(XOR, value, literal(ones, value.dtype, value.type.shape), "~")


def _bitwise(row: Row, symbol: str, x: object, y: object) -> tensor:
    a, b = promoted(x, y)
    return _combine(row, a, b, symbol)


bitwise_and, bitwise_or, bitwise_xor = (
    partial(_bitwise, AND, "&"),
    partial(_bitwise, OR, "|"),
    partial(_bitwise, XOR, "^"),
)
left_shift = partial(_bitwise, SHIFT_LEFT, "<<")  # in the promoted dtype; by its width or more it is unspecified


def right_shift(x: object, y: object) -> tensor:
    """x >> y, arithmetic for signed operands (upstream.

    Decided by the tensor among the operands, the left one of two).
    """
    decider = x if isinstance(x, tensor) else y
    a, b = promoted(x, y)
    signed = isinstance(decider, tensor) and decider.dtype.is_int_signed()
    row = SHIFT_RIGHT._replace(
        signed=arith.ShRSI if signed else arith.ShRUI, unsigned=arith.ShRSI if signed else arith.ShRUI
    )
    return _combine(row, a, b, ">>")


def _nan_rule(propagate_nan: object) -> PropagateNan:
    if not isinstance(propagate_nan, PropagateNan):
        raise OptionError(
            "propagate_nan", expected="tl.PropagateNan.NONE or tl.PropagateNan.ALL", found=repr(propagate_nan)
        )
    return propagate_nan


def without_bfloat16(value: object) -> object:
    """A bf16 tensor as fp32, anything else as it is: in bf16 upstream neither orders nor sums along an axis.

    So do Triton 3.0 to 3.8; 3.9 stays in bf16.
    """
    return cast(value, types.float32) if isinstance(value, tensor) and value.dtype == types.bfloat16 else value


@builtin
def minimum(x: object, y: object, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
    """The smaller of x and y, element by element; of bf16 as fp32."""
    return _arithmetic(MINIMUM[_nan_rule(propagate_nan)], without_bfloat16(x), without_bfloat16(y), "minimum")


@builtin
def maximum(x: object, y: object, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
    """The larger of x and y, element by element; of bf16 as fp32."""
    return _arithmetic(MAXIMUM[_nan_rule(propagate_nan)], without_bfloat16(x), without_bfloat16(y), "maximum")


@builtin
def clamp(x: object, min: object, max: object, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
    """x held between min and max, of bf16 as fp32; a NaN x gives min, or NaN with `PropagateNan.ALL`."""
    rule = _nan_rule(propagate_nan)
    value, low, high = promoted_three(*map(without_bfloat16, (x, min, max)))
    if not value.dtype.is_floating():
        return minimum(maximum(value, low), high)
    handle = current().emit(tt.ClampF, value.handle, low.handle, high.handle, propagate_nan=rule is PropagateNan.ALL)
    return tensor(handle, value.type)


@builtin
def fma(x: object, y: object, z: object) -> tensor:
    """x * y + z, rounded once."""
    a, b, c = promoted_three(x, y, z)
    if not a.dtype.is_floating():
        raise TypeMismatchError(
            "tl.fma is for floats", expected="floats", found=a.type.name, hint="write x * y + z for integers"
        )
    return tensor(current().emit(math.Fma, a.handle, b.handle, c.handle), a.type)


@builtin
def umulhi(x: object, y: object) -> tensor:
    """The upper half of the product of 32-bit or 64-bit integers, read as unsigned."""
    a, b = promoted(x, y)
    if not (a.dtype.is_int() and a.dtype.bits in (32, 64)):
        raise TypeMismatchError(
            "tl.umulhi is for 32-bit and 64-bit integers", expected="int32, uint32, int64 or uint64", found=a.type.name
        )
    return tensor(current().emit(tt.MulhiUI, a.handle, b.handle), a.type)


@builtin
def cdiv(x: object, div: object) -> Any:
    """x / div rounded up, of integers; of two constants a constant."""
    if isinstance(x, int) and isinstance(div, int):
        return -(-x // div)
    return floordiv(add(x, sub(div, 1) if isinstance(div, tensor) else _less_one(div)), div)


def _less_one(value: object) -> int:
    if not isinstance(value, int):
        raise TypeMismatchError("tl.cdiv is for integers", expected="an integer divisor", found=repr(value))
    return value - 1


__all__ = ["PropagateNan", "add", "cdiv", "clamp", "fma", "maximum", "minimum", "mul", "sub", "umulhi"]
