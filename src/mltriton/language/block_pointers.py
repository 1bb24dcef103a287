"""Block pointers: `tl.make_block_ptr`, `tl.advance`.

Takes a base pointer with the shape, strides and offsets of a tensor in global memory (in elements); guarantees a
value of pointer-to-block type whose shape and strides are int64 and whose offsets are int32 in the IR. Upstream
removed these from Triton 3.9; here they stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mltriton.dialects import tt
from mltriton.errors import AxisError, PointerError, ShapeMismatchError
from mltriton.ir.operation import Value
from mltriton.language import types
from mltriton.language.building import builtin, current
from mltriton.language.casting import cast as convert_dtype
from mltriton.language.semantic import constexpr_int, integer_scalar, per_dimension
from mltriton.language.tensor import composite, tensor
from mltriton.language.types import block_type, pointer_type

if TYPE_CHECKING:
    from mltriton.language.shared_memory import shared_pointer

__all__ = ["advance", "make_block_ptr"]


@builtin
def make_block_ptr(
    base: object,
    shape: object,
    strides: object,
    offsets: object,
    block_shape: object,
    order: object,
) -> tensor:
    """A pointer to the block of `block_shape` at `offsets` of the tensor that starts at `base`.

    `order` lists the dimensions, the fastest one first. Each argument of a block of one dimension may be a number.
    """
    pointer = _base(base)
    element = cast(pointer_type, pointer.dtype).element_ty
    block = block_type(element, cast("Sequence[int]", per_dimension(block_shape)))
    rank = len(block.shape)
    shape, strides, offsets = map(per_dimension, (shape, strides, offsets))
    order = [constexpr_int(dim, "`order` of tl.make_block_ptr") for dim in per_dimension(order)]
    for name, items in (("shape", shape), ("strides", strides), ("offsets", offsets), ("order", order)):
        if len(items) != rank:
            raise ShapeMismatchError(
                f"`{name}` of tl.make_block_ptr has another length than block_shape",
                expected=str(rank),
                found=str(len(items)),
            )
    if sorted(order) != list(range(rank)):
        raise AxisError(
            "`order` of tl.make_block_ptr is no permutation",
            expected=f"each of 0 to {rank - 1} once",
            found=str(list(order)),
        )
    kind = cast(pointer_type, pointer.dtype)
    made = pointer_type(block, kind.address_space, kind.const)
    sizes, steps = (
        [integer_scalar(item, types.int64, f"the {name}").handle for item in items]
        for name, items in (("shape", shape), ("strides", strides))
    )
    handle = current().emit(
        tt.MakeTensorPtr,
        pointer.handle,
        sizes,
        steps,
        _offsets(offsets),
        order=tuple(order),
        result_types=[made.to_ir()],
    )
    return tensor(handle, made)


def _base(base: object) -> tensor:
    if not isinstance(base, tensor) or not base.type.is_ptr() or base.is_block_pointer:
        found = base.type.name if isinstance(base, tensor) else repr(base)
        raise PointerError(
            "tl.make_block_ptr needs a scalar pointer", expected="a pointer such as a kernel argument", found=found
        )
    kind = cast(pointer_type, base.dtype)
    return (
        convert_dtype(base, pointer_type(types.int8, kind.address_space, kind.const))
        if kind.element_ty.is_bool()
        else base
    )


def _offsets(offsets: Sequence[object]) -> list[Value]:
    return [integer_scalar(offset, types.int32, "the offsets").handle for offset in offsets]


@builtin
def advance(base: object, offsets: object) -> tensor | shared_pointer:
    """The block pointer `base` moved by `offsets` elements in each dimension; `base` itself does not change."""
    if isinstance(base, composite):
        from mltriton.language.shared_memory import advanced, shared_pointer  # Few kernels have such pointers.

        if isinstance(base, shared_pointer):
            return advanced(base, offsets)
    if not isinstance(base, tensor) or not base.is_block_pointer:
        found = base.type.name if isinstance(base, tensor) else repr(base)
        raise PointerError(
            "tl.advance needs a block pointer",
            expected="what tl.make_block_ptr or tl.alloc returns",
            found=found,
            hint="move other pointers with +",
        )
    rank = len(cast(pointer_type, base.type).element_ty.shape)
    offsets = per_dimension(offsets)
    if len(offsets) != rank:
        raise ShapeMismatchError(
            "tl.advance needs one offset for each dimension", expected=str(rank), found=str(len(offsets))
        )
    return tensor(current().emit(tt.Advance, base.handle, _offsets(offsets)), base.type)
