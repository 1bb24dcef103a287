"""Where the loads of a loop will be some iterations later, as block pointers to prefetch through.

Level: ttg, after normalize-block-pointers. Takes a load of a block pointer or descriptor directly in a loop's body;
gives an `Address` where it is known how its offsets move from one iteration to the next: the scalars from which they
are computed are computed again for a later iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from mltriton.analysis.affine.motion import LoopAffine
from mltriton.analysis.affine.polynomials import Polynomial
from mltriton.dialects import arith, tt
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import BlockArgument, Operation, Value
from mltriton.ir.types import I64, PointerType, TensorType, pointee
from mltriton.layouts.encodings import Encoding

Load = tt.Load | tt.DescriptorLoad
# Of a block and the dimension that is contiguous, where one access brings enough of it.
Encode = Callable[[TensorType, int], Encoding | None]
Ends = dict[Value, Value]  # what counts as a loop does, behind it -> where the loop stops
Position = tuple[object, ...]  # equal for loads of the same elements


def address_of(load: Load, affine: LoopAffine, encode: Encode, ends: Ends) -> Address | None:
    """How the address of a load moves; None where it stays, or is not known, or the block is too small."""
    maker = (load.desc if isinstance(load, tt.DescriptorLoad) else load.ptr).defining_op
    if isinstance(load, tt.DescriptorLoad):
        if not isinstance(maker, tt.MakeTensorDesc) or load.desc in affine.inside or len(load.indices) < 2:
            return None
        block, contiguous, offsets = cast(TensorType, load.result.type), len(load.indices) - 1, load.indices
    else:
        if not isinstance(maker, tt.MakeTensorPtr) or load.ptr not in affine.inside or not _is_of_matrices(maker):
            return None
        block = cast(TensorType, pointee(load.ptr.type))
        contiguous, offsets = _contiguous(maker), maker.offsets
    encoding = encode(block, contiguous)
    if encoding is None:
        return None
    found = Address(maker, offsets, contiguous, block.with_encoding(encoding), affine, ends)
    moves = [_moves(value, affine) for value in found.scalars]
    return found if all(move is not None for move in moves) and any(moves) else None


def note_ends(affine: LoopAffine, ends: Ends) -> None:
    """Of what a loop carries beside its counter, and moves alike."""
    loop = affine.loop
    for argument, init, result in zip(loop.carried, loop.inits, loop.results, strict=True):
        if affine.increments.get(argument) == affine.increments[loop.counter] and ends.get(init, init) is loop.lower:
            ends[result] = loop.upper


def _contiguous(op: tt.MakeTensorPtr) -> int:
    """The dimension that lies next to each other in memory: of stride 1, or what the order says."""
    ones = [dim for dim, stride in enumerate(op.strides) if splat_of(stride) == 1]
    return ones[0] if len(ones) == 1 else op.order[0]


def _is_of_matrices(op: tt.MakeTensorPtr) -> bool:
    """Whether rows or columns of the last two dimensions lie next to each other."""
    rank = len(op.shape)
    return rank > 1 and _contiguous(op) >= rank - 2


@dataclass(frozen=True)
class Address:
    """Where a load stands in its loop: a block pointer's or descriptor's memory, offsets, the contiguous dimension."""

    maker: tt.MakeTensorPtr | tt.MakeTensorDesc
    offsets: Sequence[Value]
    contiguous: int
    block: TensorType
    affine: LoopAffine
    ends: Ends

    @property
    def scalars(self) -> list[Value]:
        """What it is made of."""
        return [self.maker.base, *self.maker.shape, *self.maker.strides, *self.offsets]

    def before(self, builder: Builder, steps: int) -> Value:
        """Where it is in iteration `steps`, computed in front of the loop."""
        return self._pointer(builder, builder, _Again(self.affine, builder, builder, steps, at_start=True))

    def ahead(self, builder: Builder, entry: Builder, steps: int) -> Value:
        """Where it will be `steps` iterations later, computed in the body; `entry` stands in front of the loop."""
        return self._pointer(builder, entry, _Again(self.affine, builder, entry, steps, at_start=False))

    def first(self) -> Position:
        """Where the loop begins."""
        return self._position([self.affine.loop.lower, *self.affine.loop.inits])

    def behind(self) -> Position:
        """Where a loop after this one begins that goes on where this one stopped."""
        return self._position([self.affine.loop.upper, *self.affine.loop.results])

    def _position(self, values: Sequence[Value]) -> Position:
        """With `values` for the loop's counter and what it carries; equal for a matrix and its transpose."""
        starts: dict[Value, Value] = dict(zip(self.affine.loop.body.block.arguments, values, strict=True))

        def coordinate(value: Value) -> tuple[Value, Polynomial | None]:
            start = starts.get(value, value)
            return self.ends.get(start, start), self.affine.increments.get(value)

        base, *lines = map(coordinate, self.scalars)
        rank = self.block.rank
        return base, frozenset(
            zip(lines[:rank], lines[rank : 2 * rank], lines[2 * rank :], self.block.shape, strict=True)
        )

    def _pointer(self, builder: Builder, entry: Builder, again: _Again) -> Value:
        maker = self.maker
        shape = [self._widened(entry, again.value(size)) for size in maker.shape]
        strides = [again.value(stride) for stride in maker.strides]
        offsets = [again.value(offset) for offset in self.offsets]
        dims = reversed(range(self.block.rank))
        order = (self.contiguous, *(dim for dim in dims if dim != self.contiguous))
        base = again.value(maker.base)
        made = builder.emit(
            tt.MakeTensorPtr, base, shape, strides, offsets, result_types=[PointerType(self.block)], order=order
        )
        made.hint = "ahead"
        return made

    def _widened(self, entry: Builder, size: Value) -> Value:
        return size if size.type is I64 else entry.emit(arith.ExtSI, size, result_types=[I64])


