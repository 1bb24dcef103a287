"""Blocks in shared memory, piece by piece: each piece is a window of the buffer.

Level: warp to intrinsic. Rules for `rules.py`: loads, stores, asynchronous copies, operands of dots that stay there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mltriton.dialects import arith, ttg
from mltriton.ir.operation import Value
from mltriton.ir.types import MemDescType, TensorType, block_of
from mltriton.layouts.encodings import Shape
from mltriton.passes.intrinsic.split_registers.pieces import Grid, Pieces, enlarge

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.split_registers.driver import Splitter

Split = Value | Pieces


def local_load(s: Splitter, op: ttg.LocalLoad) -> Sequence[Split]:
    """One load for each piece, from its window of the buffer."""
    grid = s.grid_of(op)
    assert grid is not None
    made = [s.copy(op, [window(s, op.memory, origin, grid.piece)], grid.piece)[0] for origin in grid.origins()]
    return [s.pieces_of(op.result.type, grid, made)]


def local_store(s: Splitter, op: ttg.LocalStore) -> Sequence[Split]:
    """One store for each piece, to its window of the buffer."""
    grid = s.pieces(op.value).grid
    for origin in grid.origins():
        s.copy(op, [s.piece(op.value, origin, grid.piece), window(s, op.memory, origin, grid.piece)])
    return []


def async_copy(s: Splitter, op: ttg.AsyncCopyGlobalToLocal) -> Sequence[Split]:
    """One copy for each piece; groups of copies are what is waited for, so that one token stands for all."""
    block, part = block_of(op.ptr.type), s.sizes.access(op.ptr.type)
    assert block is not None
    tokens: list[Value] = []
    for origin in Grid(block.shape, part).origins():
        values = [s.piece(value, origin, part) if value else None for value in (op.ptr, op.mask, op.other)]
        there = window(s, op.memory, origin, part)
        copy = s.builder.create(ttg.AsyncCopyGlobalToLocal, values[0], there, *values[1:])
        tokens.append(copy.result)
    return tokens[-1:]


def window(s: Splitter, memory: Value, origin: Shape, piece: Shape) -> Value:
    """A part of a buffer."""
    whole = memory.type
    assert isinstance(whole, MemDescType)
    if whole.shape == piece:
        return s.scalar(memory)
    indices = [arith.integer(s.builder, start) for start in origin]
    type = MemDescType(piece, whole.element, whole.encoding, whole.mutable)
    return s.builder.emit(ttg.MemDescSubview, s.scalar(memory), indices, result_types=[type])


def operand_of(s: Splitter, operand: Value, origin: Shape, piece: Shape, full: Shape) -> Value:
    """What one dot instruction takes of an operand: registers, with zeros added, or a window of shared memory."""
    if not isinstance(operand.type, TensorType):
        return window(s, operand, origin, piece)
    return enlarge(s.builder, s.piece(operand, origin, piece), full, s.sizes.encoding(operand.type, full))
