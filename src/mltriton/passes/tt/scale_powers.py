"""scale-powers: what is only added up of a softmax are powers of two.

Level: tt, after `flush-powers`. Takes any program. A power of e of at most 1 (`flushes`) that reductions add up, and
nothing else takes, becomes one of two: e**x = 2**(x log2(e)). Guarantees: nothing else changes. That product is rounded
by |x| 2**-24 at most and the power, then, by |x| e**x 2**-24, which is less than 0.37 of what adding to a sum of 1 or
more rounds by. Purpose: a power of e whose last bits are right takes three instructions more.
"""

from __future__ import annotations

from mltriton.dialects import arith, math, tt
from mltriton.ir.builder import Builder
from mltriton.ir.constants import make_constant
from mltriton.ir.module import Module
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import F32, element_type

LOG2_E = 1.4426950408889634


class ScalePowers(Pass):
    """Compute powers that are added up as powers of two."""

    name = "scale-powers"

    def run(self, module: Module) -> Module:
        for op in [*module.walk()]:
            if isinstance(op, math.Exp) and op.flushes and _is_added_up(op.result):
                builder = Builder().before(op)
                scale = builder.emit(arith.Constant, value=make_constant(op.result.type, (LOG2_E,)))
                power = builder.create(math.Exp2, builder.emit(arith.MulF, op.source, scale))
                power.flushes = True
                op.replace_by(power.results)
        return module


def _is_added_up(value: Value) -> bool:
    """Whether reductions take a block of f32 to add it up, and nobody else takes it."""
    users = value.users
    added = all(isinstance(op, tt.Reduce) and op.combiner is arith.AddF for op in users)
    return element_type(value.type) is F32 and bool(users) and added
