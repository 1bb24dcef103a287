"""Accesses through blocks of pointers, beside each of which stands one through a block pointer, for who may choose.

Level: tt. Takes a function for a target with an engine that copies blocks; adds operations. Guarantees: each added load
or store has the effects of the one that stands behind it, wherever their memory is touched by nothing in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

from mltriton.analysis.affine.polynomials import Polynomial
from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.analysis.rectangles import Rectangle
from mltriton.analysis.regular_pointers import Access, RegularPointers
from mltriton.analysis.tensor_maps import UNBOUNDED
from mltriton.analysis.workload import is_multiplied, only_adds_up, products_of
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
    slow = _slow_loops(found, pointers.axes, limits) if limits.beside_products else set[Operation]()
    found = [(op, rectangle) for op, rectangle in found if isinstance(op, tt.Store) or op.parent_op not in slow]
    scalars, made = Scalars(pointers.formulas) if found else None, dict[Operation, Access]()
    for op, rectangle in found:
        if scalars is not None and is_simple(op, rectangle):
            made[_beside(op, rectangle, scalars)] = op
    return made


# The engine brings a row of at most 128 bytes in a cycle. Where half of the bytes lie in shorter rows and the products
# of an iteration take fewer cycles than there are rows, lanes are faster, if they copy 16 bytes at once (GEMM of 4096
# in f16, rows for each cycle of the product, us by the engine and by lanes: blocks of 128 x 32 x 32 2.5, 797 and 661;
# 64 x 64 x 32 1.5, 512 and 488; 128 x 64 x 32 1.25, 420 and 381; 256 x 64 x 32 1.1, 383 and 335; but 64 x 128 x 32 1.0,
# 327 and 356; 128 x 128 x 32 0.75, 250 and 276).
LANE_BYTES = 16


def _slow_loops(
    found: Sequence[tuple[Access, Rectangle]], axes: AxisInfoAnalysis, limits: TensorCopies
) -> set[Operation]:
    """Loops that add up products for which lanes bring the blocks faster."""
    blocks: dict[scf.For, list[tuple[tt.Load, Rectangle]]] = {}
    for op, rectangle in found:
        loop = op.parent_op
        if isinstance(op, tt.Load) and isinstance(loop, scf.For) and is_multiplied(op.result):
            blocks.setdefault(loop, []).append((op, rectangle))
    return {loop for loop, each in blocks.items() if only_adds_up(loop) and _are_slow(loop, each, axes, limits)}


def _are_slow(
    loop: scf.For, loads: Sequence[tuple[tt.Load, Rectangle]], axes: AxisInfoAnalysis, limits: TensorCopies
) -> bool:
    blocks = [(rectangle.block.bytes, _row_bytes(rectangle)) for _, rectangle in loads]
    short = sum(size for size, width in blocks if width < limits.row_bytes)
    rows = sum(size // min(width, limits.row_bytes) for size, width in blocks)
    by_lanes = all(_bytes_of_lane(op, rectangle.contiguous, axes) >= LANE_BYTES for op, rectangle in loads)
    return by_lanes and 2 * short >= sum(size for size, _ in blocks) and rows > products_of(loop) / limits.products


def _row_bytes(rectangle: Rectangle) -> int:
    return rectangle.block.shape[rectangle.contiguous] * byte_width(rectangle.block.element)


def _bytes_of_lane(load: tt.Load, dim: int, axes: AxisInfoAnalysis) -> int:
    """How many bytes of memory are known to lie in a row where a lane begins, all inside or outside of the mask."""
    run, width = axes.contiguous_bytes(load.ptr, dim), byte_width(cast(TensorType, load.result.type).element)
    masked = run if load.mask is None else axes.of(load.mask).constancy[dim] * width
    return min(run, masked, axes.alignment(load.ptr))


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
