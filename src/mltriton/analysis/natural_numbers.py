"""Whether integers cannot be negative, by the operations that make them.

Level: any with `arith` and `tt`. Guarantees: what is not known to be natural is not; see docs/architecture.md,
"Semantics", for what programs promise.
"""

from __future__ import annotations

from mltriton.dialects import arith, scf, tt, ttg, ttng
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import BlockArgument, Value
from mltriton.ir.types import shape_of


def is_natural(value: Value, known: dict[Value, bool] | None = None) -> bool:
    """Whether an integer cannot be negative, as far as the operations that make it show: sums and products of what is
    not negative do not wrap, and what a program id is divided by is not negative where it was computed, as counts of
    blocks are. `known` remembers answers.
    """
    known = {} if known is None else known
    if value not in known:
        known[value] = False  # What depends on itself shows nothing.
        known[value] = _is_natural(value, known)
    return known[value]


_NATURAL = (
    tt.Splat,
    tt.ExpandDims,
    tt.Broadcast,
    tt.Trans,
    ttg.ConvertLayout,
    arith.AddI,
    arith.MulI,
    arith.DivSI,
    arith.ExtSI,
    arith.MinSI,
)
_COMPUTED = (arith.AddI, arith.MulI, arith.DivSI, arith.MinSI)


def _is_natural(value: Value, known: dict[Value, bool]) -> bool:
    op = value.defining_op
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op
        return isinstance(loop, scf.For) and value.index == 0 and is_natural(loop.lower, known)
    if isinstance(op, tt.MakeRange):
        return op.start >= 0
    if isinstance(op, arith.Constant):
        number = splat_of(value)
        return number is not None and number >= 0
    if isinstance(op, tt.GetProgramId | tt.GetNumPrograms | ttng.GridSize):
        return True
    if isinstance(op, arith.RemSI | arith.ShRSI):
        return is_natural(op.lhs, known)
    if isinstance(op, arith.MaxSI | arith.AndI):
        return any(is_natural(operand, known) for operand in op.operands)
    if isinstance(op, arith.DivSI) and not shape_of(value.type) and isinstance(op.rhs.defining_op, _COMPUTED):
        return is_natural(op.lhs, known)
    return isinstance(op, _NATURAL) and all(is_natural(operand, known) for operand in op.operands)
