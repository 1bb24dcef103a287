"""Sorting along the last dimension with bitonic networks.

Takes blocks; each step compares every element with the one whose index differs in one bit (a gather) and keeps the
smaller or larger one, so that any rank works and shapes stay as they are. NaNs are ordered nowhere in particular.
"""

from __future__ import annotations

from mltriton.errors import AxisError, PowerOfTwoError
from mltriton.language.arithmetic import bitwise_and, bitwise_xor, invert
from mltriton.language.building import builtin
from mltriton.language.comparison import equal, greater_than, not_equal, where
from mltriton.language.creation import arange
from mltriton.language.indexing import along, gather
from mltriton.language.reductions import ordered_dtype
from mltriton.language.semantic import constexpr_int, to_tensor, wrapped_axis
from mltriton.language.tensor import tensor

__all__ = ["bitonic_merge", "sort", "topk"]


@builtin
def sort(x: object, dim: int | None = None, descending: bool = False) -> tensor:
    """The elements in order along the last dimension."""
    value = _last_dimension(x, dim, "tl.sort")
    width = 2
    while width <= value.type.shape[-1]:
        value = _merged(value, width, bool(descending))
        width *= 2
    return value


@builtin
def topk(x: object, k: object, dim: int | None = None, descending: bool = True) -> tensor:
    """The `k` (a power of two) largest elements along the last dimension, the largest first.

    The smallest ones with `descending=False`. Where some are left out the result is fp32 or int32 for narrower dtypes,
    as that of `tl.max`.
    """
    value = _last_dimension(x, dim, "tl.topk")
    shape = value.type.shape
    count = constexpr_int(k, "the k of tl.topk")
    if not 0 < count <= shape[-1] or count & (count - 1):
        raise PowerOfTwoError("the k of tl.topk", expected=f"a power of two up to {shape[-1]}", found=str(count))
    if count < shape[-1]:
        value = value.to(ordered_dtype(value.dtype))
    ordered = sort(value, descending=descending)
    return gather(ordered, along(arange(0, count), len(shape) - 1, shape), -1)


@builtin
def bitonic_merge(x: object, dim: int | None = None, descending: bool = False) -> tensor:
    """The elements of a bitonic sequence (rising, then falling) in order along the last dimension."""
    value = _last_dimension(x, dim, "tl.bitonic_merge")
    size = value.type.shape[-1]
    return value if size == 1 else _merged(value, size, bool(descending))


def _last_dimension(x: object, dim: object, name: str) -> tensor:
    value = to_tensor(x)
    rank = len(value.type.shape)
    axis = wrapped_axis(-1 if dim is None else dim, rank, name)
    if axis != rank - 1:
        raise AxisError(
            f"{name} works along the last dimension",
            expected=str(rank - 1),
            found=str(axis),
            hint="permute the block before and after",
        )
    return value


def _merged(value: tensor, width: int, descending: bool) -> tensor:
    """Runs of `width` elements, each bitonic, in order: rising and falling by turns, unless the run is the whole row.

    Elements are compared and exchanged at distances width / 2, width / 4, ..., 1.
    """
    shape = value.type.shape
    index = arange(0, shape[-1])
    distance = width // 2
    while distance:
        partner = gather(value, along(bitwise_xor(index, distance), len(shape) - 1, shape), -1)
        is_lower = equal(bitwise_and(index, distance), 0)
        takes_smaller = is_lower
        if width < shape[-1]:
            takes_smaller = not_equal(is_lower, not_equal(bitwise_and(index, width), 0))
        takes_smaller = along(invert(takes_smaller) if descending else takes_smaller, len(shape) - 1, shape)
        # Both elements of a pair decide by the same comparison, so that none is lost when one of them is NaN.
        exchanged = where(takes_smaller, greater_than(value, partner), greater_than(partner, value))
        value = where(exchanged, partner, value)
        distance //= 2
    return value
