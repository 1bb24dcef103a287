"""New blocks: ranges and constants. Shapes are known when compiling, every dimension a power of two."""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import tt
from mltriton.errors import PowerOfTwoError, ShapeMismatchError, TypeMismatchError
from mltriton.language import semantic, types
from mltriton.language.building import builtin, current
from mltriton.language.semantic import constexpr_int, to_tensor
from mltriton.language.tensor import tensor
from mltriton.language.types import block_type, checked_shape, dtype

__all__ = ["arange", "full", "zeros", "zeros_like"]


@builtin
def arange(start: object, end: object) -> tensor:
    """int32 block start, start + 1, ..., end - 1; `end - start` a power of two, both constexpr."""
    first, last = constexpr_int(start, "the start of tl.arange"), constexpr_int(end, "the end of tl.arange")
    if last <= first:
        raise ShapeMismatchError(
            "tl.arange needs an end above its start",
            found=f"tl.arange({first}, {last})",
            upstream="arange's end argument must be greater than the start argument",
        )
    if first < -(1 << 31) or last > 1 << 31:
        raise TypeMismatchError(
            "tl.arange counts in int32",
            expected="bounds of 32 bits",
            found=f"tl.arange({first}, {last})",
            upstream="arange must fit in int32",
        )
    size = last - first
    if size & (size - 1):
        raise PowerOfTwoError(
            "the range of tl.arange must be a power of two",
            found=f"tl.arange({first}, {last}), of {size}",
            hint=f"use {1 << size.bit_length()} and mask off what lies beyond {size}",
            upstream="arange's range must be a power of 2",
        )
    made = block_type(types.int32, (size,))
    return tensor(current().emit(tt.MakeRange, start=first, end=last), made)


@builtin
def full(shape: Sequence[int], value: object, dtype: dtype) -> tensor:
    """A block of `shape` with `value` (a number or a scalar tensor) as every element; shape () gives a scalar."""
    if not isinstance(dtype, types.dtype):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeMismatchError(
            "tl.full needs a dtype",
            expected="a dtype such as tl.float32",
            found=repr(dtype),
            upstream="dtype must be specified when value is not a tensor",
        )
    sizes = checked_shape(shape)
    if not isinstance(value, tensor):
        return semantic.literal(semantic.as_number(value), dtype, sizes)
    if value.type.is_block() and value.numel != 1:
        raise TypeMismatchError(
            "tl.full repeats a scalar",
            expected="a scalar",
            found=value.type.name,
            hint="use tl.broadcast_to for a block",
        )
    if value.type.is_block():
        from mltriton.language.shapes import item  # Few kernels have blocks of one element.

        value = item(value)
    return semantic.splat(semantic.convert(value, dtype), sizes)


@builtin
def zeros(shape: Sequence[int], dtype: dtype) -> tensor:
    """A block of zeros."""
    return full(shape, 0, dtype)


@builtin
def zeros_like(input: object) -> tensor:
    """Zeros in the shape and dtype of `input`."""
    like = to_tensor(input)
    return semantic.literal(0, like.dtype, like.type.shape)
