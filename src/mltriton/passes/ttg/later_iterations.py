"""What passes share that copy ahead for loops: how much of a load a copy takes, and what a later iteration needs.

Level: ttg. Takes loads in the body of an `scf.for`, and builders that stand where copies start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from mltriton.analysis.aliasing import may_alias, orders_memory, writes_in
from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.dialects import arith, scf, tt
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.ir.builder import Builder
from mltriton.ir.operation import BlockArgument, Operation, Value
from mltriton.ir.types import I1, I32, I64, TensorType, byte_width
from mltriton.layouts.base import Encoding
from mltriton.layouts.lanes import lane_run


def bytes_at_once(load: tt.Load, dim: int, run: int, axes: AxisInfoAnalysis) -> int:
    """How many bytes a lane has in a row along `dim`, of which pointers have `run`: aligned to as many, and all of them
    inside or outside of the mask.
    """
    block = cast(TensorType, load.result.type)
    width = byte_width(block.element)
    at_once = min(run, axes.alignment(load.ptr))
    at_once = min(at_once, lane_run(cast(Encoding, block.encoding), block.shape, dim) * width)
    if load.mask is not None:
        at_once = min(at_once, axes.of(load.mask).constancy[dim] * width)
    return at_once


@dataclass(frozen=True)
class Needed:
    """The operations of a body from which values are computed, in order, and what of the loop's carried values these
    need, by number. Loads among them read what the loop does not write.
    """

    ops: list[Operation]
    carried: list[int]

    @staticmethod
    def of(loop: scf.For, values: Iterable[Value], *, loads: bool = False) -> Needed | None:
        """None where the values depend on what happens in the iterations between, or on memory: with `loads`, on some
        that the loop may write.
        """
        body, ops, carried = loop.body.block, set[Operation](), set[int]()
        pending = list(values)
        while pending:
            value = pending.pop()
            if isinstance(value, BlockArgument):
                index = body.arguments.index(value) - 1 if value.owner is body else -1
                if index >= 0 and index not in carried:
                    carried.add(index)
                    pending.append(body.terminator.operands[index])
                continue
            op = cast(Operation, value.owner)
            if op.block is not body or op in ops:
                continue
            if not (op.pure and not op.regions) and not (loads and _is_same_earlier(op, loop)):
                return None
            ops.add(op)
            pending += op.operands
        return Needed([op for op in body.ops if op in ops], sorted(carried))

    def compute(self, builder: Builder, values: dict[Value, Value], happens: Value) -> None:
        """The operations for an iteration of which some `values` are known; loads where it happens."""
        for op in self.ops:
            builder.insert(load_where(builder, op, values, happens) if isinstance(op, tt.Load) else op.clone(values))


def _is_same_earlier(op: Operation, loop: scf.For) -> bool:
    return isinstance(op, tt.Load) and not is_block_pointer(op.ptr.type) and stays_as_it_is(op, loop)


def stays_as_it_is(load: tt.Load | tt.DescriptorLoad, loop: scf.For) -> bool:
    """Whether a load gives the same some iterations earlier: nothing in the loop writes there, or waits for others."""
    is_volatile = isinstance(load, tt.Load) and load.volatile
    return not is_volatile and not orders_memory(loop) and not any(may_alias(load, write) for write in writes_in(loop))


def load_where(builder: Builder, load: tt.Load, values: dict[Value, Value], happens: Value) -> tt.Load:
    """A load in an iteration that may not be; `values` has its result for that of the loop's body."""
    other = [values.get(load.other, load.other)] if load.other is not None else []
    parts = values.get(load.ptr, load.ptr), mask_where(builder, load, values, happens), *other
    made = tt.Load(parts, [load.result.type], load.attributes, (), load.loc, (1, 1, len(other)))
    values[load.result] = made.result
    return made


def mask_where(builder: Builder, load: tt.Load, values: Mapping[Value, Value], happens: Value) -> Value:
    """The mask of a load in an iteration that may not be."""
    if isinstance(load.result.type, TensorType):
        happens = builder.emit(tt.Splat, happens, result_types=[load.result.type.with_element(I1)])
    return happens if load.mask is None else builder.emit(arith.AndI, values.get(load.mask, load.mask), happens)


def address_of(load: tt.Load) -> list[Value]:
    """What says where a load happens, and whether."""
    return [value for value in (load.ptr, load.mask) if value is not None]


def counter_after(builder: Builder, loop: scf.For, first: Value, steps: int) -> Value:
    """The loop's counter so many iterations after `first`."""
    return _later(builder, first, loop.step, steps)


def happens_after(builder: Builder, loop: scf.For, first: Value, steps: int) -> Value:
    """Whether there is such an iteration. The last ones may count further than 32 bits do."""
    first, step, upper = (_wide(builder, value) for value in (first, loop.step, loop.upper))
    return builder.emit(arith.CmpI, _later(builder, first, step, steps), upper, predicate="slt")


def _later(builder: Builder, first: Value, step: Value, steps: int) -> Value:
    if steps == 0:
        return first
    count = arith.integer(builder, steps, first.type)
    return builder.emit(arith.AddI, first, builder.emit(arith.MulI, step, count))


def _wide(builder: Builder, value: Value) -> Value:
    return builder.emit(arith.ExtSI, value, result_types=[I64]) if value.type is I32 else value
