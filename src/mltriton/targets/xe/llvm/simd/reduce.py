"""Reductions of a SIMD kernel: over registers, then over the lanes of several registers at once.

Level: intrinsic -> llvm. Registers that differ along the axis are combined as whole vectors. What is left lies in the
lanes: registers are put after each other, and halves of all rows are combined, then quarters, so that the vectors get
shorter together. Scans are those of a lane's program. Guarantees: registers that repeat an element count once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import tt
from mltriton.ir.operation import Region
from mltriton.ir.types import TensorType
from mltriton.targets.llvm.types import Value
from mltriton.targets.simt import reduce
from mltriton.targets.simt.context import Rules
from mltriton.targets.simt.lanes import Emitted, layout_of
from mltriton.targets.simt.reduce import along, combine, over_registers, without
from mltriton.targets.xe.llvm.simd.context import WarpEmitter
from mltriton.targets.xe.llvm.simd.intrinsics import LANES, joined, read
from mltriton.targets.xe.llvm.simd.moves import pick

_MOST = 8  # registers whose lanes are combined at once


def _reduce(e: WarpEmitter, op: tt.Reduce) -> list[Emitted]:
    source = cast(TensorType, op.sources[0].type)
    layout = layout_of(source)
    rows = [list(row) for row in zip(*(e.registers(value) for value in op.sources), strict=True)]
    in_registers, in_lanes = (along(layout, name, op.axis) for name in ("register", "lane"))
    rows = over_registers(e, op.combine, rows, in_registers)
    if in_lanes:
        parts = [rows[start : start + _MOST] for start in range(0, len(rows), _MOST)]
        rows = [row for part in parts for row in _over_lanes(e, op.combine, part, in_lanes)]
    left = without(layout, op.axis, in_registers)
    made: list[Emitted] = []
    for number, result in enumerate(op.results):
        registers = [row[number] for row in rows]
        if isinstance(result.type, TensorType):
            registers = e.rearranged(registers, left, layout_of(result.type))
        made.append(e.held(registers, result.type))
    return made


def _over_lanes(e: WarpEmitter, region: Region, rows: list[list[Value]], bits: Sequence[int]) -> list[list[Value]]:
    """Combine the lanes that differ in these bits; all of them have the result."""
    f, lanes = e.function, list(range(LANES))
    held = [joined(f, [row[number] for row in rows]) for number in range(len(rows[0]))]
    for bit in reversed(bits):
        step, width = lanes.index(1 << bit), len(lanes)
        halves = [[_half(e, value, width, step, upper) for value in held] for upper in (0, step)]
        held = combine(e, region, *halves)
        lanes = [lane for lane in lanes if not lane & 1 << bit]
    removed = sum(1 << bit for bit in bits)
    back = [lanes.index(lane & ~removed) for lane in range(LANES)]
    return [[_spread(e, value, number, back) for value in held] for number in range(len(rows))]


def _spread(e: WarpEmitter, value: Value, number: int, back: Sequence[int]) -> Value:
    """Row `number` of what is left, with the element `back` in each lane."""
    width = max(back) + 1
    if width == 1:
        return e.rows.everywhere(value, number) if value.type.is_vector else e.function.splat(value, LANES)
    return pick(e.function, read(e.function, value, number * width, width), back)


def _half(e: WarpEmitter, value: Value, width: int, step: int, start: int) -> Value:
    """Of each row of `width` elements those whose number has the bit `step`, or has not (`start` 0)."""
    f, rows = e.function, value.type.lanes // width
    if 2 * step == width:
        if rows == 1:
            return read(f, value, start, step) if step > 1 else f.extract(value, start)
        return read(f, value, start, step, 1, rows, width)
    lanes = [row * width + lane for row in range(rows) for lane in range(width) if lane & step == start]
    return pick(f, value, lanes)


RULES: Rules = {**reduce.RULES, tt.Reduce: _reduce}  # type: ignore[dict-item]
