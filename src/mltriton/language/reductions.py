"""Reductions and scans: `tl.reduce`, `tl.associative_scan` and the functions made of them.

Takes blocks; guarantees that the combining function becomes a region on scalars, that a reduced 1D block is a
scalar, and upstream's dtypes (sums of narrow integers run in 32 bits, maxima and minima of narrow dtypes in fp32 or
int32). A new reduction is a row of `SUM`'s kind: how operands are prepared and what combines them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from mltriton.dialects import tt
from mltriton.errors import ShapeMismatchError, TypeMismatchError
from mltriton.ir.operation import Block, Operation, Region
from mltriton.language import types
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

__all__ = [
    "argmax", "argmin", "associative_scan", "cumprod", "cumsum", "max", "min", "reduce", "reduce_or", "sum", "xor_sum",
]  # fmt: skip

Values = tensor | tuple[tensor, ...]


def _sources(input: object, what: str) -> tuple[tensor, ...]:
    """The blocks to combine, all of one shape."""
    listed: Sequence[object] = cast("Sequence[object]", input) if isinstance(input, tuple | list) else (input,)
    if not listed:
        raise TypeMismatchError(f"{what} needs a block", expected="one block or more", found="()")
    sources = tuple(to_tensor(item) for item in listed)
    shape = sources[0].type.shape
    for source in sources:
        if not source.type.is_block():
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
def reduce(input: object, axis: int | None, combine_fn: Any, keep_dims: bool = False) -> Values:
    """`input` (a block, or a tuple of blocks) combined along `axis`, or over all elements for None; a tuple gives a
    tuple.

    `combine_fn` takes the accumulated elements, then the new ones; it is associative and commutative. `keep_dims`
    leaves a dimension of size 1.
    """
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
def associative_scan(input: object, axis: int, combine_fn: Any, reverse: bool = False) -> Values:
    """Running combination of `input` (a block, or a tuple of blocks) along `axis`, from the last element with
    `reverse`.
    """
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


# Sums, products and their like.

Combine = Callable[[object, object], tensor]


def _reduced(value: object, axis: int | None, combine: Combine, keep_dims: bool) -> tensor:
    return cast(tensor, reduce(value, axis, _builtin_of(combine), keep_dims))


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
def sum(input: object, axis: int | None = None, keep_dims: bool = False, dtype: dtype | None = None) -> tensor:
    """Sum along `axis` (None: of all), in `dtype` (default: the block's, narrow integers in 32 bits)."""
    value = to_tensor(input)
    return _reduced(value.to(dtype or _sum_dtype(value.dtype)), axis, add, keep_dims)


@builtin
def xor_sum(input: object, axis: int | None = None, keep_dims: bool = False) -> tensor:
    """Exclusive or along `axis` (None: of all) of integers."""
    return _reduced(_integers(input, "tl.xor_sum"), axis, bitwise_xor, keep_dims)


@builtin
def reduce_or(input: object, axis: int | None = None, keep_dims: bool = False) -> tensor:
    """Inclusive or along `axis` (None: of all) of integers."""
    return _reduced(_integers(input, "tl.reduce_or"), axis, bitwise_or, keep_dims)


@builtin
def cumsum(input: object, axis: int = 0, reverse: bool = False, dtype: dtype | None = None) -> tensor:
    """Running sum along `axis`, in `dtype` (default as `tl.sum`)."""
    return _scanned(input, axis, add, reverse, dtype)


@builtin
def cumprod(input: object, axis: int = 0, reverse: bool = False, dtype: dtype | None = None) -> tensor:
    """Running product along `axis`, in `dtype` (default as `tl.sum`)."""
    return _scanned(input, axis, mul, reverse, dtype)


def _scanned(input: object, axis: int, combine: Combine, reverse: bool, dtype: dtype | None) -> tensor:
    value = to_tensor(input)
    return cast(tensor, associative_scan(value.to(dtype or _sum_dtype(value.dtype)), axis, combine, reverse))


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
    input: object, axis: int | None, wins: Compare, ties_to_left: bool, keep_dims: bool
) -> tuple[tensor, tensor]:
    value = to_tensor(input)
    if axis is None and value.type.is_block() and len(value.type.shape) > 1:
        rank, flat = len(value.type.shape), reshape_block(value, (value.numel.value,))
        found = _with_indices(flat, 0, wins, ties_to_left, keep_dims=False)
        return cast("tuple[tensor, tensor]", _with_dimensions(found, range(rank)) if keep_dims else found)
    shape = _sources(value, "a maximum or minimum")[0].type.shape
    place = wrapped_axis(0 if axis is None else axis, len(shape), "a reduction")
    positions = along(arange(0, shape[place]), place, shape)
    choose = builtin(partial(_better, wins, ties_to_left))
    return cast("tuple[tensor, tensor]", reduce((value, positions), place, choose, keep_dims))


def _extreme(input: object, axis: int | None, combine: Combine, keep_dims: bool) -> tensor:
    value = to_tensor(input)
    return _reduced(value.to(_ordered_dtype(value.dtype)), axis, combine, keep_dims)


@builtin
def max(
    input: object,
    axis: int | None = None,
    return_indices: bool = False,
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> Values:
    """Maximum along `axis` (None.

    Of all); a NaN gives way. With `return_indices` also where it is (int32): (values, indices).
    """
    if return_indices:
        return _with_indices(input, axis, greater_than, return_indices_tie_break_left, keep_dims)
    return _extreme(input, axis, maximum, keep_dims)


@builtin
def min(
    input: object,
    axis: int | None = None,
    return_indices: bool = False,
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> Values:
    """Minimum along `axis` (None.

    Of all); a NaN gives way. With `return_indices` also where it is (int32): (values, indices).
    """
    if return_indices:
        return _with_indices(input, axis, less_than, return_indices_tie_break_left, keep_dims)
    return _extreme(input, axis, minimum, keep_dims)


@builtin
def argmax(input: object, axis: int | None = None, tie_break_left: bool = True, keep_dims: bool = False) -> tensor:
    """Where the maximum along `axis` is (int32); of equal ones the first."""
    return _with_indices(input, axis, greater_than, tie_break_left, keep_dims)[1]


@builtin
def argmin(input: object, axis: int | None = None, tie_break_left: bool = True, keep_dims: bool = False) -> tensor:
    """Where the minimum along `axis` is (int32); of equal ones the first."""
    return _with_indices(input, axis, less_than, tie_break_left, keep_dims)[1]
