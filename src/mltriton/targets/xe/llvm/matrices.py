"""The matrix in which a block of rank 3 and more lies: what its leading offsets choose of a tensor.

Level: intrinsic -> llvm, both forms of code. Takes an access whose leading sizes are 1, its block pointer, and the
dimensions of which the bounds are checked; gives a matrix. Guarantees: where a leading offset
is outside of a checked dimension, the block lies before the first row (or column), so that nothing of it is inside. An
empty surface would not do: hardware has none, since it takes the number of rows less 1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import gcd

from mltriton.analysis.block_io import OUTSIDE, BlockOperation, invariant_offsets
from mltriton.dialects.ttig import ADDRESS
from mltriton.ir.attributes import integer_in
from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import I32, I64, Value, constant, vector
from mltriton.targets.simt.blocks import extent
from mltriton.targets.simt.context import Emitter
from mltriton.targets.simt.lanes import BlockPointer


class Matrix(NamedTuple):
    """A block pointer of two dimensions. `invariant` says which offsets the innermost loop does not change, where it
    changes no other part; None where nothing is known. `address` is the number of the access's address in the loop.
    """

    base: Value
    shape: Sequence[Value]
    strides: Sequence[Value]
    offsets: Sequence[Value]
    invariant: tuple[bool, ...] | None
    address: int


def matrix_of(e: Emitter, op: BlockOperation, pointer: BlockPointer, size: int, checked: Collection[int]) -> Matrix:
    """The matrix that leading offsets choose, of elements of `size` bytes."""
    leading, invariant = range(len(pointer.offsets) - 2), invariant_offsets(op)
    address = integer_in(op.attributes, ADDRESS, 0)
    if not leading:
        return Matrix(pointer.base, pointer.shape, pointer.strides, pointer.offsets, invariant, address)
    still = invariant is not None and all(invariant[dim] for dim in leading)
    with _early(e, still):
        base, inside = _base(e, pointer, size), _inside(e, pointer, [dim for dim in leading if dim in checked])
    offsets = list(pointer.offsets[-2:])
    moves = -1 if invariant is not None and invariant[-1] and not invariant[-2] else -2
    if inside is not None:
        with _early(e, still and invariant is not None and invariant[moves]):
            offsets[moves] = _or_outside(e, inside, offsets[moves])
    kept = None if invariant is None or not still else invariant[-2:]
    return Matrix(base, pointer.shape[-2:], pointer.strides[-2:], offsets, kept, address)


def _early(e: Emitter, still: bool) -> AbstractContextManager[None]:
    """In front of the innermost loop, where it changes nothing of what is computed."""
    return e.function.before_loop() if still else nullcontext()


def _base(e: Emitter, pointer: BlockPointer, size: int) -> Value:
    base, element = pointer.base, vector(f"i{8 * size}", 1)
    for offset, stride in list(zip(pointer.offsets, pointer.strides, strict=True))[:-2]:
        base = e.affine.address(base, e.affine.mul(e.affine.widen(offset, I64), stride), element)
    return base


def _inside(e: Emitter, pointer: BlockPointer, checked: Collection[int]) -> Value | None:
    """Whether the offsets along some dimensions are inside; None where they are for certain."""
    f, holds = e.function, e.function.true()
    for dim in checked:
        # A negative offset is a large one.
        at, end = f.cast("sext", pointer.offsets[dim], I64), extent(e, pointer.shape[dim])
        holds = f.and_(f.icmp("ult", at, end), holds)
    return None if holds.literal else holds


def _or_outside(e: Emitter, inside: Value, offset: Value) -> Value:
    """An offset, or one outside; pieces that lie at a constant distance from each other share the choice."""
    term = e.affine.term(offset)
    first = term.root if term.root is not None else constant(I32, 0)
    chosen = e.function.select(inside, first, constant(I32, OUTSIDE))
    e.affine.promise(chosen, gcd(e.affine.divisor(first), -OUTSIDE))
    return e.affine.add(chosen, constant(I32, term.constant))
