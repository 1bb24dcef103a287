"""Accesses through blocks of pointers, beside each of which stands one through a block pointer, for who may choose.

Level: tt. Takes a function for a target with an engine that copies blocks; adds operations. Guarantees: each added load
or store has the effects of the one that stands behind it, wherever their memory is touched by nothing in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from mltriton.analysis.affine.polynomials import Polynomial
from mltriton.analysis.rectangles import Rectangle
from mltriton.analysis.regular_pointers import Access, RegularPointers
from mltriton.analysis.tensor_maps import UNBOUNDED
from mltriton.analysis.workload import adding_loop, is_multiplied
from mltriton.dialects import scf, tt
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I32, I64, PointerType, TensorType, byte_width
from mltriton.passes.tt.raise_block_pointers import Scalars
from mltriton.targets.base import BlockIO, TensorCopies


def regular_pointers(function: tt.Func, limits: TensorCopies) -> RegularPointers:
    """The judgement of blocks of pointers, with what the engine asks of matrices."""
    return RegularPointers(
        function, BlockIO(0, 0, **dict.fromkeys(("pitch_multiple", "least_pitch", "base_alignment"), limits.alignment))
    )


def alternatives(function: tt.Func, limits: TensorCopies) -> dict[Operation, Access]:
    """What was added, and in place of what."""
    pointers = regular_pointers(function, limits)
    accesses = [op for op in function.walk() if isinstance(op, Access) and isinstance(op.ptr.type, TensorType)]
    found = [(op, rectangle) for op in accesses if isinstance(rectangle := pointers.of(op), Rectangle)]
    slow = _slow_loops(found) if limits.beside_products else set[Operation]()
    found = [(op, rectangle) for op, rectangle in found if isinstance(op, tt.Store) or op.parent_op not in slow]
    scalars, made = Scalars(pointers.formulas) if found else None, dict[Operation, Access]()
    for op, rectangle in found:
        if scalars is not None and is_simple(op, rectangle):
            made[_beside(op, rectangle, scalars)] = op
    return made


# Of blocks with shorter rows, and together no more bytes in an iteration, the engine brings less than lanes do (GEMM of
# 4096 in f16, blocks of 128 x 32 x 32: 797 us and 661; 64 x 32 x 32: 962 and 793).
LINE_BYTES, FEW_BYTES = 128, 10240


def _slow_loops(found: Sequence[tuple[Access, Rectangle]]) -> set[Operation]:
    """Loops that add up products of small blocks, all of which have short rows."""
    blocks: dict[Operation, list[Rectangle]] = {}
    for op, rectangle in found:
        loop = op.parent_op
        if isinstance(op, tt.Load) and isinstance(loop, scf.For) and is_multiplied(op.result):
            blocks.setdefault(loop, []).append(rectangle)
    return {loop for loop, each in blocks.items() if _are_slow(each) and _only_adds_up(loop)}


def _are_slow(rectangles: Sequence[Rectangle]) -> bool:
    short = all(_row_bytes(rectangle) < LINE_BYTES for rectangle in rectangles)
    return short and sum(rectangle.block.bytes for rectangle in rectangles) <= FEW_BYTES


def _row_bytes(rectangle: Rectangle) -> int:
    return rectangle.block.shape[rectangle.contiguous] * byte_width(rectangle.block.element)


def _only_adds_up(loop: Operation) -> bool:
    return all(adding_loop(op) is loop for op in loop.walk() if isinstance(op, tt.Dot))


def is_simple(op: Access, rectangle: Rectangle) -> bool:
    """Whether the matrix is the same for all programs as far as its form says, and what lies outside is 0."""
    alike = not rectangle.scalars and all(
        line.may_be_negative.is_zero and len(line.ends) <= 1 for line in rectangle.lines
    )
    other = splat_of(op.other) if isinstance(op, tt.Load) and op.other is not None else 0
    return alike and other == 0 and math.copysign(1, other) > 0


def _beside(op: Access, rectangle: Rectangle, scalars: Scalars) -> Access:
    builder = Builder().before(op)
    pointer = builder.emit(
        tt.MakeTensorPtr,
        _base(builder, rectangle, scalars),
        [scalars.emit(builder, end, I64) for end in _ends(rectangle)],
        [scalars.emit(builder, line.stride, I64) for line in rectangle.lines],
        [scalars.emit(builder, line.offset, I32) for line in rectangle.lines],
        order=(rectangle.contiguous, 1 - rectangle.contiguous),
        result_types=[PointerType(rectangle.block)],
    )
    checked = tuple(dim for dim, line in enumerate(rectangle.lines) if line.ends)
    hints: dict[str, Any] = {"boundary_check": checked, "cache": op.cache, "evict": op.evict}
    if isinstance(op, tt.Store):
        return builder.create(tt.Store, pointer, op.value, None, result_types=[], **hints)
    made = builder.create(tt.Load, pointer, None, None, **hints)
    made.result.hint = op.result.hint
    return made


def _base(builder: Builder, rectangle: Rectangle, scalars: Scalars) -> Value:
    if rectangle.shift.is_zero:
        return rectangle.base
    return builder.emit(tt.AddPtr, rectangle.base, scalars.emit(builder, rectangle.shift, I64))


def _ends(rectangle: Rectangle) -> Iterator[Polynomial]:
    for line in rectangle.lines:
        yield line.ends[0] if line.ends else Polynomial.constant(UNBOUNDED)
