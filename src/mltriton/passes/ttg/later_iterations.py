"""What passes share that copy ahead for loops: how much of a load a copy takes, and what a later iteration needs.

Level: ttg. Takes loads of blocks in the body of an `scf.for`, and builders that stand where copies start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.dialects import arith, scf, tt
from mltriton.ir.builder import Builder
from mltriton.ir.operation import BlockArgument, Operation, Value
from mltriton.ir.types import I32, I64, TensorType, byte_width
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
    need, by number.
    """

    ops: list[Operation]
    carried: list[int]

    @staticmethod
    def of(loop: scf.For, values: Iterable[Value]) -> Needed | None:
        """None where the values depend on memory, or on what happens in the iterations between."""
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
            if not op.pure or op.regions:
                return None
            ops.add(op)
            pending += op.operands
        return Needed([op for op in body.ops if op in ops], sorted(carried))


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
