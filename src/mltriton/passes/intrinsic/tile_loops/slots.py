"""Values that a region of control flow carries: what the new operation carries for each, and what stands for it.

Level: warp to intrinsic. A scalar is carried as it is; a descriptor as what it is made of; a block of integers
or pointers that grows by the same amount everywhere as that amount; any other block stays in a tile, and nothing is
carried. A slot is asked in this order: `inits` before the loop, `bind` inside, `yields` at the end of the body,
`finish` with the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mltriton.dialects import arith, tt, ttg
from mltriton.ir.attributes import DenseAttr
from mltriton.ir.operation import Value
from mltriton.ir.types import I64, IntegerType, PointerType, TensorDescType, TensorType, pointee, shape_of
from mltriton.passes.intrinsic.tile_loops import accesses
from mltriton.passes.intrinsic.tile_loops.accesses import BlockPointer
from mltriton.passes.intrinsic.tile_loops.forms import constant_index, is_integer
from mltriton.passes.intrinsic.tile_loops.operations import SHAPES
from mltriton.passes.intrinsic.tile_loops.tiles import Tile

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering


class Slot:
    """Base: one carried value, as `width` values of the new operation."""

    width = 0

    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.e = low.e

    def inits(self, value: Value) -> list[Value]:
        """What the new operation takes for the initial value."""
        return []

    def bind(self, value: Value, carried: Sequence[Value]) -> None:
        """`value` (an argument or result) is what was carried."""
        raise NotImplementedError

    def yields(self, value: Value) -> list[Value]:
        """What the new operation carries on for `value`."""
        return []


class ScalarSlot(Slot):
    """A scalar."""

    width = 1

    def inits(self, value: Value) -> list[Value]:
        return [self.e.scalar(value)]

    def bind(self, value: Value, carried: Sequence[Value]) -> None:
        self.e.scalars[value] = carried[0]
        carried[0].hint = carried[0].hint or value.hint

    def yields(self, value: Value) -> list[Value]:
        return [self.e.scalar(value)]


class PointerSlot(Slot):
    """A descriptor, or a block pointer."""

    def __init__(self, low: Lowering) -> None:
        super().__init__(low)
        self.pads_nan = False

    def inits(self, value: Value) -> list[Value]:
        return self.yields(value)

    def bind(self, value: Value, carried: Sequence[Value]) -> None:
        base, *rest = carried
        type = value.type.block if isinstance(value.type, TensorDescType) else pointee(value.type)
        rank = len(shape_of(type))
        shape, strides, offsets = (tuple(rest[i * rank : (i + 1) * rank]) for i in range(3))
        self.e.pointers[value] = BlockPointer(base, shape, strides, offsets, self.pads_nan)

    def yields(self, value: Value) -> list[Value]:
        pointer = accesses.block_pointer(self.e, value)
        self.pads_nan = pointer.pads_nan
        values = [pointer.base, *pointer.shape, *pointer.strides, *pointer.offsets]
        self.width = len(values)
        return values


class ShiftSlot(Slot):
    """A block that grows by a scalar: carried is the sum so far."""

    width = 1

    def __init__(self, low: Lowering, initial: Value, argument: Value, steps: list[Value]) -> None:
        super().__init__(low)
        self.initial, self.argument, self.steps = initial, argument, steps
        element = cast(TensorType, initial.type).element
        self.type: IntegerType = I64 if isinstance(element, PointerType) else cast(IntegerType, element)

    def inits(self, value: Value) -> list[Value]:
        return [self.e.emitter.integer(0, self.type)]

    def bind(self, value: Value, carried: Sequence[Value]) -> None:
        self.e.shifted[value] = (self.initial, carried[0])

    def yields(self, value: Value) -> list[Value]:
        e = self.e
        total = e.shifted[self.argument][1]
        for step in self.steps:
            form = e.at(step, (constant_index(0),) * len(shape_of(step.type)), 1)
            amount = e.arithmetic.scalar(e.convert(form, self.type, 1))
            total = accesses.add_scalars(e, total, amount)
        return [total]


class SameSlot(Slot):
    """A block that never changes."""

    def __init__(self, low: Lowering, initial: Value) -> None:
        super().__init__(low)
        self.initial = initial

    def bind(self, value: Value, carried: Sequence[Value]) -> None:
        self.e.aliases[value] = self.e.aliases.get(self.initial, self.initial)


class TileSlot(Slot):
    """A block in a tile. The tile is filled by who knows when; see `control_flow.py`."""

    def __init__(self, low: Lowering, tile: Tile) -> None:
        super().__init__(low)
        self.tile = tile

    def bind(self, value: Value, carried: Sequence[Value]) -> None:
        self.low.settle(value, self.tile)


def loop_slot(low: Lowering, initial: Value, argument: Value, end: Value) -> Slot | None:
    """How a loop carries a value; None for a block that needs a tile."""
    type = argument.type
    if is_block_pointer(argument):
        return PointerSlot(low)
    if not isinstance(type, TensorType):
        return ScalarSlot(low)
    if end is argument:
        return SameSlot(low, initial)
    if is_integer(type.element):
        steps = _steps(end, argument)
        if steps is not None and not _reads_memory(low, initial):
            return ShiftSlot(low, initial, argument, steps)
    return None


def is_block_pointer(value: Value) -> bool:
    """Whether a value is a block pointer or a descriptor."""
    type = value.type
    return isinstance(type, TensorDescType) or (isinstance(type, PointerType) and isinstance(type.pointee, TensorType))


def _steps(end: Value, argument: Value) -> list[Value] | None:
    """The uniform blocks that are added to the argument; None where anything else happens."""
    steps: list[Value] = []
    while end is not argument:
        op = end.defining_op
        if isinstance(op, tt.AddPtr) and is_uniform_block(op.offset):
            steps.append(op.offset)
            end = op.ptr
        elif isinstance(op, arith.AddI) and is_uniform_block(op.rhs):
            steps.append(op.rhs)
            end = op.lhs
        elif isinstance(op, arith.AddI) and is_uniform_block(op.lhs):
            steps.append(op.lhs)
            end = op.rhs
        elif isinstance(op, ttg.ConvertLayout):
            end = op.source
        else:
            return None
    return steps


def is_uniform_block(value: Value) -> bool:
    """Whether all elements of a block are the same by construction."""
    op = value.defining_op
    if isinstance(op, arith.Constant):
        return isinstance(op.value, DenseAttr) and op.value.is_splat
    if isinstance(op, tt.Splat):
        return True
    if op is None or not (op.elementwise or isinstance(op, SHAPES)):
        return False
    return all(is_uniform_block(operand) for operand in op.operands)


def _reads_memory(low: Lowering, value: Value) -> bool:
    found = low.reads(value)
    return bool(found.loads) or any(isinstance(leaf.type, TensorType) for leaf, _ in found.leaves)