def _moves(value: Value, affine: LoopAffine) -> bool | None:
    """Whether a scalar changes from iteration to iteration; None where it cannot be computed for a later one."""
    if value not in affine.inside:
        return False
    if value in affine.increments:
        return not affine.increments[value].is_zero
    op = value.defining_op
    if op is None or not op.pure or op.regions or len(op.results) != 1:
        return None
    moves = [_moves(operand, affine) for operand in op.operands]
    return None if None in moves else any(moves)


class _Again:
    """Computes scalars of a loop's body for iteration `steps` (`at_start`), or for `steps` iterations later."""

    def __init__(self, affine: LoopAffine, builder: Builder, entry: Builder, steps: int, *, at_start: bool) -> None:
        self.affine = affine
        self.builder = builder
        self.entry = entry
        self.steps = steps
        self.at_start = at_start
        self._made: dict[Value, Value] = {}

    def value(self, value: Value) -> Value:
        """A scalar in that iteration."""
        if value not in self.affine.inside:
            return value
        if value not in self._made:
            grows = value in self.affine.increments
            self._made[value] = self._grown(cast(BlockArgument, value)) if grows else self._copied(value)
        return self._made[value]

    def _grown(self, value: BlockArgument) -> Value:
        loop = self.affine.loop
        start = loop.lower if value.index == 0 else loop.inits[value.index - 1]
        growth = self.affine.increments[value].times(self.steps)
        now = start if self.at_start else value
        if growth.is_zero:
            return now
        return self.builder.emit(arith.AddI, now, growth.emit(self.entry, value.type))

    def _copied(self, value: Value) -> Value:
        op = cast(Operation, value.defining_op)
        operands = [self.value(operand) for operand in op.operands]
        if operands == list(op.operands) and not self.at_start:
            return value
        types = [result.type for result in op.results]
        return self.builder.insert(type(op)(operands, types, op.attributes, (), op.loc, op.segments)).results[0]
