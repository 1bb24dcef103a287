"""Products, piece by piece: each of the instruction's size, of pieces of operands in registers or in shared memory.

Level: warp to intrinsic. Rules for `rules.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mltriton.dialects import tt, ttng
from mltriton.ir.operation import Value
from mltriton.ir.types import MemDescType, TensorType
from mltriton.passes.intrinsic.split_registers.pieces import Pieces, enlarge, extract
from mltriton.passes.intrinsic.split_registers.shared_memory import operand_of

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.split_registers.driver import Splitter

Split = Value | Pieces


def dot(s: Splitter, op: tt.Dot) -> Sequence[Split]:
    """Dots of the instruction's size: over columns, then rows, accumulating along K. Where the block is smaller than an
    instruction, zeros are added.
    """
    size = s.sizes.dot_size(op)
    grid = s.grid_of(op)
    assert grid is not None
    *batch, m, n = grid.piece
    whole_k = cast(TensorType | MemDescType, op.a.type).shape[-1]
    k = min(size.k, whole_k)
    rows, columns = s.sizes.instruction(op, grid.piece)
    full_a, full_b, full_c = (*batch, rows, size.k), (*batch, size.k, columns), (*batch, rows, columns)
    sums = cast(TensorType, op.c.type)
    whole_c, part_c = s.sizes.encoding(sums, full_c), s.sizes.encoding(sums, grid.piece)
    values: list[Value] = []
    for origin in grid.origins():
        *outer, row, column = origin
        accumulator = enlarge(s.builder, s.piece(op.c, origin, grid.piece), full_c, whole_c)
        for step in range(0, whole_k, k):
            a = operand_of(s, op.a, (*outer, row, step), (*batch, m, k), full_a)
            b = operand_of(s, op.b, (*outer, step, column), (*batch, k, n), full_b)
            (accumulator,) = s.copy(op, [a, b, accumulator], full_c)
        values.append(extract(s.builder, accumulator, 0, grid.piece, part_c))
    return [s.pieces_of(op.result.type, grid, values)]


def group_dot(s: Splitter, op: ttng.WarpGroupDot) -> Sequence[Split]:
    """A product for each piece, with all of K: its instructions follow each other. The last piece ends the group."""
    grid, k = s.grid_of(op), cast(TensorType | MemDescType, op.a.type).shape[-1]
    assert grid is not None
    *batch, m, n = grid.piece
    values: list[Value] = []
    for origin in grid.origins():
        *outer, row, column = origin
        a = operand_of(s, op.a, (*outer, row, 0), (*batch, m, k), (*batch, m, k))
        b = operand_of(s, op.b, (*outer, 0, column), (*batch, k, n), (*batch, k, n))
        (value,) = s.copy(op, [a, b, s.piece(op.c, origin, grid.piece)], grid.piece)
        cast(ttng.WarpGroupDot, value.defining_op).continues = op.is_async and len(values) + 1 < len(grid.origins())
        values.append(value)
    return [s.pieces_of(op.result.type, grid, values)]


def group_dot_wait(s: Splitter, op: ttng.WarpGroupDotWait) -> Sequence[Split]:
    """One wait for all pieces."""
    values = [piece for value in op.inputs for piece in s.flat(value)]
    types = [value.type for value in values]
    made = s.builder.create(ttng.WarpGroupDotWait, values, result_types=types, pendings=op.pendings)
    return s.unflatten(op.results, made.results)
