"""Which micro-kernels a dot may use, as its types, its shape and the loops around it say.

Level: warp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mltriton.dialects import scf, tile, tt
from mltriton.ir.constants import splat_of
from mltriton.ir.nesting import is_defined_inside
from mltriton.ir.types import Type, element_type, shape_of

if TYPE_CHECKING:
    from mltriton.targets.base import MicroKernel, TargetSpec


def kernel_of(spec: TargetSpec, op: tt.Dot) -> MicroKernel | None:
    """The micro-kernel for a dot; None where the target has none."""
    return spec.micro_kernel(element_type(op.a.type), shape_of(op.b.type)[-1], shape_of(op.a.type)[-1])


def may_use_lines(spec: TargetSpec, op: tt.Dot) -> bool:
    """Whether a dot has so few rows that its right operand may be read line by line."""
    most = max((how.rows for how in spec.indirect_dots.values()), default=0)
    return len(shape_of(op.b.type)) <= 3 and rows_of(op) <= most


def left_types(spec: TargetSpec, op: tt.Dot) -> set[Type]:
    """The types in which a dot may take the elements of its left operand: its micro-kernel's, and that for lines."""
    element, kernel = element_type(op.b.type), kernel_of(spec, op)
    found = set[Type]() if kernel is None else {kernel.operand}
    lines = spec.indirect_dots.items() if may_use_lines(spec, op) else ()
    return found | {how.left for (of, _), how in lines if of is element}


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
