"""New blocks: ranges and constants. Shapes are known when compiling, every dimension a power of two."""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import tt
from mltriton.errors import ShapeMismatchError, TypeMismatchError
from mltriton.language import semantic, types
from mltriton.language.building import builtin, current
from mltriton.language.semantic import to_tensor
from mltriton.language.shapes import constexpr_int, item
from mltriton.language.tensor import tensor
from mltriton.language.types import block_type, checked_shape, dtype

__all__ = ["arange", "full", "zeros", "zeros_like"]


@builtin
def arange(start: object, end: object) -> tensor:
    """int32 block start, start + 1, ..., end - 1; `end - start` a power of two, both constexpr."""
    first, last = constexpr_int(start, "the start of tl.arange"), constexpr_int(end, "the end of tl.arange")
    if last <= first:
        raise ShapeMismatchError("tl.arange needs an end above its start", found=f"tl.arange({first}, {last})")
    if first < -(1 << 31) or last > 1 << 31:
        raise TypeMismatchError(
            "tl.arange counts in int32", expected="bounds of 32 bits", found=f"tl.arange({first}, {last})"
        )
    made = block_type(types.int32, (last - first,))
    return tensor(current().emit(tt.MakeRange, start=first, end=last), made)


@builtin
def full(shape: Sequence[int], value: object, dtype: dtype) -> tensor:
    """A block of `shape` with `value` (a number or a scalar tensor) as every element; shape () gives a scalar."""
    if not isinstance(dtype, types.dtype):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeMismatchError("tl.full needs a dtype", expected="a dtype such as tl.float32", found=repr(dtype))
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
    return semantic.splat(semantic.convert(item(value), dtype), sizes)


@builtin
def zeros(shape: Sequence[int], dtype: dtype) -> tensor:
    """A block of zeros."""
    return full(shape, 0, dtype)


@builtin
def zeros_like(input: object) -> tensor:
    """Zeros in the shape and dtype of `input`."""
    like = to_tensor(input)
    return semantic.literal(0, like.dtype, like.type.shape)
