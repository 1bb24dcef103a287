"""split-wrapped-accesses: gathers whose addresses follow each other but for one jump become accesses of vectors.

Level: intrinsic, targets of chunks with cheap masks. Takes any program and changes it in place. Of consecutive x, `x //
C` and `x % C` jump at one lane at most where C is not less than the lanes: a flat index taken apart into rows and
columns (`x0 = x % 65`), which programs of one dimension over arrays of several have everywhere. A load or store whose
address is linear in front of the jump and behind it becomes two masked accesses; a load of one address in front of it
and one behind becomes two scalar loads, unless it is masked. Guarantees: the same elements, and no others, are read and
written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import arith, tile, tt
from mltriton.ir.builder import Builder
from mltriton.ir.constants import make_constant, splat_of
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.patterns import apply_patterns
from mltriton.ir.types import I1, I32, PointerType, TensorType, Type, element_type
from mltriton.records import NamedTuple
from mltriton.targets.registry import spec_of


class Jump(NamedTuple):
    """Where values of consecutive `of` that were divided by `divisor` jump."""

    of: Value
    divisor: int


class Sides(NamedTuple):
    """A chunk that is one scalar in front of a jump and another one behind."""

    before: Value
    behind: Value
    jump: Jump


class SplitWrappedAccesses(Pass):
    """Access by vectors what is split in two."""

    name = "split-wrapped-accesses"

    def run(self, module: Module) -> Module:
        if spec_of(module).cheap_masks:
            splitter = _Splitter()
            apply_patterns(module, {tt.Load: splitter.load, tt.Store: splitter.store})
        return module


class _Slopes:
    """By how much the elements of chunks grow from lane to lane, and the jumps that they have besides."""

    def __init__(self, known: dict[Value, Sides]) -> None:
        self.known = known
        self.jumps: set[Jump] = set()

    def of(self, value: Value) -> int | None:
        """The step of a value in its elements' unit; None where there is none."""
        op = value.defining_op
        if value in self.known:
            self.jumps.add(self.known[value].jump)
            return 0
        if isinstance(op, tt.MakeRange):
            return 1
        if isinstance(op, tt.Splat | arith.Constant):
            return 0 if isinstance(op, tt.Splat) or splat_of(value) is not None else None
        if op is None or not op.pure or not (op.elementwise or isinstance(op, arith.Select)):
            return None
        steps = [self.of(operand) for operand in op.operands]
        return None if None in steps else self._of_operation(op, cast("list[int]", steps))

    def _of_operation(self, op: Operation, steps: list[int]) -> int | None:
        if isinstance(op, arith.AddI | tt.AddPtr):
            return steps[0] + steps[1]
        if isinstance(op, arith.SubI):
            return steps[0] - steps[1]
        if isinstance(op, arith.ExtSI):
            return steps[0]
        if not any(steps):
            return 0
        factor = _number(op.operands[-1])
        if isinstance(op, arith.MulI) and factor is not None:
            return steps[0] * int(factor)
        if isinstance(op, arith.DivSI | arith.RemSI) and factor is not None and steps == [1, 0]:
            return self._divided(op, int(factor))
        return None

    def _divided(self, op: arith.DivSI | arith.RemSI, divisor: int) -> int | None:
        if divisor < cast(TensorType, op.result.type).shape[0] or not _is_consecutive(op.operands[0]):
            return None
        self.jumps.add(Jump(op.operands[0], divisor))
        return int(isinstance(op, arith.RemSI))

    def first_jump(self) -> Jump | None:
        """The one that has all others in it."""
        first = min(self.jumps, key=lambda jump: jump.divisor, default=None)
        if first is None or any(jump.of is not first.of or jump.divisor % first.divisor for jump in self.jumps):
            return None
        return first


def _number(value: Value) -> int | float | None:
    """The constant that every element of a chunk is."""
    op = value.defining_op
    return splat_of(op.source if isinstance(op, tt.Splat) else value)


def _is_consecutive(value: Value) -> bool:
    """Whether nothing in a value jumps."""
    slopes = _Slopes({})
    return slopes.of(value) == 1 and not slopes.jumps


class _Splitter:
    """The patterns, and what they have made."""

    def __init__(self) -> None:
        self.sides: dict[Value, Sides] = {}

    def load(self, builder: Builder, op: tt.Load) -> Sequence[Value] | None:
        """A gather as two accesses."""
        type = op.result.type
        if op.volatile or not isinstance(type, TensorType) or isinstance(type.element, PointerType):
            return None
        slopes = _Slopes(self.sides)
        step, jump = slopes.of(op.ptr), slopes.first_jump()
        if jump is None or step not in (0, 1) or (step == 0 and op.mask is not None):
            return None
        write = _Writer(builder, self.sides, jump, type.shape[0])
        if step == 0:
            sides = Sides(write.scalar_load(op, False), write.scalar_load(op, True), jump)
            chunks = [builder.emit(tt.Splat, side, result_types=[type]) for side in (sides.before, sides.behind)]
            made = builder.emit(arith.Select, write.in_front(), *chunks, result_types=[type])
            self.sides[made] = sides
            return [made]
        given: Value | None = op.other
        for behind in (False, True):
            mask = write.mask(behind, op.mask)
            given = builder.emit(tile.Load, write.pointer(op.ptr, behind), mask, given, result_types=[type])
        return [cast(Value, given)]

    def store(self, builder: Builder, op: tt.Store) -> Sequence[Value] | None:
        """A scatter as two accesses."""
        type = op.value.type
        if not isinstance(type, TensorType) or isinstance(type.element, PointerType):
            return None
        slopes = _Slopes(self.sides)
        step, jump = slopes.of(op.ptr), slopes.first_jump()
        if jump is None or step != 1:
            return None
        write = _Writer(builder, self.sides, jump, type.shape[0])
        for behind in (False, True):
            builder.create(tile.Store, write.pointer(op.ptr, behind), op.value, write.mask(behind, op.mask))
        return []


