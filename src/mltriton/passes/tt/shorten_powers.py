"""shorten-powers: powers of two that are rounded to few bits are computed with few.

Level: tt, after `flush-powers`. Takes any program and says of `math.exp2` how many bits what takes it needs (`bits`),
where that is known: blocks that are rounded to a narrow float, as they are or times something, or one of two choices.
Sums of the same powers may be taken, too, as those by which a softmax divides what it rounded: a sum errs by no larger
part of itself than its parts do, a 64th of the last bit that is left of them (`math.exp2`). Guarantees: nothing else
changes. Purpose: a polynomial of fewer terms for each element of attention's scores.
"""

from __future__ import annotations

from collections.abc import Iterable

from mltriton.dialects import arith, math, tt
from mltriton.ir.floats import FORMATS
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation
from mltriton.ir.passes import Pass
from mltriton.ir.types import BF16, F16, TensorType, element_type

BITS = {type: FORMATS[type.name].mantissa + 1 for type in (F16, BF16)}  # with the leading one


class ShortenPowers(Pass):
    """Say how many bits of a power matter."""

    name = "shorten-powers"

    def run(self, module: Module) -> Module:
        for op in module.walk():
            if isinstance(op, math.Exp2) and isinstance(op.result.type, TensorType):
                op.bits = _most(_bits_left(user) for user in op.result.users if not _adds_up(user)) or 0
        return module


def _most(bits: Iterable[int | None]) -> int | None:
    """The most of what users leave of a block; None where there are none, or one needs all of it."""
    needed = list(bits)
    return None if None in needed else max((each for each in needed if each is not None), default=None)


def _bits_left(user: Operation) -> int | None:
    """How many bits of an operand matter where it is rounded; None where all may."""
    if isinstance(user, arith.TruncF):
        return BITS.get(element_type(user.result.type))
    return _most(map(_bits_left, user.results[0].users)) if isinstance(user, arith.MulF | arith.Select) else None


def _adds_up(user: Operation) -> bool:
    return isinstance(user, tt.Reduce) and user.combiner is arith.AddF
