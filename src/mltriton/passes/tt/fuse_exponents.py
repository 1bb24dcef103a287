"""fuse-exponents: what a softmax takes powers of is rounded once.

Level: tt. Takes any program. Where a row's largest element was subtracted from a scaled product (`flush-powers` marks
such powers), `product * scale - largest` becomes one `math.fma`. Guarantees: nothing else changes; only what a dot
gives is taken, and what a mask made infinite of it. Other elements that a mask put there are not: a huge one, -1e30
say, less its own rounded product would be far from 0. Purpose: one instruction in place of two for each element of
attention's scores.
"""

from __future__ import annotations

from math import isinf

from mltriton.dialects import arith, math, tt
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.module import Module
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass


class FuseExponents(Pass):
    """Scale scores and subtract their largest by one operation."""

    name = "fuse-exponents"

    def run(self, module: Module) -> Module:
        for op in list(module.walk()):
            if isinstance(op, math.Exp2) and op.flushes:
                _fuse(op)
        return module


def _fuse(power: math.Exp2) -> None:
    """The exponent of a power by one operation; what it was made of is dead then, if nothing else takes it."""
    difference = power.source.defining_op
    scaled = difference.lhs.defining_op if isinstance(difference, arith.SubF) else None
    if not isinstance(difference, arith.SubF) or not isinstance(scaled, arith.MulF):
        return
    if len(scaled.result.users) == 1 and (_is_product(scaled.lhs) or _is_product(scaled.rhs)):
        builder = Builder().before(difference)
        negative = builder.emit(arith.NegF, difference.rhs)
        difference.result.replace_by(builder.emit(math.Fma, [scaled.lhs, scaled.rhs, negative]))


def _is_product(value: Value) -> bool:
    op = value.defining_op
    if isinstance(op, arith.Select):
        sides = (op.true_value, op.false_value)
        return any(_is_product(a) and _is_infinite(b) for a, b in (sides, sides[::-1]))
    return isinstance(op, tt.Dot)


def _is_infinite(value: Value) -> bool:
    number = splat_of(value)
    return isinstance(number, float) and isinf(number)