class _Writer:
    """Writes what a split access needs: scalars of the first lane and of the lane of the jump."""

    def __init__(self, builder: Builder, sides: dict[Value, Sides], jump: Jump, lanes: int) -> None:
        self.builder, self.sides, self.lanes = builder, sides, lanes
        self.jump = jump
        self._made: dict[tuple[Value, bool], Value] = {}
        self.lane = self._lane(jump)

    def _lane(self, jump: Jump) -> Value:
        """The lane of the jump, from 1 on: not in the chunk where it is not less than the lanes.

        Division rounds to zero: below zero it jumps behind the multiples, and at zero it does not jump.
        """
        emit = self.builder.emit
        first = self.scalar(jump.of, False)
        type = first.type
        left = emit(arith.RemSI, first, self.number(type, jump.divisor))
        below = emit(arith.CmpI, first, self.number(type, -jump.divisor), predicate="sle", result_types=[I1])
        next = emit(arith.Select, below, self.number(type, 1), self.number(type, jump.divisor), result_types=[type])
        at = emit(arith.SubI, next, left)
        return at if type is I32 else emit(arith.TruncI, at, result_types=[I32])

    def number(self, type: Type, number: int) -> Value:
        """A constant."""
        return self.builder.emit(arith.Constant, value=make_constant(type, (number,)), result_types=[type])

    def in_front(self) -> Value:
        """Which lanes are in front of the jump."""
        type = TensorType((self.lanes,), I32)
        lanes = self.builder.emit(tt.MakeRange, start=0, end=self.lanes)
        lane = self.builder.emit(tt.Splat, self.lane, result_types=[type])
        return self.builder.emit(arith.CmpI, lanes, lane, predicate="slt", result_types=[type.with_element(I1)])

    def mask(self, behind: bool, mask: Value | None) -> Value:
        """The lanes of a side that an access has."""
        side: Value = self.in_front()
        if behind:
            ones = self.builder.emit(arith.Constant, value=make_constant(side.type, (1,)), result_types=[side.type])
            side = self.builder.emit(arith.XOrI, side, ones)
        return side if mask is None else self.builder.emit(arith.AndI, side, mask)

    def pointer(self, pointers: Value, behind: bool) -> Value:
        """Where lane 0 of a side would be."""
        at = self.scalar(pointers, behind)
        if not behind:
            return at
        back = self.builder.emit(arith.SubI, self.number(I32, 0), self.lane)
        return self.builder.emit(tt.AddPtr, at, back)

    def scalar_load(self, op: tt.Load, behind: bool) -> Value:
        """The one element of a side; of the other one where the chunk ends in front of the jump."""
        at = self.scalar(op.ptr, behind)
        if behind:
            inside = self.builder.emit(
                arith.CmpI, self.lane, self.number(I32, self.lanes), predicate="slt", result_types=[I1]
            )
            other = self.scalar(op.ptr, False)
            at = self.builder.emit(arith.Select, inside, at, other, result_types=[at.type])
        return self.builder.emit(tt.Load, at, None, None, result_types=[element_type(op.result.type)])

    def scalar(self, value: Value, behind: bool) -> Value:
        """What a chunk is in its first lane, or in the lane of the jump."""
        known = self._made.get((value, behind))
        if known is None:
            known = self._made[value, behind] = self._scalar(value, behind)
        return known

    def _scalar(self, value: Value, behind: bool) -> Value:
        op = value.defining_op
        assert op is not None
        if value in self.sides:
            return self.sides[value].behind if behind else self.sides[value].before
        if isinstance(op, tt.Splat):
            return op.source
        type = element_type(value.type)
        if isinstance(op, arith.Constant):
            return self.number(type, int(cast(int, splat_of(value))))
        if isinstance(op, tt.MakeRange):
            start = self.number(I32, op.start)
            return self.builder.emit(arith.AddI, start, self.lane) if behind else start
        divides = isinstance(op, arith.DivSI | arith.RemSI)
        if behind and divides and op.operands[0] is self.jump.of and _number(op.operands[-1]) == self.jump.divisor:
            return self._divided_behind(op, type)
        operands = [self.scalar(operand, behind) for operand in op.operands]
        return self.builder.insert(op.__class__(operands, [type], op.attributes, loc=op.loc)).result

    def _divided_behind(self, op: Operation, type: Type) -> Value:
        """The quotient behind the jump is one more, which leaves so much less."""
        emit, in_front = self.builder.emit, self.scalar(op.result, False)
        if isinstance(op, arith.DivSI):
            return emit(arith.AddI, in_front, self.number(type, 1))
        at = self.lane if type is I32 else emit(arith.ExtSI, self.lane, result_types=[type])
        return emit(arith.SubI, emit(arith.AddI, in_front, at), self.number(type, self.jump.divisor))
