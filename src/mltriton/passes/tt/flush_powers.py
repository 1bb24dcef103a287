"""flush-powers: powers in a softmax need no denormals.

Level: tt. Takes any program and marks `math.exp2` and `math.exp` (`flushes`) where a row's largest element was
subtracted before, so that the row has a power of 1 or is added to one that had: what is less than the least normal
number is lost in any sum of such a row. So is what was summed up before times the power by which a largest element
grew: there is a power of 1, too, if it is so small. So are powers of two that, as they are or multiplied, only go into
dots rounded to 16 bits: in f16 they are 0 if the other factor is below 2^100, in bf16 less than the least normal number
beside others of the sum. Guarantees: nothing else changes. Purpose: where an instruction gives powers without
denormals, keeping them takes three more.
"""

from __future__ import annotations

from mltriton.analysis.workload import only_multiplied
from mltriton.dialects import arith, math, tt
from mltriton.ir.constants import Number, splat_of
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import TensorType, bit_width, element_type, shape_of

NARROW = 16  # bits of what is rounded
MAXIMA = (arith.MaximumF, arith.MaxNumF)
Scaled = tuple[Value, tuple[Value | Number, ...]]  # a value and the numbers by which it is multiplied


class FlushPowers(Pass):
    """Let powers below the least normal number be 0 where they do not matter."""

    name = "flush-powers"

    def run(self, module: Module) -> Module:
        for op in module.walk():
            if isinstance(op, math.Exp | math.Exp2):
                op.flushes = _is_at_most_one(op.source) or (isinstance(op, math.Exp2) and _is_narrowed(op.result))
        return module


def _is_narrowed(power: Value) -> bool:
    """Whether a block only goes into dots rounded to 16 bits, as it is or as a factor or one of two choices."""
    return isinstance(power.type, TensorType) and bool(power.users) and all(map(_narrows, power.users))


def _narrows(user: Operation) -> bool:
    if isinstance(user, arith.TruncF):
        return bit_width(element_type(user.result.type)) == NARROW and only_multiplied(user.result)
    return isinstance(user, arith.MulF | arith.Select) and _is_narrowed(user.results[0])


def _is_at_most_one(exponent: Value) -> bool:
    """Whether a row's largest element, or more, was subtracted, or the larger one of that and the value itself."""
    op = exponent.defining_op
    if not isinstance(op, arith.SubF):
        return False
    return _scaled(op.lhs) in _largest(op.rhs) or _is_grown(op.rhs, op.lhs)


def _is_grown(value: Value, before: Value) -> bool:
    """Whether a value is the larger one of `before` and the largest elements of rows."""
    op, rank = value.defining_op, len(shape_of(value.type))
    compares = isinstance(op, MAXIMA) and before in op.operands
    return compares and any(_largest(value, axis) for axis in range(rank + 1))


def _largest(value: Value, axis: int | None = None) -> set[Scaled]:
    """The blocks of whose rows, along `axis` where that is gone, a value is no less than the largest elements."""
    op, found = value.defining_op, set[Scaled]()
    if isinstance(op, tt.ExpandDims | tt.Splat):
        return _largest(op.source, op.axis if isinstance(op, tt.ExpandDims) else 0)
    if isinstance(op, tt.Broadcast):
        return _largest(op.source, axis)
    if isinstance(op, MAXIMA):
        return _largest(op.lhs, axis) | _largest(op.rhs, axis)
    if isinstance(op, arith.MulF):
        for factor, of in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            number = _number(factor)
            found |= {(block, (*by, number)) for block, by in _largest(of, axis)} if number is not None else set()
    elif isinstance(op, tt.Reduce) and op.axis == axis and op.combiner in MAXIMA:
        found.add(_scaled(op.sources[0]))
    return found


def _scaled(value: Value) -> Scaled:
    op = value.defining_op
    if isinstance(op, arith.MulF):
        for factor, of in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            number = _number(factor)
            if number is not None:
                block, by = _scaled(of)
                return block, (*by, number)
    return value, ()


def _number(factor: Value) -> Value | Number | None:
    """The number that is everywhere in a block."""
    op = factor.defining_op
    if isinstance(op, tt.Splat):
        return op.source
    return splat_of(factor)
