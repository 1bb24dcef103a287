"""What operands of different types mean together: conversion to tensors, promotion, implicit broadcasting.

Takes tensors and Python scalars; guarantees upstream Triton's rules: a Python scalar of an equal or lower kind
(bool < int < float) takes the tensor's dtype, the others are promoted by `computation_type`, blocks are broadcast
after leading dimensions of size 1 are added. Also what must be known when compiling: integers and axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from mltriton.dialects import arith, tt
from mltriton.errors import AxisError, ConstexprError, ShapeMismatchError, TypeMismatchError
from mltriton.ir.attributes import DenseAttr, FloatAttr, IntegerAttr
from mltriton.ir.floats import convert_float
from mltriton.ir.types import FloatType, IntegerType, TensorType
from mltriton.language import types
from mltriton.language.building import builtin, current
from mltriton.language.constants import unwrap
from mltriton.language.tensor import tensor
from mltriton.language.types import block_type, dtype

__all__ = ["to_tensor"]

Scalar = bool | int | float
Operand = tensor | Scalar


@builtin
def to_tensor(value: object) -> tensor:
    """A tensor as it is.

    A Python scalar as a scalar tensor of the smallest of upstream's types (int1, int32, uint32, int64, uint64, fp32,
    fp64) that holds it.
    """
    operand = as_operand(value)
    return operand if isinstance(operand, tensor) else literal(operand, scalar_type(operand))


def as_operand(value: object) -> Operand:
    """`value` if it can take part in arithmetic; `TypeMismatchError` otherwise."""
    value = unwrap(value)
    if isinstance(value, tensor | bool | int | float):
        return value
    raise TypeMismatchError(
        f"a value of type {type(value).__name__} cannot be used in arithmetic",
        expected="a tensor or a number",
        found=_shown(value),
        upstream=f"cannot convert {_shown(value)} of type {type(value)} to tensor",
    )


def as_number(value: object) -> Scalar:
    """`value` if it is a Python number; `TypeMismatchError` otherwise."""
    operand = as_operand(value)
    if isinstance(operand, tensor):
        raise TypeMismatchError(
            "a number known when compiling is needed", expected="a constexpr", found=operand.type.name
        )
    return operand


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def scalar_type(value: Scalar) -> dtype:
    """The dtype of a Python scalar that meets no tensor."""
    if isinstance(value, bool):
        return types.int1
    if isinstance(value, float):
        tiny, huge = 2.0**-126, (2.0 - 2.0**-23) * 2.0**127
        fits = value == 0.0 or not math.isfinite(value) or tiny <= abs(value) <= huge
        return types.float32 if fits else types.float64
    for candidate in (types.int32, types.uint32, types.int64, types.uint64):
        if _holds(candidate, value):
            return candidate
    raise TypeMismatchError(
        f"the integer {value} does not fit in 64 bits", upstream=f"Nonrepresentable integer {value}."
    )


def _holds(integer: dtype, value: Scalar) -> bool:
    return integer.get_int_min_value() <= value <= integer.get_int_max_value()


def literal(value: Scalar, type: dtype, shape: Sequence[int] = ()) -> tensor:
    """A constant of dtype `type`, as every element of a block of `shape` where one is given.

    Floats are rounded to nearest even.
    """
    if type.is_packed():
        return literal(value, types.float32, shape).to(type)
    if type.is_ptr():
        hint = "tl.cast of an integer makes one"
        raise TypeMismatchError("a pointer cannot be a constant", found=type.name, hint=hint)
    element, coded = type.to_ir(), _coded(value, type)
    if shape:
        block = block_type(type, shape)
        attribute = DenseAttr((coded,), TensorType(block.shape, element))
        return tensor(current().emit(arith.Constant, value=attribute), block)
    attribute = FloatAttr(coded, element) if isinstance(coded, float) else IntegerAttr(coded, element)
    return tensor(current().emit(arith.Constant, value=attribute), type)


def _coded(value: Scalar, type: dtype) -> int | float:
    """The attribute's value: rounded to the float type; an unsigned integer as the signed one with its bits."""
    ir_type = type.to_ir()
    if isinstance(ir_type, FloatType):
        return convert_float(float(value), ir_type)
    assert isinstance(ir_type, IntegerType)
    if isinstance(value, float) and not value.is_integer():
        raise TypeMismatchError(
            f"the float {value} is no value of {type}", hint=f"convert it: tl.cast({value}, tl.{type})"
        )
    number = int(value)
    if not _holds(type, number):
        low, high = type.get_int_min_value(), type.get_int_max_value()
        raise TypeMismatchError(
            f"the integer {number} does not fit in {type}",
            expected=f"{low} to {high}",
            found=str(number),
            upstream=f"Scalar {number} is out of range for type {type}",
        )
    return number - (1 << type.bits) if type.bits > 1 and number >= 1 << (type.bits - 1) else number


