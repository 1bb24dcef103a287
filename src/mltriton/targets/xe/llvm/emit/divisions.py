"""Signed division by constant powers of two: shifts and masks, of which Intel's compiler makes no branch.

Level: intrinsic -> llvm. Guarantees: quotients are rounded to zero and remainders have their dividend's sign for every
dividend, the least integer included. Other divisors keep the rules of all targets, where LLVM chooses instructions.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.dialects import arith
from mltriton.targets.llvm.emit import arith as integer_rules
from mltriton.targets.llvm.types import Value, constant
from mltriton.targets.llvm.writer import Function
from mltriton.targets.simt.context import Emitter, Rule, Rules


def _exponent(divisor: Value) -> int | None:
    """n where the divisor is 2**n in every lane and n > 0."""
    number = divisor.literal
    if not isinstance(number, int) or number < 2 or number >> divisor.type.bits - 1 or number & number - 1:
        return None
    return number.bit_length() - 1


def _rounded_up(f: Function, dividend: Value, exponent: int) -> Value:
    """The dividend, and 2**exponent - 1 more where it is negative: what shifts and masks then round to zero."""
    bits = dividend.type.bits
    return f.add(dividend, f.lshr(f.ashr(dividend, bits - 1), bits - exponent))


def _quotient(f: Function, dividend: Value, exponent: int) -> Value:
    return f.ashr(_rounded_up(f, dividend, exponent), exponent)


def _remainder(f: Function, dividend: Value, exponent: int) -> Value:
    multiple = f.and_(_rounded_up(f, dividend, exponent), constant(dividend.type, -(1 << exponent)))
    return f.sub(dividend, multiple)


def _by_power(compute: Callable[[Function, Value, int], Value], otherwise: Rule) -> Rule:
    def rule(e: Emitter, op: arith.IntegerBinary) -> Value | None:
        exponent = _exponent(e.get(op.rhs))
        return otherwise(e, op) if exponent is None else compute(e.function, e.get(op.lhs), exponent)

    return rule


RULES: Rules = {
    arith.DivSI: _by_power(_quotient, integer_rules.RULES[arith.DivSI]),
    arith.RemSI: _by_power(_remainder, integer_rules.RULES[arith.RemSI]),
}
