"""Element-wise operations: rules that see one LLVM value of each block.

Level: intrinsic -> llvm. Integer arithmetic keeps what is known of addresses (`affine`); functions are polynomials
(`targets/llvm/math.py`) where a machine puts no rules of its own in their place, but for sin and cos, which call a
library for large angles. Everything else is as on other targets.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any

from mltriton.analysis.natural_numbers import is_natural
from mltriton.dialects import arith, math, tt
from mltriton.ir.operation import Operation
from mltriton.ir.types import element_type
from mltriton.targets.llvm.emit import arith as integer_rules
from mltriton.targets.llvm.emit import casts, floats
from mltriton.targets.llvm.math import FUNCTIONS
from mltriton.targets.llvm.types import Value, constant
from mltriton.targets.llvm.writer import Function
from mltriton.targets.simt.context import Emitter, Rule, Rules
from mltriton.targets.simt.features import Features


def _kept(name: str) -> Rule:
    """A sum or product whose constant part stays apart."""

    def rule(e: Emitter, op: arith.Binary) -> Value:
        lhs, rhs = e.get(op.lhs), e.get(op.rhs)
        if lhs.type.is_vector:
            return e.function.binary(name, lhs, rhs)
        return getattr(e.affine, name)(lhs, rhs)

    return rule


def _remainder(signed: bool) -> Rule:
    """A remainder of what is not negative goes on by ones within groups that do not reach the next multiple of the
    divisor, as axis analysis says: neighbours share one division.
    """

    def rule(e: Emitter, op: arith.Binary) -> Value:
        lhs, rhs = e.get(op.lhs), e.get(op.rhs)
        if lhs.type.is_vector:
            return integer_rules.remainder(e, lhs, rhs, signed)
        if (parts := _parts(e, lhs, rhs)) is not None:
            return parts[1]
        if signed and not is_natural(op.lhs):
            return integer_rules.remainder(e, lhs, rhs, signed)
        first = e.affine.floor(lhs, e.affine.divisor(rhs))
        rest = integer_rules.remainder(e, first, rhs, signed)
        e.affine.promise(rest, min(e.affine.divisor(first), e.affine.divisor(rhs)))
        above = e.affine.term(lhs).constant - e.affine.term(first).constant
        return e.affine.add(rest, constant(lhs.type, above))

    return rule


def _quotient(signed: bool) -> Rule:
    """Registers that differ by multiples of a power of two share one division by it."""

    def rule(e: Emitter, op: arith.Binary) -> Value:
        lhs, rhs = e.get(op.lhs), e.get(op.rhs)
        parts = _parts(e, lhs, rhs)
        return parts[0] if parts is not None else integer_rules.quotient(e, lhs, rhs, signed)

    return rule


def _parts(e: Emitter, lhs: Value, rhs: Value) -> tuple[Value, Value] | None:
    """Quotient and remainder where they follow from bits."""
    number = rhs.literal
    if lhs.type.is_vector or not isinstance(number, int) or number <= 0 or number & (number - 1):
        return None
    return e.affine.divided(lhs, number)


def _sign_extension(e: Emitter, op: arith.ExtSI) -> Value:
    value, to = e.get(op.source), e.result_type(op)
    return e.function.cast("sext", value, to) if to.is_vector else e.affine.widen(value, to)


def _dividing(rule: Rule) -> Rule:
    """A rule of what gives one of its last two operands, or the bits of one: what divides these divides the result."""

    def divided(e: Emitter, op: Operation) -> Value:
        made = rule(e, op)
        if not made.type.is_vector and made.type.element.startswith(("i", "ptr")):
            e.affine.promise(made, gcd(*(e.affine.divisor(e.get(value)) for value in op.operands[-2:])))
        return made

    return divided


def _add_pointer(e: Emitter, op: tt.AddPtr) -> Value:
    element = integer_rules.memory_type(element_type(op.ptr.type))
    return e.affine.address(e.get(op.ptr), e.get(op.offset), element)


_BELOW = frozenset(("slt", "ult", "sge", "uge"))  # comparisons of which the bound may be on the right


def _compare(e: Emitter, op: arith.CmpI) -> Value:
    """Neighbours that a bound cannot tell apart are compared once: their accesses have one mask."""
    lhs, rhs = e.get(op.lhs), e.get(op.rhs)
    if op.predicate in _BELOW:
        lhs = e.affine.floor(lhs, e.affine.divisor(rhs))
    elif op.predicate not in ("eq", "ne"):
        rhs = e.affine.floor(rhs, e.affine.divisor(lhs))
    return e.function.icmp(op.predicate, lhs, rhs)


def inline(name: str) -> Callable[[Function, Value], Value]:
    """A function as polynomials, without branches."""

    def compute(f: Function, x: Value) -> Value:
        return FUNCTIONS[name](f, Features(), x)

    return compute


def _extremum(kind: type[arith.Binary], name: str, propagate: bool) -> Rule:
    """fmax or fmin take the number where one operand is NaN; where NaN is to win it is put back."""
    by_comparison: Any = floats.RULES[kind]

    def rule(e: Emitter, op: arith.Binary) -> Value:
        if floats.chooses_bits(op.result.type):
            return by_comparison(e, op)
        f, machine = e.function, e.machine
        a, b = (e.widen(e.get(operand), operand.type) for operand in (op.lhs, op.rhs))
        number = machine.function(f, name, a, b)
        made = f.select(f.fcmp("uno", a, b), f.fadd(a, b), number) if propagate else number
        return e.narrow(made, op.result.type)

    return rule


def _rsqrt(f: Function, x: Value) -> Value:
    return f.fdiv(constant(x.type, 1.0), f.intrinsic("llvm.sqrt", x.type, x))


def _bitcast(e: Emitter, op: arith.Cast) -> Value:
    """The same bits; between a pointer and a pointer nothing, between i1 and a byte a widening of the bit."""
    f, value, target = e.function, e.get(op.source), e.result_type(op)
    pointers = [type_.element.startswith("ptr") for type_ in (value.type, target)]
    if any(pointers):
        return f.cast("bitcast" if all(pointers) else "ptrtoint" if pointers[0] else "inttoptr", value, target)
    if 1 in (value.type.bits, target.bits) and value.type.bits != target.bits:
        return f.cast("trunc" if target.bits == 1 else "zext", value, target)
    return f.bitcast(value, target)


def _splat(e: Emitter, op: tt.Splat) -> Value:
    return e.get(op.source)


_CASTS = (arith.TruncI, arith.ExtUI, arith.IndexCast, tt.IntToPtr, tt.PtrToInt)
_DIVIDING = (*_CASTS, arith.MinSI, arith.MaxSI, arith.MinUI, arith.MaxUI, arith.Select)

RULES: Rules = {
    kind: _dividing(rule) if kind in _DIVIDING else rule
    for kind, rule in {**integer_rules.RULES, **floats.RULES, **casts.RULES}.items()
    if kind not in (tt.MakeRange, tt.Unsplat)
} | {
    arith.AddI: _kept("add"),
    arith.SubI: _kept("sub"),
    arith.MulI: _kept("mul"),
    arith.DivSI: _quotient(signed=True),
    arith.DivUI: _quotient(signed=False),
    arith.RemSI: _remainder(signed=True),
    arith.RemUI: _remainder(signed=False),
    arith.ExtSI: _sign_extension,
    arith.CmpI: _compare,
    arith.Bitcast: _bitcast,
    arith.MaximumF: _extremum(arith.MaximumF, "fmax", propagate=True),
    arith.MinimumF: _extremum(arith.MinimumF, "fmin", propagate=True),
    arith.MaxNumF: _extremum(arith.MaxNumF, "fmax", propagate=False),
    arith.MinNumF: _extremum(arith.MinNumF, "fmin", propagate=False),
    **{kind: floats.wide(inline(name)) for kind, name in math.TRANSCENDENTAL.items()},
    math.Rsqrt: floats.wide(_rsqrt),
    math.Floor: floats.intrinsic("llvm.floor"),
    math.Ceil: floats.intrinsic("llvm.ceil"),
    tt.AddPtr: _add_pointer,
    tt.Bitcast: _bitcast,
    tt.Splat: _splat,
}