def promote_integers(a: dtype, b: dtype) -> dtype:
    """The integer dtype of two.

    The wider one; of different signedness the unsigned one unless the signed one is wider (C's usual conversions).
    """
    if a.is_int_signed() == b.is_int_signed():
        return a if a.bits > b.bits else b
    unsigned, signed = (b, a) if a.is_int_signed() else (a, b)
    return unsigned if unsigned.bits >= signed.bits else signed


def promote(a: dtype, b: dtype, division: bool = False) -> dtype:
    """The dtype in which tensors of dtypes `a` and `b` are combined; `division` is / // and %, which never run in
    16 bits.

    fp64 wins, then fp32, then fp16; bf16 stays only with itself (with an integer too it becomes fp32); two
    different fp8 become fp16; integers follow C.
    """
    pair = (a, b)
    if types.float64 in pair:
        return types.float64
    if division and (a.is_floating() or b.is_floating()):
        return types.float32
    for wide in (types.float32, types.float16):
        if wide in pair:
            return wide
    if types.bfloat16 in pair:
        return types.bfloat16 if a == b else types.float32
    if a.is_fp8() and b.is_fp8():
        return a if a == b and not a.is_packed() else types.float16
    if not (a.is_int() and b.is_int()):
        raise TypeMismatchError("operands do not go together", found=f"{a} and {b}", hint=_promotion_hint(a, b))
    if division and a.is_int_signed() != b.is_int_signed():
        raise TypeMismatchError(
            "/, // and % need operands of the same signedness",
            found=f"{a} and {b}",
            hint="convert one of them with .to(...)",
            upstream=f"Cannot use /, #, or % with {a} and {b} because they have different signedness;"
            "this is unlikely to result in a useful answer. Cast them to the same signedness.",
        )
    return promote_integers(a, b)


def _promotion_hint(a: dtype, b: dtype) -> str:
    if a.is_ptr() or b.is_ptr():
        return (
            "pointers can only be moved by integers (pointer + offset, pointer - offset); tl.load(pointer) is the value"
        )
    return "convert one of them with .to(...)"


def computation_type(a: Operand, b: Operand, division: bool = False) -> dtype:
    """The dtype in which two operands are combined.

    A Python scalar counts only if its kind is higher than the tensor's.
    """
    a_type, b_type = operand_type(a), operand_type(b)
    if isinstance(a, tensor) != isinstance(b, tensor):
        scalar, block = (b_type, a_type) if isinstance(a, tensor) else (a_type, b_type)
        if not block.is_ptr() and scalar.kind() <= block.kind():
            a_type = b_type = block
    return promote(a_type, b_type, division)


def operand_type(operand: Operand) -> dtype:
    """The element type of an operand."""
    return operand.dtype if isinstance(operand, tensor) else scalar_type(operand)


