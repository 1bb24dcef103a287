"""Reductions and scans: `tl.reduce`, `tl.associative_scan` and the functions made of them.

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
from mltriton.errors import AxisError, ShapeMismatchError, TypeMismatchError
from mltriton.ir.operation import Block, Operation, Region
from mltriton.language import semantic, types
from mltriton.language.arithmetic import add, bitwise_and, bitwise_or, bitwise_xor, maximum, minimum, mul
from mltriton.language.building import builtin, current, inline
from mltriton.language.comparison import equal, greater_than, less_than, where
from mltriton.language.creation import arange
from mltriton.language.indexing import along
from mltriton.language.semantic import to_tensor
from mltriton.language.shapes import expand_dims, wrapped_axis
from mltriton.language.shapes import reshape as reshape_block
from mltriton.language.tensor import tensor
from mltriton.language.types import block_type, dtype
from mltriton.language.warps import AcrossWarps, across_warps, warp_id

__all__ = [
    "argmax", "argmin", "associative_scan", "cumprod", "cumsum", "max", "min", "reduce", "reduce_or", "sum", "xor_sum",
]  # fmt: skip

Values = tensor | tuple[tensor, ...]


def _sources(input: object, what: str, *, scalars: bool = False) -> tuple[tensor, ...]:
    """The blocks (with `scalars` also scalars) to combine, all of one shape."""
    listed: Sequence[object] = cast("Sequence[object]", input) if isinstance(input, tuple | list) else (input,)
    if not listed:
        raise TypeMismatchError(f"{what} needs a block", expected="one block or more", found="()")
    sources = tuple(to_tensor(item) for item in listed)
    shape = sources[0].type.shape
    for source in sources:
        if not source.type.is_block() and not scalars:
            raise TypeMismatchError(f"{what} needs a block", expected="a block", found=source.type.name)
        if source.type.shape != shape:
            raise ShapeMismatchError(
                f"the blocks given to {what} have different shapes",
                expected=sources[0].type.name,
                found=source.type.name,
            )
    return sources


def _combining(fn: Any, sources: Sequence[tensor], terminator: type[Operation], what: str) -> Region:
    """The region that combines one accumulated element of each source with one new element."""
    if not callable(fn):
        raise TypeMismatchError(
            f"{what} needs a function that combines elements", expected="a function", found=repr(fn)
        )
    scalars = [source.dtype for source in sources] * 2
    block = Block([scalar.to_ir() for scalar in scalars])
    builder = current()
    with builder.inside(block):
        arguments = [tensor(value, scalar) for value, scalar in zip(block.arguments, scalars, strict=True)]
        results = _combined(inline(fn, arguments), sources, what)
        builder.create(terminator, [result.handle for result in results], result_types=[])
    return Region([block])


def _combined(value: Any, sources: Sequence[tensor], what: str) -> list[tensor]:
    """The results of a combining function, checked against the elements that go in."""
    listed: Sequence[object] = cast("Sequence[object]", value) if isinstance(value, tuple | list) else (value,)
    found = [item.type if isinstance(item, tensor) else None for item in map(_as_tensor, listed)]
    expected = [source.dtype for source in sources]
    if found != expected:
        shown = ", ".join("no tensor" if kind is None else kind.name for kind in found)
        raise TypeMismatchError(
            f"the function given to {what} must return what it combines",
            expected=", ".join(map(str, expected)),
            found=shown,
            hint="it gets the accumulated elements, then the new ones, and returns the combined elements",
        )
    return [cast(tensor, _as_tensor(item)) for item in listed]


def _as_tensor(value: object) -> object:
    return value if isinstance(value, tensor) or value is None else to_tensor(value)


def _wrapped(handles: Sequence[Any], types: Sequence[dtype]) -> Values:
    made = [tensor(handle, kind) for handle, kind in zip(handles, types, strict=True)]
    return tuple(made) if len(made) > 1 else made[0]


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
    sources = _sources(own, "a reduction across warps", scalars=True)
    region = _combining(combine_fn, sources, tt.ReduceReturn, "tl.reduce")
    return _wrapped(across.reduce(sources, region), [source.type for source in sources])


def _within(input: object, axis: int | None, combine_fn: Any, keep_dims: bool) -> Values:
    """A reduction of one warp's block (in a workgroup-level kernel, of the program's)."""
    sources = _sources(input, "tl.reduce")
    rank = len(sources[0].type.shape)
    if axis is None:
        sources = tuple(_flat(source) for source in sources)
    place = 0 if axis is None else wrapped_axis(axis, rank, "a reduction")
    region = _combining(combine_fn, sources, tt.ReduceReturn, "tl.reduce")
    handles = current().create(tt.Reduce, [source.handle for source in sources], axis=place, regions=[region]).results
    shape = sources[0].type.shape
    left = (*shape[:place], *shape[place + 1 :])
    made = _wrapped(handles, [block_type(source.dtype, left) if left else source.dtype for source in sources])
    return _with_dimensions(made, range(rank) if axis is None else [place]) if keep_dims else made


def _flat(value: tensor) -> tensor:
    return reshape_block(value, (value.numel.value,), can_reorder=True)


def _with_dimensions(values: Values, axes: Sequence[int]) -> Values:
    if isinstance(values, tensor):
        return expand_dims(values, list(axes))
    return tuple(expand_dims(value, list(axes)) for value in values)


@builtin
def associative_scan(
    input: object, axis: int | None, combine_fn: Any, reverse: bool = False, *, cross_warp: bool = False
) -> Values:
    """Running combination of `input` (a block, or a tuple of blocks) along `axis`, from the last element with
    `reverse`.

    With `cross_warp` (and None for `axis`) over the warps by their ids, element by element: warp w receives what warps
    0 to w combine to.
    """
    across = across_warps(cross_warp, None, "tl.associative_scan")
    if across is not None:
        return _scan_warps(input, axis, combine_fn, reverse, across)
    sources = _sources(input, "tl.associative_scan")
    place = wrapped_axis(axis, len(sources[0].type.shape), "a scan")
    region = _combining(combine_fn, sources, tt.ScanReturn, "tl.associative_scan")
    handles = (
        current()
        .create(
            tt.Scan,
            [source.handle for source in sources],
            axis=place,
            reverse=True if reverse else None,
            regions=[region],
        )
        .results
    )
    return _wrapped(handles, [source.type for source in sources])


def _scan_warps(input: object, axis: int | None, combine_fn: Any, reverse: bool, across: AcrossWarps) -> Values:
    if axis is not None:
        raise AxisError(
            "a scan across warps goes from warp to warp, along no axis",
            expected="axis=None",
            found=repr(axis),
            hint="Scan along the axis within the warp, or across warps element by element.",
        )
    sources = _sources(input, "a scan across warps", scalars=True)
    region = _combining(combine_fn, sources, tt.ScanReturn, "tl.associative_scan")
    return _wrapped(across.scan(sources, region, reverse=reverse), [source.type for source in sources])


# Sums, products and their like.

Combine = Callable[[object, object], tensor]


def _reduced(
    value: object, axis: int | None, combine: Combine, keep_dims: bool, across: AcrossWarps | None = None
) -> tensor:
    return cast(tensor, _reduce(value, axis, _builtin_of(combine), keep_dims, across))


def _builtin_of(combine: Combine) -> Any:
    return builtin(combine)


def _sum_dtype(kind: dtype) -> dtype:
    """Sums of integers below 32 bits run in 32 bits of the same signedness."""
    if kind.is_int() and kind.bits < 32:
        return types.int32 if kind.is_int_signed() else types.uint32
    return kind


def _ordered_dtype(kind: dtype) -> dtype:
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
    return _reduced(value.to(dtype or _sum_dtype(value.dtype)), axis, add, keep_dims, across)


@builtin
def xor_sum(
    input: object,
    axis: int | None = None,
    keep_dims: bool = False,
    *,
    cross_warp: bool = False,
    dst_warps: object = None,
) -> tensor:
    """Exclusive or along `axis` (None: of all) of integers; across warps as `tl.reduce`."""
    across = across_warps(cross_warp, dst_warps, "tl.xor_sum")
    return _reduced(_integers(input, "tl.xor_sum"), axis, bitwise_xor, keep_dims, across)


@builtin
def reduce_or(
    input: object,
    axis: int | None = None,
    keep_dims: bool = False,
    *,
    cross_warp: bool = False,
    dst_warps: object = None,
) -> tensor:
    """Inclusive or along `axis` (None: of all) of integers; across warps as `tl.reduce`."""
    across = across_warps(cross_warp, dst_warps, "tl.reduce_or")
    return _reduced(_integers(input, "tl.reduce_or"), axis, bitwise_or, keep_dims, across)


@builtin
def cumsum(
    input: object,
    axis: int | None = None,
    reverse: bool = False,
    dtype: dtype | None = None,
    *,
    cross_warp: bool = False,
) -> tensor:
    """Running sum along `axis` (None: the first), in `dtype` (default as `tl.sum`); across warps as
    `tl.associative_scan`.
    """
    return _scanned(input, axis, add, reverse, dtype, cross_warp)


@builtin
def cumprod(
    input: object,
    axis: int | None = None,
    reverse: bool = False,
    dtype: dtype | None = None,
    *,
    cross_warp: bool = False,
) -> tensor:
    """Running product along `axis` (None: the first), in `dtype` (default as `tl.sum`); across warps as
    `tl.associative_scan`.
    """
    return _scanned(input, axis, mul, reverse, dtype, cross_warp)


def _scanned(
    input: object, axis: int | None, combine: Combine, reverse: bool, dtype: dtype | None, cross_warp: bool
) -> tensor:
    value = to_tensor(input)
    place = 0 if axis is None and not cross_warp else axis
    converted = value.to(dtype or _sum_dtype(value.dtype))
    return cast(tensor, associative_scan(converted, place, combine, reverse, cross_warp=cross_warp))


# Maxima and minima, with or without where they are.

Compare = Callable[[object, object], tensor]


def _better(
    wins: Compare, ties_to_left: bool, value1: tensor, index1: tensor, value2: tensor, index2: tensor
) -> tuple[tensor, tensor]:
    """The better of two (value, index) pairs; between equal values the smaller index, if asked for."""
    first = wins(value1, value2)
    if ties_to_left:
        first = bitwise_or(first, bitwise_and(equal(value1, value2), less_than(index1, index2)))
    return where(first, value1, value2), where(first, index1, index2)


def _with_indices(
    input: object, axis: int | None, wins: Compare, ties_to_left: bool, keep_dims: bool, across: AcrossWarps | None
) -> tuple[tensor, tensor]:
    """The extreme values and where they are.

    Across warps without an axis: on which warp; with one: in the blocks of all warps laid one after the other along it.
    """
    if across is None:
        return _place_within(input, axis, wins, ties_to_left, keep_dims)
    value = to_tensor(input)
    if axis is None:
        found = value, semantic.broadcast_to(warp_id(), value.type.shape) if value.type.is_block() else warp_id()
    else:
        best, places = _place_within(value, axis, wins, ties_to_left, keep_dims)
        size = value.type.shape[wrapped_axis(axis, len(value.type.shape), "a reduction")]
        found = best, add(places, mul(warp_id(), size))
    choose = builtin(partial(_better, wins, ties_to_left))
    return cast("tuple[tensor, tensor]", _reduce(found, None, choose, keep_dims=False, across=across))


def _place_within(
    input: object, axis: int | None, wins: Compare, ties_to_left: bool, keep_dims: bool
) -> tuple[tensor, tensor]:
    value = to_tensor(input)
    if axis is None and value.type.is_block() and len(value.type.shape) > 1:
        rank, flat = len(value.type.shape), reshape_block(value, (value.numel.value,))
        found = _place_within(flat, 0, wins, ties_to_left, keep_dims=False)
        return cast("tuple[tensor, tensor]", _with_dimensions(found, range(rank)) if keep_dims else found)
    shape = _sources(value, "a maximum or minimum")[0].type.shape
    place = wrapped_axis(0 if axis is None else axis, len(shape), "a reduction")
    positions = along(arange(0, shape[place]), place, shape)
    choose = builtin(partial(_better, wins, ties_to_left))
    return cast("tuple[tensor, tensor]", _within((value, positions), place, choose, keep_dims))


def _extreme(input: object, axis: int | None, combine: Combine, keep_dims: bool, across: AcrossWarps | None) -> tensor:
    value = to_tensor(input)
    return _reduced(value.to(_ordered_dtype(value.dtype)), axis, combine, keep_dims, across)


@builtin
def max(
    input: object,
    axis: int | None = None,
    return_indices: bool = False,
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
    *,
    cross_warp: bool = False,
    dst_warps: object = None,
) -> Values:
    """Maximum along `axis` (None: of all); a NaN gives way. With `return_indices` also where it is (int32): (values,
    indices).

    `cross_warp` and `dst_warps` are as in `tl.reduce`; indices then as in `tl.argmax`.
    """
    across = across_warps(cross_warp, dst_warps, "tl.max")
    if return_indices:
        return _with_indices(input, axis, greater_than, return_indices_tie_break_left, keep_dims, across)
    return _extreme(input, axis, maximum, keep_dims, across)


@builtin
def min(
    input: object,
    axis: int | None = None,
    return_indices: bool = False,
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
    *,
    cross_warp: bool = False,
    dst_warps: object = None,
) -> Values:
    """Minimum along `axis` (None: of all); a NaN gives way. With `return_indices` also where it is (int32): (values,
    indices).

    `cross_warp` and `dst_warps` are as in `tl.reduce`; indices then as in `tl.argmin`.
    """
    across = across_warps(cross_warp, dst_warps, "tl.min")
    if return_indices:
        return _with_indices(input, axis, less_than, return_indices_tie_break_left, keep_dims, across)
    return _extreme(input, axis, minimum, keep_dims, across)


@builtin
def argmax(
    input: object,
    axis: int | None = None,
    tie_break_left: bool = True,
    keep_dims: bool = False,
    *,
    cross_warp: bool = False,
    dst_warps: object = None,
) -> tensor:
    """Where the maximum along `axis` is (int32); of equal ones the first.

    With `cross_warp` and no axis: on which warp each element's maximum is; with an axis: where in the blocks of the
    warps, laid one after the other along it. `dst_warps` is as in `tl.reduce`.
    """
    across = across_warps(cross_warp, dst_warps, "tl.argmax")
    return _with_indices(input, axis, greater_than, tie_break_left, keep_dims, across)[1]


@builtin
def argmin(
    input: object,
    axis: int | None = None,
    tie_break_left: bool = True,
    keep_dims: bool = False,
    *,
    cross_warp: bool = False,
    dst_warps: object = None,
) -> tensor:
    """Where the minimum along `axis` is (int32); of equal ones the first.

    With `cross_warp` and no axis: on which warp each element's minimum is; with an axis: where in the blocks of the
    warps, laid one after the other along it. `dst_warps` is as in `tl.reduce`.
    """
    across = across_warps(cross_warp, dst_warps, "tl.argmin")
    return _with_indices(input, axis, less_than, tie_break_left, keep_dims, across)[1]
