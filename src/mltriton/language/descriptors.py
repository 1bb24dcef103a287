"""Tensor descriptors: `tl.make_tensor_descriptor`, and loads and stores of blocks through them.

Takes a base pointer with the shape and strides of a tensor in global memory (in elements); guarantees the rules of
the hardware behind descriptors: the last stride is the constant 1, a block's last dimension takes 16 bytes or more
(`DescriptorError`). Elements outside the tensor are read as the padding and never written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import arith, tt
from mltriton.errors import DescriptorError, PointerError, ShapeMismatchError
from mltriton.ir.operation import Value
from mltriton.language import types
from mltriton.language.access_options import EVICTION, LOAD_CACHE, PADDING, option
from mltriton.language.arithmetic import maximum, minimum
from mltriton.language.building import builtin, current
from mltriton.language.creation import full
from mltriton.language.semantic import integer_scalar, sequence, stored_as
from mltriton.language.tensor import tensor, tensor_descriptor
from mltriton.language.types import block_type, pointer_type, tensor_descriptor_type

__all__ = ["load_tensor_descriptor", "make_tensor_descriptor", "store_tensor_descriptor"]

MAX_RANK = 5
MOST = 2**31 - 1  # elements along a dimension, which offsets reach
MIN_ROW_BYTES = 16


@builtin
def make_tensor_descriptor(
    base: object,
    shape: Sequence[object],
    strides: Sequence[object],
    block_shape: Sequence[int],
    padding_option: str = "zero",
) -> tensor_descriptor:
    """A descriptor of the tensor at `base`, read and written in blocks of `block_shape`.

    1 to 5 dimensions; the last stride is 1, known when compiling; `padding_option` ("zero", or "nan" for floats) is
    what elements outside are read as.
    """
    if not isinstance(base, tensor) or not base.type.is_ptr() or base.is_block_pointer:
        found = base.type.name if isinstance(base, tensor) else repr(base)
        raise PointerError(
            "tl.make_tensor_descriptor needs a scalar pointer",
            expected="a pointer such as a kernel argument",
            found=found,
        )
    block = block_type(cast(pointer_type, base.dtype).element_ty, block_shape)
    shape, strides = (
        sequence(items, f"`{name}` of tl.make_tensor_descriptor")
        for name, items in (("shape", shape), ("strides", strides))
    )
    padding = _checked(block, shape, strides, padding_option)
    sizes = [_size(item) for item in shape]
    steps = [integer_scalar(item, types.int64, "the strides") for item in strides]
    return descriptor_of(base, sizes, steps, tensor_descriptor_type(block, padding))


def descriptor_of(
    base: tensor, shape: Sequence[tensor], strides: Sequence[tensor], type: tensor_descriptor_type
) -> tensor_descriptor:
    """The descriptor of a type that consists of these scalars."""
    handle = current().emit(
        tt.MakeTensorDesc,
        base.handle,
        [size.handle for size in shape],
        [step.handle for step in strides],
        padding=type.padding,
        result_types=[type.to_ir()],
    )
    return tensor_descriptor(handle, base, shape, strides, type)


def _checked(block: block_type, shape: Sequence[object], strides: Sequence[object], padding_option: str) -> str:
    """The IR's keyword for the padding, after all rules that need no values."""
    rank = len(block.shape)
    if rank > MAX_RANK:
        raise DescriptorError("a descriptor has at most 5 dimensions", expected=f"1 to {MAX_RANK}", found=str(rank))
    for name, items in (("shape", shape), ("strides", strides)):
        if len(items) != rank:
            raise DescriptorError(
                f"`{name}` and block_shape have different lengths", expected=str(rank), found=str(len(items))
            )
    last = strides[-1]
    if isinstance(last, tensor) or last != 1:
        raise DescriptorError(
            "the last stride of a descriptor must be the constant 1",
            expected="1, or an int argument that is 1 at launch",
            found="a value known only when the kernel runs" if isinstance(last, tensor) else str(last),
            hint="describe the transposed tensor and transpose the block, or use tl.make_block_ptr (any strides)",
            upstream=f"Tensor descriptor last dim must be 1 but got {last}",
        )
    row = block.shape[-1] * block.scalar.itemsize
    if row < MIN_ROW_BYTES:
        raise DescriptorError(
            f"the last dimension of a descriptor's block must take {MIN_ROW_BYTES} bytes or more",
            expected=f"at least {MIN_ROW_BYTES // block.scalar.itemsize} elements of {block.scalar}",
            found=f"{block.shape[-1]} elements, {row} bytes",
            upstream=f"Descriptor block shape must have at least 16 bytes in the last dimension, but got "
            f"{block.shape[-1]} * {block.scalar.itemsize} = {row} bytes",
        )
    padding = option(PADDING, padding_option, "padding_option") or "pad_zero"
    if padding == "pad_nan" and not block.is_floating():
        raise DescriptorError(
            "padding_option='nan' needs floats", expected="a float dtype", found=str(block.scalar), hint="use 'zero'"
        )
    return padding


def _size(item: object) -> tensor:
    """A tensor's extent as int32; one of 64 bits ends where offsets do (upstream cuts off its upper half)."""
    if isinstance(item, tensor) and not item.type.is_block() and item.dtype.is_int() and item.dtype.bits == 64:
        is_extended = isinstance(item.handle.defining_op, arith.ExtSI)
        item = (item if is_extended else minimum(maximum(item, 0), MOST)).to(types.int32)
    return integer_scalar(item, types.int32, "the shape")


def _descriptor(value: object, offsets: Sequence[object], what: str) -> tuple[tensor_descriptor, list[Value]]:
    if not isinstance(value, tensor_descriptor):
        found = value.type.name if isinstance(value, tensor) else repr(value)
        raise DescriptorError(
            f"{what} needs a descriptor", expected="what tl.make_tensor_descriptor returns", found=found
        )
    rank = len(value.type.block.shape)
    offsets = sequence(offsets, f"the offset of {what}")
    if len(offsets) != rank:
        raise DescriptorError(
            f"{what} needs one offset for each dimension", expected=str(rank), found=str(len(offsets))
        )
    return value, [integer_scalar(offset, types.int32, "the offsets").handle for offset in offsets]


@builtin
def load_tensor_descriptor(
    desc: object, offsets: Sequence[object], cache_modifier: str = "", eviction_policy: str = ""
) -> tensor:
    """The block at `offsets` (in elements)."""
    source, indices = _descriptor(desc, offsets, "a descriptor's load")
    cache = option(LOAD_CACHE, cache_modifier, "cache_modifier")
    evict = option(EVICTION, eviction_policy, "eviction_policy")
    return tensor(
        current().emit(tt.DescriptorLoad, source.handle, indices, cache=cache, evict=evict), source.block_type
    )


@builtin
def store_tensor_descriptor(desc: object, offsets: Sequence[object], value: object) -> None:
    """Write a block, converted to the element type, at `offsets` (in elements); a scalar is repeated."""
    target, indices = _descriptor(desc, offsets, "a descriptor's store")
    block = target.type.block
    converted = stored_as(value, block.scalar)
    if not converted.type.is_block():
        converted = full(block.shape, converted, block.scalar)
    if converted.type.shape != block.shape:
        raise ShapeMismatchError(
            "the value does not fit the descriptor's block", expected=block.name, found=converted.type.name
        )
    current().create(tt.DescriptorStore, target.handle, converted.handle, indices)
