"""Where the loads of a loop will be some iterations later, as block pointers to prefetch through.

Level: ttg. Takes a load of a block pointer or descriptor directly in a loop's body; gives an `Address` where it is
known how its offsets move from one iteration to the next. Two forms: a block pointer that loops carry and advance gets
a companion, carried by the same loops, whose block is cut for prefetching; one that is made in the body, and a
descriptor's, are computed from scalars, which are computed again for a later iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from mltriton.analysis.affine.motion import LoopAffine
from mltriton.analysis.affine.polynomials import ZERO, Polynomial
from mltriton.dialects import arith, scf, tt
from mltriton.dialects.scf_carried import carry_also, yield_also
from mltriton.dialects.scf_flow import handed_from
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import BlockArgument, Operation, OpResult, Value
from mltriton.ir.reaching import reached
from mltriton.ir.types import I32, I64, PointerType, TensorType, block_of
from mltriton.layouts.encodings import Encoding

Load = tt.Load | tt.DescriptorLoad
Encode = Callable[[TensorType, int], Encoding]  # of a block and the dimension that is contiguous


class Address(Protocol):
    """Where a load stands in its loop."""

    def before(self, builder: Builder, steps: int) -> Value:
        """Where it is in iteration `steps`, computed in front of the loop."""
        ...

    def ahead(self, builder: Builder, entry: Builder, steps: int) -> Value:
        """Where it will be `steps` iterations later, computed in the body; `entry` stands in front of the loop."""
        ...

    def continues(self, steps: int) -> bool:
        """Whether another loop has prefetched the first `steps` blocks, as its own last ones."""
        ...


def address_of(load: Load, affine: LoopAffine, companions: Companions) -> Address | None:
    """How the place of a load moves; None where it stays, or is not known."""
    if isinstance(load, tt.DescriptorLoad):
        maker = load.desc.defining_op
        if not isinstance(maker, tt.MakeTensorDesc) or load.desc in affine.inside or len(load.indices) < 2:
            return None
        surface = _Surface(maker, load.indices, len(load.indices) - 1, cast(TensorType, load.result.type))
        return _computed(surface, affine, companions.encode)
    block = load.ptr.type.pointee if isinstance(load.ptr.type, PointerType) else None
    if not isinstance(block, TensorType):
        return None
    made = load.ptr.defining_op
    if isinstance(made, tt.MakeTensorPtr) and load.ptr in affine.inside:
        if not _is_of_matrices(made):
            return None
        return _computed(_Surface(made, made.offsets, _contiguous(made), block), affine, companions.encode)
    return _carried(load.ptr, affine, companions)


# Block pointers that loops carry.


class Companions:
    """Block pointers beside others: at the same offsets, for a block that is cut as `encode` says. One for each."""

    def __init__(self, encode: Encode) -> None:
        self.encode = encode
        self._made: dict[Value, Value] = {}
        self.prefetched: dict[Value, tuple[tuple[Polynomial, ...], int]] = {}  # results of loops: growth and distance

    def exists(self, value: Value) -> bool:
        """Whether `of` can make one: the pointer comes from `tt.make_tensor_ptr` through advances and loops only."""
        return all(_before(found) is not None for found in reached([value], lambda pointer: _before(pointer) or ()))

    def of(self, value: Value) -> Value:
        """The companion of a block pointer."""
        if value not in self._made:
            op = value.defining_op
            if isinstance(op, tt.MakeTensorPtr | tt.Advance):
                self._made[value] = self._beside(op)
            else:
                self._carry(value)
            self._made[value].hint = "ahead"
        return self._made[value]

    def _beside(self, op: tt.MakeTensorPtr | tt.Advance) -> Value:
        first = op.operands[0] if isinstance(op, tt.MakeTensorPtr) else self.of(op.ptr)
        type = self._type(op) if isinstance(op, tt.MakeTensorPtr) else first.type
        made = _class_of(op)([first, *op.operands[1:]], [type], op.attributes, loc=op.loc, segments=op.segments)
        assert op.block is not None
        op.block.insert_after(op, made)
        return made.result

    def _type(self, op: tt.MakeTensorPtr) -> PointerType:
        pointer = cast(PointerType, op.result.type)
        block = cast(TensorType, pointer.pointee)
        return PointerType(block.with_encoding(self.encode(block, _contiguous(op))), pointer.address_space)

    def _carry(self, value: Value) -> None:
        loop, index = _loop_of(value)
        yielded, argument = loop.body.block.terminator.operands[index], loop.carried[index]
        result = loop.results[index]
        made = carry_also(loop, self.of(loop.inits[index]))
        self._made[argument], self._made[result] = made
        yield_also(loop.body.block, [self.of(yielded)])


def _contiguous(op: tt.MakeTensorPtr) -> int:
    """The dimension that lies next to each other in memory: of stride 1, or what the order says."""
    ones = [dim for dim, stride in enumerate(op.strides) if splat_of(stride) == 1]
    return ones[0] if len(ones) == 1 else op.order[0]


def _is_of_matrices(op: tt.MakeTensorPtr) -> bool:
    """Whether rows or columns of the last two dimensions lie next to each other."""
    rank = len(op.shape)
    return rank > 1 and _contiguous(op) >= rank - 2


def _class_of(op: tt.MakeTensorPtr | tt.Advance) -> type[Operation]:
    return type(op)


def _loop_of(value: Value) -> tuple[scf.For, int]:
    """The loop that carries a value, and the number of the carried value."""
    if isinstance(value, BlockArgument):
        return cast(scf.For, value.block.parent_op), value.index - 1
    result = cast(OpResult, value)
    return cast(scf.For, result.op), result.index


def _before(value: Value) -> Sequence[Value] | None:
    """Where a block pointer comes from, one step back; None where it is not known."""
    op = value.defining_op
    if isinstance(op, tt.MakeTensorPtr):
        return [] if _is_of_matrices(op) else None
    if isinstance(op, tt.Advance):
        return [op.ptr]
    return handed_from(value) if isinstance(op or value.defining_block.parent_op, scf.For) else None


@dataclass(frozen=True)
class _Carried:
    """The pointer `argument` of a loop moved by `shift`, and by `growth` in each iteration."""

    argument: BlockArgument
    pointer: Value
    shift: tuple[Polynomial, ...]
    growth: tuple[Polynomial, ...]
    companions: Companions

    def before(self, builder: Builder, steps: int) -> Value:
        loop, index = _loop_of(self.argument)
        offsets = [shift + step.times(steps) for shift, step in zip(self.shift, self.growth, strict=True)]
        return _advanced(builder, self.companions.of(loop.inits[index]), [o.emit(builder, I32) for o in offsets])

    def ahead(self, builder: Builder, entry: Builder, steps: int) -> Value:
        loop, index = _loop_of(self.argument)
        self.companions.prefetched[loop.results[index]] = (self.growth, steps)
        offsets = [step.times(steps).emit(entry, I32) for step in self.growth]
        return _advanced(builder, self.companions.of(self.pointer), offsets)

    def continues(self, steps: int) -> bool:
        loop, index = _loop_of(self.argument)
        found = self.companions.prefetched.get(loop.inits[index])
        return found == (self.growth, steps) and all(shift.is_zero for shift in self.shift)


def _advanced(builder: Builder, pointer: Value, offsets: Sequence[Value]) -> Value:
    return builder.emit(tt.Advance, pointer, list(offsets))


def _carried(pointer: Value, affine: LoopAffine, companions: Companions) -> Address | None:
    start = _way_from_argument(pointer, affine)
    if start is None or not companions.exists(pointer):
        return None
    argument, shift = start
    end = _way_from_argument(affine.loop.body.block.terminator.operands[argument.index - 1], affine)
    if end is None or end[0] is not argument or all(growth.is_zero for growth in end[1]):
        return None
    return _Carried(argument, pointer, shift, end[1], companions)


def _way_from_argument(pointer: Value, affine: LoopAffine) -> tuple[BlockArgument, tuple[Polynomial, ...]] | None:
    """The carried block pointer from which advances lead to this one, and how far, if that never changes."""
    shift = (ZERO,) * cast(TensorType, block_of(pointer.type)).rank
    while isinstance(op := pointer.defining_op, tt.Advance) and pointer in affine.inside:
        steps = [Polynomial.of(offset) for offset in op.offsets]
        if any(value in affine.inside for step in steps for value in step.values):
            return None
        shift = tuple(before + step for before, step in zip(shift, steps, strict=True))
        pointer = op.ptr
    is_ours = isinstance(pointer, BlockArgument) and pointer.block is affine.loop.body.block
    return (cast(BlockArgument, pointer), shift) if is_ours else None


# Block pointers made from scalars.


@dataclass(frozen=True)
class _Surface:
    """What is loaded: a block pointer's or descriptor's memory, offsets, the contiguous dimension, the block."""

    maker: tt.MakeTensorPtr | tt.MakeTensorDesc
    offsets: Sequence[Value]
    contiguous: int
    block: TensorType


@dataclass(frozen=True)
class _Computed:
    surface: _Surface
    affine: LoopAffine
    encode: Encode

    def before(self, builder: Builder, steps: int) -> Value:
        return self._pointer(builder, builder, _Again(self.affine, builder, builder, steps, at_start=True))

    def ahead(self, builder: Builder, entry: Builder, steps: int) -> Value:
        return self._pointer(builder, entry, _Again(self.affine, builder, entry, steps, at_start=False))

    def continues(self, steps: int) -> bool:
        return False

    def _pointer(self, builder: Builder, entry: Builder, again: _Again) -> Value:
        maker, surface = self.surface.maker, self.surface
        shape = [self._widened(entry, again.value(size)) for size in maker.shape]
        strides = [again.value(stride) for stride in maker.strides]
        offsets = [again.value(offset) for offset in surface.offsets]
        type = PointerType(surface.block.with_encoding(self.encode(surface.block, surface.contiguous)))
        dims = reversed(range(surface.block.rank))
        order = (surface.contiguous, *(dim for dim in dims if dim != surface.contiguous))
        base = again.value(maker.base)
        made = builder.emit(tt.MakeTensorPtr, base, shape, strides, offsets, result_types=[type], order=order)
        made.hint = "ahead"
        return made

    def _widened(self, entry: Builder, size: Value) -> Value:
        return size if size.type is I64 else entry.emit(arith.ExtSI, size, result_types=[I64])


def _computed(surface: _Surface, affine: LoopAffine, encode: Encode) -> Address | None:
    values = [*surface.maker.operands, *surface.offsets]
    moves = [_moves(value, affine) for value in values]
    known = all(move is not None for move in moves) and any(moves)
    return _Computed(surface, affine, encode) if known else None


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
        if operands == list(op.operands):
            return value
        types = [result.type for result in op.results]
        return self.builder.insert(type(op)(operands, types, op.attributes, (), op.loc, op.segments)).results[0]
