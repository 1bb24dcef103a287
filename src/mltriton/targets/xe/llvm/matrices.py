"""The matrix in which a block of rank 3 and more lies: what its leading offsets choose of a tensor.

Level: intrinsic -> llvm, both forms of code. Takes the block pointer of an access whose leading sizes are 1, and the
dimensions of which the bounds are checked; gives a block pointer of two dimensions. Guarantees: where a leading offset
is outside of a checked dimension, the block lies before the first row (or column), so that nothing of it is inside. An
empty surface would not do: hardware has none, since it takes the number of rows less 1.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from math import gcd

from mltriton.analysis.block_io import OUTSIDE
from mltriton.targets.llvm.types import I32, I64, Value, constant, vector
from mltriton.targets.simt.blocks import extent
from mltriton.targets.simt.context import Emitter
from mltriton.targets.simt.lanes import BlockPointer


def matrix_of(e: Emitter, pointer: BlockPointer, size: int, checked: Collection[int]) -> BlockPointer:
    """The matrix that leading offsets choose, of elements of `size` bytes."""
    leading = range(len(pointer.offsets) - 2)
    if not leading:
        return pointer
    staying = pointer.staying
    still = staying is not None and all(staying[dim] for dim in leading)
    with _early(e, still):
        base, inside = _base(e, pointer, size), _inside(e, pointer, [dim for dim in leading if dim in checked])
    offsets = list(pointer.offsets[-2:])
    moves = -1 if staying is not None and staying[-1] and not staying[-2] else -2
    if inside is not None:
        with _early(e, still and staying is not None and staying[moves]):
            offsets[moves] = _or_outside(e, inside, offsets[moves])
    kept = None if staying is None or not still else staying[-2:]
    return BlockPointer(base, pointer.shape[-2:], pointer.strides[-2:], offsets, pointer.padding, kept)


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