def convert(operand: Operand, type: dtype, shape: Sequence[int] = ()) -> tensor:
    """An operand in dtype `type`; a Python scalar becomes a constant, of `shape` where one is given."""
    if isinstance(operand, tensor):
        return operand if operand.dtype is type else operand.to(type)
    if type.is_int_unsigned() and operand < 0:
        raise TypeMismatchError(
            f"the negative number {operand} meets an unsigned tensor of {type}",
            hint="convert the tensor to a signed dtype first",
            upstream="Cannot perform a binary operation between an unsigned tensor and a negative scalar. "
            "Perform a explicit cast on one of them.",
        )
    return literal(operand, type, shape)


def stored_as(value: object, type: dtype) -> tensor:
    """A value converted to the dtype it is stored in, as an assignment in C converts."""
    operand = as_operand(value)
    if isinstance(operand, tensor) or type.is_floating():
        return convert(operand, type)
    exact = type.is_int() and float(operand).is_integer() and _holds(type, operand)
    return literal(operand, type) if exact else convert(to_tensor(operand), type)


def sequence(value: object, what: str) -> tuple[object, ...]:
    """The items of a tuple or list; `TypeMismatchError` for anything else."""
    plain = unwrap(value)
    if not isinstance(plain, tuple | list):
        found = plain.type.name if isinstance(plain, tensor) else repr(plain)
        raise TypeMismatchError(f"{what} is a tuple with one value for each dimension", expected="a tuple", found=found)
    return tuple(cast("Sequence[object]", plain))


def per_dimension(value: object) -> tuple[object, ...]:
    """The items of a tuple or list; a single value is one for the only dimension."""
    plain = unwrap(value)
    return tuple(cast("Sequence[object]", plain)) if isinstance(plain, tuple | list) else (value,)


def integer_scalar(value: object, type: dtype, what: str) -> tensor:
    """An integer (constexpr or scalar tensor) as int32 or int64; `TypeMismatchError` if it is none or would be cut."""
    operand = unwrap(value)
    if isinstance(operand, int) and not isinstance(operand, bool):
        return literal(operand, type)
    if not isinstance(operand, tensor) or operand.type.is_block() or not operand.dtype.is_int():
        found = operand.type.name if isinstance(operand, tensor) else repr(operand)
        raise TypeMismatchError(f"{what} must be integer scalars", expected=f"an integer that fits {type}", found=found)
    if operand.dtype.bits > type.bits:
        raise TypeMismatchError(
            f"{what} must fit {type}", expected=type.name, found=operand.type.name, hint=f"add .to(tl.{type})"
        )
    return convert(operand, type)


def promoted(a: object, b: object, division: bool = False) -> tuple[tensor, tensor]:
    """Two operands as tensors of the same dtype and shape."""
    left, right = as_operand(a), as_operand(b)
    common = computation_type(left, right, division)
    shape = _shape(left) or _shape(right)
    return broadcast(convert(left, common, shape), convert(right, common, shape))


def promoted_three(a: object, b: object, c: object) -> tuple[tensor, tensor, tensor]:
    """Three operands as tensors of the same dtype and shape.

    Scalars give way to the tensors whatever their position.
    """
    operands = [as_operand(item) for item in (a, b, c)]
    tensors = [item.dtype for item in operands if isinstance(item, tensor)]
    scalars = [scalar_type(item) for item in operands if not isinstance(item, tensor)]
    common = _joined(tensors) if tensors else _joined(scalars)
    if tensors and scalars and _joined(scalars).kind() > common.kind():
        common = promote(common, _joined(scalars))
    x, y, z = broadcast_all(*(convert(item, common) for item in operands))
    return x, y, z


def computable(x: object) -> tensor:
    """One operand as a tensor of the dtype in which two of its dtype are combined: a packed float as fp16."""
    value = to_tensor(x)
    return value.to(types.float16) if value.dtype.is_packed() else value


def _joined(dtypes: Sequence[dtype]) -> dtype:
    joined = types.float16 if dtypes[0].is_packed() else dtypes[0]
    for other in dtypes[1:]:
        joined = promote(joined, other)
    return joined


