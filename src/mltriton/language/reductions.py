"""Reductions: `tl.reduce` and the functions made of it.

Takes blocks; guarantees that the combining function becomes a region on scalars, that a reduced 1D block is a
scalar, and upstream's dtypes (sums of narrow integers run in 32 bits, maxima and minima of narrow dtypes in fp32 or
int32). With `cross_warp=True` (warp-level kernels) the values of all warps of the program are combined, element by
element; with an axis as well, each warp's along it first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from mltriton.dialects import tt
from mltriton.errors import TypeMismatchError
from mltriton.language import semantic, types
from mltriton.language.arithmetic import (
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    maximum,
    minimum,
    mul,
    without_bfloat16,
)
from mltriton.language.building import builtin, current, is_builtin, made_builtin
from mltriton.language.combining import Combine, Values, combining_region, sources_of, sum_dtype, wrapped
from mltriton.language.comparison import equal, greater_than, less_than, not_equal, where
from mltriton.language.creation import arange
from mltriton.language.indexing import along
from mltriton.language.semantic import to_tensor, wrapped_axis
from mltriton.language.shapes import expand_dims
from mltriton.language.shapes import reshape as reshape_block
from mltriton.language.tensor import tensor
from mltriton.language.types import block_type, dtype
from mltriton.language.warps import AcrossWarps, across_warps, warp_id

__all__ = ["argmax", "argmin", "max", "min", "reduce", "reduce_or", "sum", "xor_sum"]


@builtin
def reduce(
    input: object,
    axis: int | None,
    combine_fn: Any,
    keep_dims: bool = False,
    *,
    cross_warp: bool = False,
    dst_warps: object = None,
) -> Values:
    """`input` (a block, or a tuple of blocks) combined along `axis`, or over all elements for None; a tuple gives a
    tuple.

    `combine_fn` takes the accumulated elements, then the new ones; it is associative and commutative. `keep_dims`
    leaves a dimension of size 1. With `cross_warp` the values of all warps are combined element by element, after each
    warp's along `axis` where one is given; `dst_warps` (one or several ids) receive the result, all when None.
    """
    return _reduce(input, axis, combine_fn, keep_dims, across_warps(cross_warp, dst_warps, "tl.reduce"))


def _reduce(input: object, axis: int | None, combine_fn: Any, keep_dims: bool, across: AcrossWarps | None) -> Values:
    if across is None:
        return _within(input, axis, combine_fn, keep_dims)
    own = input if axis is None else _within(input, axis, combine_fn, keep_dims)
    sources = sources_of(own, "a reduction across warps", scalars=True)
    region = combining_region(combine_fn, sources, tt.ReduceReturn, "tl.reduce")
    return wrapped(across.reduce(sources, region), [source.type for source in sources], input)


def _within(input: object, axis: int | None, combine_fn: Any, keep_dims: bool) -> Values:
    """A reduction of one warp's block (in a workgroup-level kernel, of the program's)."""
    sources = sources_of(input, "tl.reduce")
    rank = len(sources[0].type.shape)
    if axis is None:
        sources = tuple(_flat(source) for source in sources)
    dimension = 0 if axis is None else wrapped_axis(axis, rank, "a reduction")
    region = combining_region(combine_fn, sources, tt.ReduceReturn, "tl.reduce")
    handles = (
        current().create(tt.Reduce, [source.handle for source in sources], axis=dimension, regions=[region]).results
    )
    shape = sources[0].type.shape
    left = (*shape[:dimension], *shape[dimension + 1 :])
    made = wrapped(handles, [block_type(source.dtype, left) if left else source.dtype for source in sources], input)
    return _with_dimensions(made, range(rank) if axis is None else [dimension]) if keep_dims else made


def _flat(value: tensor) -> tensor:
    return reshape_block(value, (value.numel.value,), can_reorder=True)


def _with_dimensions(values: Values, axes: Sequence[int]) -> Values:
    if isinstance(values, tensor):
        return expand_dims(values, list(axes))
    return tuple(expand_dims(value, list(axes)) for value in values)


# Sums, products and their like.


def _reduced(
    value: object, axis: int | None, combine: Combine, keep_dims: bool, across: AcrossWarps | None = None
) -> tensor:
    return cast(tensor, _reduce(value, axis, _builtin_of(combine), keep_dims, across))


def _builtin_of(combine: Combine) -> Any:
    return combine if is_builtin(combine) else builtin(combine)


def ordered_dtype(kind: dtype) -> dtype:
    """Maxima and minima of dtypes below 32 bits run in fp32 or int32."""
    if kind.bits >= 32:
        return kind
    return types.float32 if kind.is_floating() else types.int32


def _integers(value: object, what: str) -> tensor:
    made = to_tensor(value)
    if not made.dtype.is_int():
        raise TypeMismatchError(f"{what} is for integers", expected="integers or bools", found=made.type.name)
    return made


@builtin
def sum(
    input: object,
    axis: int | None = None,
    keep_dims: bool = False,
    dtype: dtype | None = None,
    *,
    cross_warp: bool = False,
    dst_warps: object = None,
) -> tensor:
    """Sum along `axis` (None: of all), in `dtype` (default: the block's, narrow integers in 32 bits).

    `cross_warp` and `dst_warps` are as in `tl.reduce`.
    """
    value, across = to_tensor(input), across_warps(cross_warp, dst_warps, "tl.sum")
    return _reduced(value.to(dtype or sum_dtype(value.dtype)), axis, add, keep_dims, across)


def _bitwise(name: str, meaning: str, combine: Combine):
    """The builtin `tl.xor_sum` or `tl.reduce_or`."""

    def function(
        input: object,
        axis: int | None = None,
        keep_dims: bool = False,
        *,
        cross_warp: bool = False,
        dst_warps: object = None,
    ) -> tensor:
        across = across_warps(cross_warp, dst_warps, f"tl.{name}")
        return _reduced(_integers(input, f"tl.{name}"), axis, combine, keep_dims, across)

    says = f"{meaning} along `axis` (None: of all) of integers; across warps as `tl.reduce`."
    return made_builtin(function, name, says)


xor_sum = _bitwise("xor_sum", "Exclusive or", bitwise_xor)
reduce_or = _bitwise("reduce_or", "Inclusive or", bitwise_or)


# Maxima and minima, with or without where they are.

Compare = Callable[[object, object], tensor]


def _better(
    wins: Compare, ties_to_left: bool, value1: tensor, index1: tensor, value2: tensor, index2: tensor
) -> tuple[tensor, tensor]:
    """The better of two (value, index) pairs; between equal values the smaller index, if asked for.

    A NaN wins, and ties with a NaN: the combination is then associative, so that the order in which a target combines
    elements does not show.
    """
    first = wins(value1, value2)
    nan = not_equal(value1, value1) if value1.dtype.is_floating() else None
    if nan is not None:
        first = bitwise_and(bitwise_or(first, nan), equal(value2, value2))
    if ties_to_left:
        tied = equal(value1, value2) if nan is None else bitwise_or(equal(value1, value2), nan)
        first = bitwise_or(first, bitwise_and(tied, less_than(index1, index2)))
    return where(first, value1, value2), where(first, index1, index2)


def _with_indices(
    input: object, axis: int | None, wins: Compare, ties_to_left: bool, keep_dims: bool, across: AcrossWarps | None
) -> tuple[tensor, tensor]:
    """The extreme values and where they are.

    Across warps without an axis: on which warp; with one: in the blocks of all warps laid one after the other along it.
    """
    value = to_tensor(without_bfloat16(input))
    if across is None:
        return _indices_within(value, axis, wins, ties_to_left, keep_dims)
    if axis is None:
        found = value, semantic.broadcast_to(warp_id(), value.type.shape) if value.type.is_block() else warp_id()
    else:
        best, indices = _indices_within(value, axis, wins, ties_to_left, keep_dims)
        size = value.type.shape[wrapped_axis(axis, len(value.type.shape), "a reduction")]
        found = best, add(indices, mul(warp_id(), size))
    choose = builtin(partial(_better, wins, ties_to_left))
    return cast("tuple[tensor, tensor]", _reduce(found, None, choose, keep_dims=False, across=across))


def _indices_within(
    input: object, axis: int | None, wins: Compare, ties_to_left: bool, keep_dims: bool
) -> tuple[tensor, tensor]:
    value = to_tensor(input)
    if axis is None and value.type.is_block() and len(value.type.shape) > 1:
        rank, flat = len(value.type.shape), reshape_block(value, (value.numel.value,))
        found = _indices_within(flat, 0, wins, ties_to_left, keep_dims=False)
        return cast("tuple[tensor, tensor]", _with_dimensions(found, range(rank)) if keep_dims else found)
    shape = sources_of(value, "a maximum or minimum")[0].type.shape
    dimension = wrapped_axis(0 if axis is None else axis, len(shape), "a reduction")
    positions = along(arange(0, shape[dimension]), dimension, shape)
    choose = builtin(partial(_better, wins, ties_to_left))
    return cast("tuple[tensor, tensor]", _within((value, positions), dimension, choose, keep_dims))


def _extreme(input: object, axis: int | None, combine: Combine, keep_dims: bool, across: AcrossWarps | None) -> tensor:
    value = to_tensor(input)
    return _reduced(value.to(ordered_dtype(value.dtype)), axis, combine, keep_dims, across)


def _extremum(name: str, meaning: str, wins: Compare, combine: Combine):
    """The builtin `tl.max` or `tl.min`."""

    def function(
        input: object,
        axis: int | None = None,
        return_indices: bool = False,
        return_indices_tie_break_left: bool = True,
        keep_dims: bool = False,
        *,
        cross_warp: bool = False,
        dst_warps: object = None,
    ) -> Values:
        across = across_warps(cross_warp, dst_warps, f"tl.{name}")
        if return_indices:
            return _with_indices(input, axis, wins, return_indices_tie_break_left, keep_dims, across)
        return _extreme(input, axis, combine, keep_dims, across)

    says = f"""{meaning} along `axis` (None: of all); a NaN gives way. With `return_indices` also where it is (int32):
    (values, indices), and a NaN wins, the first one, as in numpy, torch and upstream's interpreter.

    `cross_warp` and `dst_warps` are as in `tl.reduce`; indices then as in `tl.arg{name}`.
    """
    return made_builtin(function, name, says)


def _where_extreme(name: str, meaning: str, wins: Compare):
    """The builtin `tl.argmax` or `tl.argmin`."""

    def function(
        input: object,
        axis: int | None = None,
        tie_break_left: bool = True,
        keep_dims: bool = False,
        *,
        cross_warp: bool = False,
        dst_warps: object = None,
    ) -> tensor:
        across = across_warps(cross_warp, dst_warps, f"tl.{name}")
        return _with_indices(input, axis, wins, tie_break_left, keep_dims, across)[1]

    says = f"""Where the {meaning} along `axis` is (int32); of equal ones the first. A NaN counts as the {meaning}.

    With `cross_warp` and no axis: on which warp each element's {meaning} is; with an axis: where in the blocks of the
    warps, laid one after the other along it. `dst_warps` is as in `tl.reduce`.
    """
    return made_builtin(function, name, says)


max, min = _extremum("max", "Maximum", greater_than, maximum), _extremum("min", "Minimum", less_than, minimum)
argmax = _where_extreme("argmax", "maximum", greater_than)
argmin = _where_extreme("argmin", "minimum", less_than)
