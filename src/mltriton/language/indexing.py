"""Choosing elements: `x[:, None]`, `tl.gather`, `tl.flip`.

Takes blocks; guarantees that only `:` and None index a block, and that elements chosen by index come through one
operation, `tt.gather`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import tt
from mltriton.errors import AxisError, ShapeMismatchError, TypeMismatchError
from mltriton.language import semantic
from mltriton.language.arithmetic import bitwise_xor
from mltriton.language.building import builtin, current
from mltriton.language.creation import arange
from mltriton.language.semantic import shown, to_tensor, wrapped_axis
from mltriton.language.shapes import expand_dims, required_block
from mltriton.language.tensor import tensor
from mltriton.language.types import block_type

__all__ = ["flip", "gather"]


@builtin
def index(value: object, key: object) -> tensor:
    """`x[:, None]`: a full slice keeps a dimension, None adds one, `...` stands for the dimensions not named."""
    made = to_tensor(value)
    parts = _without_ellipsis(cast("Sequence[object]", key if isinstance(key, tuple | list) else (key,)), made)
    for dim, part in enumerate(parts):
        if part is None:
            made = expand_dims(made, dim)
    return made


def _without_ellipsis(parts: Sequence[object], value: tensor) -> list[object]:
    """The parts of an index, checked, with `:` in place of what `...` stands for."""
    rank = len(value.type.shape)
    kept = 0
    for part in parts:
        if type(part) is slice and part == slice(None):
            kept += 1
        elif part is not None and part is not Ellipsis:
            raise ShapeMismatchError(
                "a block can be indexed with `:` and None only",
                found=f"the index {shown(part)}",
                hint="tl.load(pointer + i) reads what lies i elements further"
                if value.dtype.is_ptr()
                else "load the elements that you need, or use tl.gather, tl.split or a reduction",
                upstream=f"unsupported tensor index: {shown(part)}",
            )
    if not rank:  # Upstream leaves `:` of a scalar out.
        return [part for part in parts if part is None]
    if kept > rank:
        raise AxisError("too many `:` in an index", expected=f"at most {rank}", found=str(kept))
    whole: list[object] = [slice(None)]
    return [item for part in parts for item in (whole * (rank - kept) if part is Ellipsis else [part])]


@builtin
def gather(src: object, index: object, axis: object) -> tensor:
    """Element [.., i, ..] is `src[.., index[.., i, ..], ..]` along `axis`.

    The other dimensions of the two are equal.
    """
    source, indices = required_block(src, "tl.gather"), required_block(index, "tl.gather")
    if not indices.dtype.is_int():
        raise TypeMismatchError(
            "the indices of tl.gather must be integers", expected="an integer dtype", found=indices.type.name
        )
    rank = len(source.type.shape)
    dimension = wrapped_axis(axis, rank, "tl.gather")
    others = [tuple(size for i, size in enumerate(value.type.shape) if i != dimension) for value in (source, indices)]
    if len(indices.type.shape) != rank or others[0] != others[1]:
        raise ShapeMismatchError(
            f"source and indices of tl.gather must have equal sizes except along axis {dimension}",
            expected=source.type.name,
            found=indices.type.name,
        )
    return tensor(
        current().emit(tt.Gather, source.handle, indices.handle, axis=dimension),
        block_type(source.dtype, indices.type.shape),
    )


@builtin
def flip(x: object, dim: object = None) -> tensor:
    """The elements in reverse order along `dim` (default: the last)."""
    value = required_block(x, "tl.flip")
    dimension = wrapped_axis(-1 if dim is None else dim, len(value.type.shape), "tl.flip")
    size = value.type.shape[dimension]
    return gather(value, along(bitwise_xor(arange(0, size), size - 1), dimension, value.type.shape), dimension)


def along(vector: tensor, axis: int, shape: tuple[int, ...]) -> tensor:
    """A 1D block laid along `axis` and repeated along the other dimensions of `shape`."""
    for dim in range(len(shape)):
        if dim != axis:
            vector = semantic.expand_dims(vector, dim)
    return semantic.broadcast_to(vector, (*shape[:axis], vector.type.shape[axis], *shape[axis + 1 :]))