def _shape(operand: Operand) -> tuple[int, ...]:
    return operand.type.shape if isinstance(operand, tensor) else ()


def broadcast(a: tensor, b: tensor) -> tuple[tensor, tensor]:
    """Two tensors in their common shape: leading dimensions of size 1 are added, dimensions of size 1 are repeated."""
    shape = common_shape(a.type.shape, b.type.shape)
    return broadcast_to(a, shape), broadcast_to(b, shape)


def broadcast_all(*values: tensor) -> tuple[tensor, ...]:
    """Tensors in their common shape."""
    shape: tuple[int, ...] = ()
    for value in values:
        shape = common_shape(shape, value.type.shape)
    return tuple(broadcast_to(value, shape) for value in values)


def common_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which two shapes broadcast; `ShapeMismatchError` if they do not."""
    if a == b:
        return a
    rank = max(len(a), len(b))
    left, right = ((1,) * (rank - len(shape)) + shape for shape in (a, b))
    for i, (m, n) in enumerate(zip(left, right, strict=True)):
        if m != n and 1 not in (m, n):
            raise ShapeMismatchError(
                f"shapes {list(a)} and {list(b)} do not broadcast: dimension {i - rank} is {m} and {n}",
                expected="equal sizes, or a size of 1",
                found=f"{m} and {n}",
                hint="add dimensions of size 1 with x[:, None] or x[None, :]",
                upstream=f"Cannot make_shape_compatible: incompatible dimensions at index {i}: {m} and {n}",
            )
    return tuple(max(m, n) for m, n in zip(left, right, strict=True))


def broadcast_to(value: tensor, shape: tuple[int, ...]) -> tensor:
    """A tensor in a shape to which its own broadcasts."""
    if value.type.shape == shape:
        return value
    if not value.type.shape:
        return splat(value, shape)
    for _ in range(len(shape) - len(value.type.shape)):
        value = expand_dims(value, 0)
    if value.type.shape == shape:
        return value
    made = block_type(value.dtype, shape)
    return tensor(current().emit(tt.Broadcast, value.handle, result_types=[made.to_ir()]), made)


def splat(value: tensor, shape: Sequence[int]) -> tensor:
    """A scalar as every element of a block."""
    if not shape:
        return value
    made = block_type(value.type, shape)
    return tensor(current().emit(tt.Splat, value.handle, result_types=[made.to_ir()]), made)


def expand_dims(value: tensor, axis: int) -> tensor:
    """A new dimension of size 1 at `axis` (checked by the caller) of a block."""
    shape = value.type.shape
    return tensor(
        current().emit(tt.ExpandDims, value.handle, axis=axis),
        block_type(value.dtype, (*shape[:axis], 1, *shape[axis:])),
    )


def constexpr_int(value: object, what: str) -> int:
    """An integer known when compiling; `ConstexprError` otherwise."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConstexprError(
            f"{what} must be known when compiling",
            expected="an int or a tl.constexpr",
            found=shown(value),
            hint="declare the kernel parameter as `NAME: tl.constexpr`" if isinstance(value, tensor) else None,
        )
    return value


def shown(value: object) -> str:
    """A value in a message."""
    return repr(value) if isinstance(value, tensor) else f"{value!r} of type {type(value).__name__}"


def wrapped_axis(axis: object, rank: int, what: str) -> int:
    """An axis counted from the front; `AxisError` if it is out of range."""
    number = constexpr_int(axis, f"the axis of {what}")
    if not -rank <= number < rank:
        expected = (
            f"{-rank} to {rank - 1}, since the block has {rank} dimension{'s' * (rank != 1)}"
            if rank
            else "a block: a scalar has no axes"
        )
        raise AxisError(
            f"the axis of {what} is out of range",
            expected=expected,
            found=str(number),
            upstream=f"invalid axis {number}. Expected {-rank} <= axis < {rank}",
        )
    return number % rank
