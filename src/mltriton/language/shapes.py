"""Shape operations: new dimensions, broadcasting, reshaping, permuting, joining.

Takes blocks (a scalar where it has a meaning); guarantees that elements keep their row-major order unless
`can_reorder` is given. Shapes may be written as one tuple or as several arguments; axes may be negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from mltriton.dialects import tt
from mltriton.errors import AxisError, ShapeMismatchError, TypeMismatchError
from mltriton.language import semantic
from mltriton.language.building import builtin, current
from mltriton.language.semantic import to_tensor, wrapped_axis
from mltriton.language.tensor import tensor
from mltriton.language.types import block_type, checked_shape

__all__ = [
    "broadcast",
    "broadcast_to",
    "cat",
    "expand_dims",
    "interleave",
    "item",
    "join",
    "permute",
    "ravel",
    "reshape",
    "split",
    "squeeze",
    "trans",
    "unsqueeze",
    "view",
]


def _listed(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sizes given as `f(x, 2, 3)` or `f(x, (2, 3))`."""
    if len(sizes) == 1 and isinstance(sizes[0], tuple | list):
        return tuple(cast("Sequence[Any]", sizes[0]))
    return sizes


def required_block(value: object, what: str) -> tensor:
    """A value that is a block; `TypeMismatchError` otherwise."""
    made = to_tensor(value)
    if not made.type.is_block():
        raise TypeMismatchError(f"{what} needs a block", expected="a block", found=made.type.name)
    return made


@builtin
def item(input: object) -> tensor:
    """The only element of a block of one element, as a scalar."""
    value = to_tensor(input)
    if not value.type.is_block():
        return value
    if value.numel != 1:
        raise ShapeMismatchError("item needs a block of one element", found=value.type.name)
    flat = value if len(value.type.shape) == 1 else reshape(value, (1,))
    return tensor(current().emit(tt.Unsplat, flat.handle), value.dtype)


# Dimensions.


@builtin
def expand_dims(input: object, axis: object) -> tensor:
    """New dimensions of size 1 at `axis`: an int, or a list of axes of the result."""
    value = to_tensor(input)
    axes: list[object] = list(cast("Sequence[object]", axis)) if isinstance(axis, tuple | list) else [axis]
    rank = len(value.type.shape) + len(axes)
    dimensions = sorted(wrapped_axis(each, rank, "tl.expand_dims") for each in axes)
    if len(set(dimensions)) != len(dimensions):
        twice = f"expand_dims received duplicate axes, normalized axes = {dimensions}"
        raise AxisError("tl.expand_dims got an axis twice", found=str(dimensions), upstream=twice)
    for dimension in dimensions:
        value = semantic.expand_dims(value, dimension) if value.type.is_block() else semantic.splat(value, (1,))
    return value


@builtin
def broadcast(input: object, other: object) -> tuple[tensor, tensor]:
    """Two values in their common shape."""
    return semantic.broadcast(to_tensor(input), to_tensor(other))


@builtin
def broadcast_to(input: object, *shape: Any) -> tensor:
    """`input` in `shape`: dimensions of size 1 are repeated."""
    value, target = to_tensor(input), checked_shape(_listed(shape))
    source = value.type.shape
    if source and (len(source) != len(target) or any(m not in (1, n) for m, n in zip(source, target, strict=True))):
        raise ShapeMismatchError(
            f"{list(source)} does not broadcast to {list(target)}",
            expected="the same rank, and sizes equal or 1",
            found=value.type.name,
            upstream=f"Cannot broadcast, rank mismatch: {list(source)}, {list(target)}"
            if len(source) != len(target)
            else f"Cannot broadcast, the expanded size of the tensor {list(target)} must match the existing size",
        )
    return semantic.broadcast_to(value, target)


@builtin
def reshape(input: object, *shape: Any, can_reorder: bool = False) -> tensor:
    """The same elements in another shape; `can_reorder` lets them come in any order."""
    value = to_tensor(input)
    target = checked_shape(_inferred(_listed(shape), value))
    if math.prod(target) != (value.type.numel if isinstance(value.type, block_type) else 1):
        raise ShapeMismatchError(
            "a reshape keeps the number of elements",
            expected=f"{value.numel.value} elements, as in {value.type.name}",
            found=f"{math.prod(target)} in {list(target)}",
            upstream="reshape() cannot change total number of elements in tensor",
        )
    if not value.type.is_block():
        return semantic.splat(value, target)
    if not target:
        return item(value)
    if value.type.shape == target:
        return value
    made = block_type(value.dtype, target)
    handle = current().emit(
        tt.Reshape, value.handle, allow_reorder=True if can_reorder else None, result_types=[made.to_ir()]
    )
    return tensor(handle, made)


