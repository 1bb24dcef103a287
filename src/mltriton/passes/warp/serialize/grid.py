"""Warps in a grid: values that are the same for all warps of a row, or of a column.

Level: warp. A kernel that divides its warp's number by the number of columns, `warp // C` and `warp % C`, arranges its
warps in rows and columns. What depends on one of the two alone is the same for a row's or a column's warps: a piece may
loop over columns and rows (`writer.py`) and do it in the outer loop.
"""

from __future__ import annotations

from collections.abc import Container
from enum import IntFlag

from mltriton.dialects import arith, gpu, tt
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Block, Operation, Value
from mltriton.passes.warp.serialize.units import Piece
from mltriton.passes.warp.serialize.varying import Varying

_DIVISIONS = (arith.DivSI, arith.DivUI)
_REMAINDERS = (arith.RemSI, arith.RemUI)


class Axis(IntFlag):
    """What a value depends on."""

    NONE = 0
    COLUMN = 1
    ROW = 2
    BOTH = 3


class Grid:
    """The warps of a function in `rows` and `columns`; `numbers` are the values that are a row's or column's number."""

    def __init__(self, columns: int, rows: int, numbers: dict[Value, Axis]) -> None:
        self.columns = columns
        self.rows = rows
        self.numbers = numbers

    def axis(self, value: Value, varying: Varying, kept: Container[Value] = ()) -> Axis:
        """What a value depends on; one in `kept` is a warp's own."""
        return self._axis(value, varying, kept, {})

    def _axis(self, value: Value, varying: Varying, kept: Container[Value], known: dict[Value, Axis]) -> Axis:
        found = self.numbers.get(value, known.get(value))
        if found is None:
            op = value.defining_op
            if value not in varying:
                found = Axis.NONE
            elif value in kept or op is None or not is_shareable(op, varying):
                found = Axis.BOTH
            else:
                found = Axis.NONE
                for operand in op.operands:
                    found |= self._axis(operand, varying, kept, known)
            known[value] = found
        return found

    def outer_axis(self, piece: Piece, varying: Varying, kept: Container[Value] = ()) -> Axis | None:
        """The axis along which the right operand of a dot of a piece is the same, if there is one."""
        for op in piece.ops:
            if isinstance(op, tt.Dot) and op.b.defining_op in varying.cut.piece_of:
                axis = self.axis(op.b, varying, kept)
                if axis in (Axis.COLUMN, Axis.ROW):
                    return axis
        return None


def grid_of(body: Block, warps: int) -> Grid | None:
    """The grid in which a function arranges its warps, if it is one and no other."""
    grids: dict[int, dict[Value, Axis]] = {}
    for op in (inner for outer in body.ops for inner in outer.walk()):
        if isinstance(op, (*_DIVISIONS, *_REMAINDERS)) and _is_warp(op.operands[0]):
            columns = splat_of(op.operands[1])
            if columns is not None and 1 < columns < warps and warps % columns == 0:
                numbers = grids.setdefault(int(columns), {})
                numbers[op.results[0]] = Axis.ROW if isinstance(op, _DIVISIONS) else Axis.COLUMN
    if len(grids) != 1:
        return None
    columns, numbers = grids.popitem()
    return Grid(columns, warps // columns, numbers)


def is_shareable(op: Operation, varying: Varying) -> bool:
    """Whether an operation may be done before others of its piece, once for several warps."""
    piece = varying.cut.piece_of.get(op)
    return piece is not None and not op.regions and varying.may_be_shared(op, piece)


def _is_warp(value: Value) -> bool:
    op = value.defining_op
    return isinstance(op, arith.IndexCast) and isinstance(op.operands[0].defining_op, gpu.SubgroupId)
