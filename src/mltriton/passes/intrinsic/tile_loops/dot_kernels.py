"""Which micro-kernels a dot may use, as its types, its shape and the loops around it say.

Level: warp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mltriton.dialects import scf, tile, tt, ttg
from mltriton.ir.constants import splat_of
from mltriton.ir.nesting import is_defined_inside
from mltriton.ir.operation import Value
from mltriton.ir.types import element_type, shape_of
from mltriton.targets.base import MicroKernel

if TYPE_CHECKING:
    from mltriton.targets.base import IndirectDot, TargetSpec


def kernel_of(spec: TargetSpec, op: tt.Dot) -> MicroKernel | None:
    """The micro-kernel for a dot; None where the target has none."""
    return spec.micro_kernel(element_type(op.a.type), shape_of(op.b.type)[-1], shape_of(op.a.type)[-1])


def may_use_lines(spec: TargetSpec, op: tt.Dot) -> bool:
    """Whether a dot has so few rows that its right operand, which is loaded, may be read line by line."""
    most = max((how.rows for how in spec.indirect_dots.values()), default=0)
    return len(shape_of(op.b.type)) <= 3 and rows_of(op) <= most and _is_loaded(op.b)


def _is_loaded(value: Value) -> bool:
    """Whether a block is a load, perhaps transposed, inside of a loop nest or not."""
    op = value.defining_op
    while isinstance(op, tt.Trans | ttg.ConvertLayout | tile.Pack | tile.Nest):
        if isinstance(op, tile.Nest):
            value = next(v for r, v in zip(op.results, op.body.block.terminator.operands, strict=True) if r is value)
        else:
            value = op.source
        op = value.defining_op
    return isinstance(op, tt.Load)


def row_kernel(how: IndirectDot) -> MicroKernel:
    """What a dot on lines wants of its left operand: rows, in its own type."""
    return MicroKernel(how.left, how.accumulator, row_major=True)


def left_kernel(spec: TargetSpec, op: tt.Dot) -> MicroKernel | None:
    """What says in which form the left operand of a dot is brought to memory: its micro-kernel, or what multiplies
    lines where it may. None where the target has none.
    """
    kernel, element = kernel_of(spec, op), element_type(op.b.type)
    lines = [how for (of, _), how in spec.indirect_dots.items() if of is element]
    return row_kernel(lines[0]) if kernel is not None and lines and may_use_lines(spec, op) else kernel


def rows_of(op: tt.Dot) -> int:
    """The rows that the right operand is read for: in all iterations of loops of known length that do not change it."""
    pack = op.b.defining_op
    right = pack.source if isinstance(pack, tile.Pack) else op.b
    rows, parent = shape_of(op.a.type)[-2], op.parent_op
    while isinstance(parent, scf.For) and not is_defined_inside(right, parent):
        lower, upper, step = (splat_of(bound) for bound in (parent.lower, parent.upper, parent.step))
        if lower is not None and upper is not None and step:
            rows *= int(-(-(upper - lower) // step))
        parent = parent.parent_op
    return rows