def _inferred(sizes: tuple[Any, ...], value: tensor) -> tuple[Any, ...]:
    """-1 for one size stands for what is left."""
    if any(isinstance(size, tensor) for size in sizes) or sizes.count(-1) != 1:
        return sizes
    known = math.prod(size for size in sizes if size != -1)
    return tuple(value.numel.value // known if size == -1 else size for size in sizes)


@builtin
def view(input: object, *shape: Any) -> tensor:
    """Reshape with elements in any order."""
    return reshape(input, *shape, can_reorder=True)


@builtin
def ravel(x: object, can_reorder: bool = False) -> tensor:
    """All elements in one dimension."""
    value = to_tensor(x)
    return reshape(value, (value.numel.value,), can_reorder=can_reorder)


@builtin
def squeeze(x: object, dim: object) -> tensor:
    """Without dimension `dim`, which has size 1."""
    value = required_block(x, "tl.squeeze")
    dimension = wrapped_axis(dim, len(value.type.shape), "tl.squeeze")
    if value.type.shape[dimension] != 1:
        raise ShapeMismatchError(
            "tl.squeeze removes a dimension of size 1",
            expected=f"size 1 at dimension {dimension}",
            found=value.type.name,
        )
    return reshape(value, (*value.type.shape[:dimension], *value.type.shape[dimension + 1 :]))


@builtin
def unsqueeze(x: object, dim: object) -> tensor:
    """With a new dimension of size 1 at `dim`."""
    return expand_dims(x, dim)


# Order of dimensions.


@builtin
def permute(input: object, *dims: Any) -> tensor:
    """Dimension i of the result is dimension dims[i] of the source."""
    value = required_block(input, "tl.permute")
    rank = len(value.type.shape)
    order = tuple(wrapped_axis(dim, rank, "tl.permute") for dim in _listed(dims))
    if sorted(order) != list(range(rank)):
        raise AxisError(
            "not a permutation of the dimensions",
            expected=f"each of 0 to {rank - 1} once",
            found=str(list(_listed(dims))),
            upstream=f"permute dims must be a permutation of 0, 1, ..., n-1, but were {list(_listed(dims))}",
        )
    if order == tuple(range(rank)):
        return value
    handle = current().emit(tt.Trans, value.handle, order=order)
    return tensor(handle, block_type(value.dtype, tuple(value.type.shape[i] for i in order)))


@builtin
def trans(input: object, *dims: Any) -> tensor:
    """Dimensions permuted; without `dims` the last two are swapped."""
    return permute(input, *dims) if _listed(dims) else transposed(input)


def transposed(value: object) -> tensor:
    """The last two dimensions swapped."""
    made = required_block(value, "a transpose")
    rank = len(made.type.shape)
    if rank < 2:
        raise AxisError("a transpose needs two dimensions", expected="a block of rank 2 or more", found=made.type.name)
    return permute(made, (*range(rank - 2), rank - 1, rank - 2))


# Joining and taking apart.


@builtin
def join(a: object, b: object) -> tensor:
    """Two blocks along a new last dimension of size 2; scalars give a block of 2. Of integers the first has the say."""
    left, right = semantic.broadcast(to_tensor(a), to_tensor(b))
    same_bits = left.dtype.is_int() and right.dtype.is_int() and left.dtype.bits == right.dtype.bits
    if left.dtype != right.dtype and not same_bits:
        raise TypeMismatchError(
            "tl.join needs one dtype",
            expected=left.type.name,
            found=right.type.name,
            hint="convert one of them with .to(...)",
        )
    if not left.type.is_block():
        return reshape(join(semantic.splat(left, (1,)), semantic.splat(right, (1,))), (2,))
    return tensor(current().emit(tt.Join, left.handle, right.handle), block_type(left.dtype, (*left.type.shape, 2)))


@builtin
def split(a: object) -> tuple[tensor, tensor]:
    """The two halves of the last dimension, which has size 2; of a block of 2 its two elements as scalars."""
    value = required_block(a, "tl.split")
    if value.type.shape[-1] != 2:
        raise ShapeMismatchError("tl.split needs a last dimension of size 2", found=value.type.name)
    if len(value.type.shape) == 1:
        left, right = split(reshape(value, (1, 2)))
        return item(left), item(right)
    made = block_type(value.dtype, value.type.shape[:-1])
    left, right = current().create(tt.Split, value.handle).results
    return tensor(left, made), tensor(right, made)


@builtin
def cat(input: object, other: object, can_reorder: bool = False, dim: object = 0) -> tensor:
    """One block after the other along `dim`, in order (upstream asks for `can_reorder=True` for 1D blocks.

    Here it changes nothing).
    """
    left, right = required_block(input, "tl.cat"), required_block(other, "tl.cat")
    if left.type != right.type:
        raise TypeMismatchError("tl.cat needs two blocks of one type", expected=left.type.name, found=right.type.name)
    shape = left.type.shape
    axis = wrapped_axis(dim, len(shape), "tl.cat")
    if axis == 0:
        return tensor(
            current().emit(tt.Cat, left.handle, right.handle), block_type(left.dtype, (2 * shape[0], *shape[1:]))
        )
    rank = len(shape)
    stacked = permute(join(left, right), (*range(axis), rank, *range(axis, rank)))
    return reshape(stacked, (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]))


@builtin
def interleave(a: object, b: object) -> tensor:
    """The elements of two blocks by turns along the last dimension."""
    joined = join(a, b)
    shape = joined.type.shape
    return joined if len(shape) == 1 else reshape(joined, (*shape[:-2], 2 * shape[-2]))
