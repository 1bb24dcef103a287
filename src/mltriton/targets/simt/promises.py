"""What a program promises of its numbers and addresses, said of the registers that stand for them.

Level: intrinsic -> llvm. Takes a value and what was emitted for it. A register of a block is the first of a group of
neighbours, or so many elements behind it, as its coordinate says, which differs from lane to lane.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.dialects import scf, tt
from mltriton.ir.operation import BlockArgument, Value
from mltriton.ir.promises import DIVISIBILITY, promises_in
from mltriton.ir.types import PointerType, TensorType, byte_width, pointee
from mltriton.layouts.linear import LinearLayout
from mltriton.targets.llvm.types import Value as Emitted
from mltriton.targets.simt.lanes import Lanes, layout_of

if TYPE_CHECKING:
    from mltriton.targets.simt.context import Emitter


def take_promises(e: Emitter, value: Value, emitted: object) -> None:
    """Say of what stands for a value by what the program promises that it can be divided."""
    op = value.block.parent_op if isinstance(value, BlockArgument) else value.defining_op
    if op is None or isinstance(op, tt.Func) or DIVISIBILITY not in op.attributes:
        return
    is_counter = isinstance(op, scf.For) and value is op.counter
    numbers = promises_in(op.attributes)[DIVISIBILITY]
    if isinstance(emitted, Emitted) and (is_counter or not op.regions):
        e.affine.promise(emitted, numbers[0])
    elif isinstance(emitted, Lanes) and isinstance(value.type, TensorType) and not op.regions:
        _of_block(e, value, value.type, emitted)


def _of_block(e: Emitter, value: Value, type: TensorType, lanes: Lanes) -> None:
    function = value.defining_op and value.defining_op.ancestor(tt.Func)
    if not isinstance(function, tt.Func):
        return
    info = AxisInfoAnalysis(function).of(value)
    dim = info.contiguity.index(max(info.contiguity))
    group, width = min(info.contiguity[dim], type.shape[dim]), 1
    if isinstance(type.element, PointerType):
        width = byte_width(pointee(type))
    if group & (group - 1):
        return
    starts = _starts(layout_of(type), dim)
    for register, start in zip(e.scalars(lanes), starts, strict=True):
        behind = 0 if start % group == 0 else start * width
        e.affine.promise(register, gcd(info.divisibility[dim], behind) if behind else info.divisibility[dim])


def _starts(layout: LinearLayout, dim: int) -> list[int]:
    """For each register the power of two that divides its coordinate in every lane (0: it is 0)."""
    by_lane = 0
    for vector in layout.vectors("lane"):
        by_lane |= vector[dim]
    numbers = [layout.at(register=register)[dim] | by_lane for register in range(layout.count("register"))]
    return [number & -number for number in numbers]
