"""fuse-multiply-add: sums with products in one instruction, rounded once.

Level: any. Takes any program and changes it in place: `a * b + c`, `a * b - c` and `c - a * b` of f32 and f64 become
`math.fma` where the product is computed in the same block and taken nowhere else: one of which the rest is computed
later (`fma(a, b, -p)`) keeps its rounding. Guarantees: nothing is computed twice; a program that says
`ttg.fp-fusion = false` stays as it is, and so do differences that powers are taken of: a huge product less its own
rounded value would be far from 0 (`fuse-exponents` knows where there is none). Purpose: one instruction for two.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import arith, math
from mltriton.ir.attributes import integer_in
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.patterns import Patterns, apply_patterns
from mltriton.ir.types import F32, F64, element_type

ASKED = "ttg.fp-fusion"  # of a module: whether programs may round less often than they say


class FuseMultiplyAdd(Pass):
    """Add products up in one instruction."""

    name = "fuse-multiply-add"

    def run(self, module: Module) -> Module:
        if integer_in(module.attributes, ASKED, 1):
            apply_patterns(module, PATTERNS)
        return module


def sum_of_product(builder: Builder, op: arith.AddF) -> Sequence[Value] | None:
    """a * b + c, whichever comes first."""
    for product, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        factors = _factors(product, op)
        if factors is not None:
            return [builder.emit(math.Fma, *factors, other)]
    return None


def difference_with_product(builder: Builder, op: arith.SubF) -> Sequence[Value] | None:
    """a * b - c is a * b + -c; c - a * b is -a * b + c."""
    if any(isinstance(user, math.Exp | math.Exp2) for user in op.result.users):
        return None
    factors = _factors(op.lhs, op)
    if factors is not None:
        return [builder.emit(math.Fma, *factors, builder.emit(arith.NegF, op.rhs))]
    factors = _factors(op.rhs, op)
    if factors is not None:
        return [builder.emit(math.Fma, builder.emit(arith.NegF, factors[0]), factors[1], op.lhs)]
    return None


def _factors(value: Value, user: arith.AddF | arith.SubF) -> tuple[Value, Value] | None:
    """Of a product that nothing but its user takes."""
    op = value.defining_op
    if not isinstance(op, arith.MulF) or value.uses != 1 or op.block is not user.block:
        return None
    return (op.lhs, op.rhs) if element_type(value.type) in (F32, F64) else None


PATTERNS: Patterns = {arith.AddF: sum_of_product, arith.SubF: difference_with_product}
