"""What descriptors do element by element: rows that lie apart (`gather`, `scatter`) and atomic updates.

Takes descriptors; guarantees what blocks of pointers give with a mask that leaves out what lies outside the tensor: it
is read as the padding and never written. Source: upstream's descriptor methods.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import tt
from mltriton.errors import DescriptorError, ShapeMismatchError, TypeMismatchError
from mltriton.language import types
from mltriton.language.arithmetic import add, bitwise_and, mul
from mltriton.language.atomics import KINDS
from mltriton.language.building import builtin, current
from mltriton.language.casting import cast
from mltriton.language.comparison import greater_equal, less_than
from mltriton.language.creation import arange
from mltriton.language.indexing import along
from mltriton.language.memory import check_writable, load, store
from mltriton.language.semantic import broadcast_to, expand_dims, integer_scalar, sequence, splat, stored_as, to_tensor
from mltriton.language.tensor import tensor, tensor_descriptor
from mltriton.language.types import dtype

_ADDED = (types.uint32, types.int32, types.uint64, types.float32, types.float16, types.bfloat16)
_INTEGERS = (types.uint32, types.int32, types.uint64, types.int64)
# Atomic update -> the dtypes that upstream has it for.
UPDATES: dict[str, tuple[dtype, ...]] = {"add": _ADDED} | dict.fromkeys(("min", "max", "and", "or", "xor"), _INTEGERS)
MIN_ROWS = 8


@builtin
def gather_rows(descriptor: tensor_descriptor, x_offsets: object, y_offset: object) -> tensor:
    """[rows, columns]: the rows `x_offsets`, each from column `y_offset` on. Raises `DescriptorError`."""
    pointers, inside = _rows(descriptor, x_offsets, y_offset, "gather")
    padding = float("nan") if descriptor.type.padding == "pad_nan" else 0
    return load(pointers, inside, padding)


@builtin
def scatter_rows(descriptor: tensor_descriptor, value: object, x_offsets: object, y_offset: object) -> None:
    """Store the rows of `value`. Raises `DescriptorError`, `ShapeMismatchError`."""
    pointers, inside = _rows(descriptor, x_offsets, y_offset, "scatter")
    stored = to_tensor(value)
    _check_shape(stored, pointers.type.shape, "scatter")
    store(pointers, stored, inside)


@builtin
def update(descriptor: tensor_descriptor, kind: str, offsets: Sequence[object], value: object) -> None:
    """Atomically combine `value` with the block at `offsets`. Raises `DescriptorError`, `ShapeMismatchError`."""
    element = descriptor.type.block.scalar
    if element not in UPDATES[kind]:
        listed = ", ".join(map(str, UPDATES[kind]))
        raise DescriptorError(
            f"Unsupported dtype for a descriptor's atomic_{kind}", expected=listed, found=str(element)
        )
    shape = descriptor.type.block.shape
    given = to_tensor(value)
    _check_shape(given, shape, f"atomic_{kind}")
    starts = sequence(offsets, f"the offset of a descriptor's atomic_{kind}")
    if len(starts) != len(shape):
        raise DescriptorError(
            f"expected {len(shape)} offsets, but got {len(starts)}", expected=str(len(shape)), found=str(len(starts))
        )
    check_writable(descriptor.base, f"a descriptor's atomic_{kind}")
    indices = [integer_scalar(start, types.int32, "the offsets").handle for start in starts]
    kinds = KINDS[kind]
    kind = kinds.unsigned if element.is_int_unsigned() else kinds.signed  # an addition's name is the same for floats
    current().create(tt.DescriptorReduce, descriptor.handle, stored_as(given, element).handle, indices, kind=kind)


def _check_shape(value: tensor, shape: tuple[int, ...], what: str) -> None:
    if value.type.shape != shape:
        raise ShapeMismatchError(
            f"expected value shape {list(shape)}, got {list(value.type.shape)}: what a descriptor's {what} takes",
            expected=str(list(shape)),
            found=value.type.name,
        )


def _counted(start: object, size: int) -> tensor:
    """`size` indices from `start` on."""
    return add(arange(0, size), integer_scalar(start, types.int32, "the offsets"))


def _rows(descriptor: tensor_descriptor, x_offsets: object, y_offset: object, what: str) -> tuple[tensor, tensor]:
    """The elements of some rows, and which of them lie in the tensor."""
    block, rows = descriptor.type.block, x_offsets
    if len(block.shape) != 2 or block.shape[0] != 1:
        raise DescriptorError(
            f"descriptor block must have 1 row, but got {list(block.shape)}: descriptor {what} takes rows one by one",
            expected="a block_shape of [1, columns]",
            found=block.name,
        )
    if not isinstance(rows, tensor) or len(rows.type.shape) != 1 or rows.dtype not in (types.int16, types.int32):
        found = rows.type.name if isinstance(rows, tensor) else repr(rows)
        raise TypeMismatchError(
            f"x offsets of descriptor {what} must be 1D, and have dtype int16 or int32",
            expected="a block of int32 of one dimension",
            found=found,
        )
    count, columns, least = rows.type.shape[0], block.shape[1], 32 // block.scalar.primitive_bitwidth * 8
    if count < MIN_ROWS:
        raise DescriptorError(f"descriptor {what} must have at least {MIN_ROWS} rows, but got {count}")
    if columns < least:
        message = f"descriptor {what} of {block.scalar} must have at least {least} columns, but got {columns}"
        raise DescriptorError(message)
    shape = (count, columns)
    row = broadcast_to(expand_dims(cast(rows, types.int32), 1), shape)
    return _elements(descriptor, [row, along(_counted(y_offset, columns), 1, shape)])


def _elements(descriptor: tensor_descriptor, indices: Sequence[tensor]) -> tuple[tensor, tensor]:
    """Pointers to the elements at `indices`, and which of them lie in the tensor."""
    shape = indices[0].type.shape
    pointers = splat(descriptor.base, shape)
    inside: tensor | None = None
    for index, size, stride in zip(indices, descriptor.shape, descriptor.strides, strict=True):
        pointers = add(pointers, mul(cast(index, types.int64), stride))
        fits = bitwise_and(greater_equal(index, 0), less_than(index, size))
        inside = fits if inside is None else bitwise_and(inside, fits)
    assert inside is not None
    return pointers, inside
