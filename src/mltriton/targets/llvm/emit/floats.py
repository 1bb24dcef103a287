"""Float arithmetic of `arith`, `math` and `tt`: on f32 and f64 directly, on narrower floats widened to f32 and
narrowed.

Level: intrinsic -> llvm. Guarantees: every operation rounds once to its type (f32 has more than twice the bits of the
narrower types, so rounding the f32 result again is exact for + - * / and sqrt); no operation is reassociated or fused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mltriton.dialects import arith, math, tt
from mltriton.dialects.scf_flow import handed_from
from mltriton.ir.attributes import DenseAttr, FloatAttr
from mltriton.ir.operation import Operation
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import FloatType, Type, element_type
from mltriton.targets.llvm.emit.context import Emitter, Rule, Rules
from mltriton.targets.llvm.types import Value, constant
from mltriton.targets.llvm.writer import Function

Compute = Callable[..., Value]


def wide(compute: Compute) -> Rule:
    """An operation computed in f32 or f64: `compute(function, *operands)`."""

    def rule(e: Emitter, op: Operation) -> Value:
        operands = [e.widen(e.get(operand), operand.type) for operand in op.operands]
        return e.narrow(compute(e.function, *operands), op.results[0].type)

    return rule


def by_name(op: str) -> Rule:
    """An operation that LLVM has under the name `op`."""

    def compute(f: Function, a: Value, b: Value) -> Value:
        return f.binary(op, a, b)

    return wide(compute)


def intrinsic(stem: str) -> Rule:
    """An operation that LLVM has as an intrinsic on vectors."""

    def compute(f: Function, *operands: Value) -> Value:
        return f.intrinsic(stem, operands[0].type, *operands)

    return wide(compute)


def _compare(e: Emitter, op: arith.CmpF) -> Value:
    lhs, rhs = (e.widen(e.get(operand), operand.type) for operand in (op.lhs, op.rhs))
    return e.function.fcmp(op.predicate, lhs, rhs)


def extremum(predicate: str, propagate: bool) -> Rule:
    """Maximum ("ogt") or minimum ("olt"): NaN if an operand is NaN, or the other operand if one is.

    x86's one instruction for `a > b ? a : b` gives b when either is NaN, which is right for an operand that never is.
    """

    def rule(e: Emitter, op: arith.Binary) -> Value:
        values = [op.lhs, op.rhs]
        if (never_nan(op.lhs) and not propagate) or (never_nan(op.rhs) and propagate):
            values.reverse()
        f, type = e.function, op.results[0].type
        a, b = (e.widen(e.get(value), value.type) for value in values)
        x, y = map(e.get, values) if chooses_bits(type) else (a, b)
        better = f.select(f.fcmp(predicate, a, b), x, y)
        if not never_nan(values[0 if propagate else 1]):
            doubtful = a if propagate else b
            better = f.select(f.fcmp("uno", doubtful, doubtful), x, better)
        return better if chooses_bits(type) else e.narrow(better, type)

    return rule


def chooses_bits(type: Type) -> bool:
    """Whether a choice of operands is one of their bits: rounding to fp8 would make infinity the largest number."""
    element = element_type(type)
    return isinstance(element, FloatType) and element.width == 8


def never_nan(value: IRValue, assumed: frozenset[IRValue] = frozenset()) -> bool:
    """Whether a value is known not to be NaN: constants, extrema that pick numbers, what control flow hands on."""
    if value in assumed:
        return True
    if handed := handed_from(value):
        return all(never_nan(each, assumed | {value}) for each in handed)
    op = value.defining_op
    if isinstance(op, arith.Constant):
        return isinstance(op.value, FloatAttr | DenseAttr) and not _has_nan(op.value)
    if isinstance(op, arith.MaxNumF | arith.MinNumF):
        return any(never_nan(operand, assumed) for operand in op.operands)
    if isinstance(op, tt.Splat):
        return never_nan(op.source, assumed)
    if isinstance(op, tt.Reduce) and len(op.sources) == 1:
        combine = op.combine.block.ops
        picks_numbers = len(combine) == 2 and isinstance(combine[0], arith.MaxNumF | arith.MinNumF)
        return picks_numbers and never_nan(op.sources[0], assumed)
    return False


def _has_nan(attribute: FloatAttr | DenseAttr) -> bool:
    numbers = attribute.values if isinstance(attribute, DenseAttr) else (attribute.value,)
    return any(number != number for number in numbers)


def _clamp(e: Emitter, op: tt.ClampF) -> Value:
    f = e.function
    x, low, high = (e.widen(e.get(operand), operand.type) for operand in op.operands)
    below = f.fcmp("olt" if op.propagate_nan else "ult", x, low)
    above = f.fcmp("ogt", f.select(below, low, x), high)
    if chooses_bits(op.results[0].type):
        x, low, high = map(e.get, op.operands)
    made = f.select(above, high, f.select(below, low, x))
    return made if chooses_bits(op.results[0].type) else e.narrow(made, op.results[0].type)


def _absolute_integer(e: Emitter, op: math.AbsI) -> Value:
    x = e.get(op.source)
    return e.function.intrinsic("llvm.abs", x.type, x, constant(x.type.scalar.with_element("i1"), 0))


def _bits_only(op: str) -> Callable[[Emitter, Any], Value]:
    """A sign operation on the bits of a narrow float; on f32 and f64 LLVM's own."""

    def rule(e: Emitter, o: arith.Unary) -> Value:
        x, f = e.get(o.source), e.function
        if x.type.is_float:
            return f.fneg(x) if op == "neg" else f.intrinsic("llvm.fabs", x.type, x)
        sign = 1 << (x.type.bits - 1)
        return f.xor(x, sign) if op == "neg" else f.and_(x, sign - 1)

    return rule


RULES: Rules = {
    arith.AddF: by_name("fadd"),
    arith.SubF: by_name("fsub"),
    arith.MulF: by_name("fmul"),
    arith.DivF: by_name("fdiv"),
    arith.RemF: by_name("frem"),
    arith.MaximumF: extremum("ogt", propagate=True),
    arith.MinimumF: extremum("olt", propagate=True),
    arith.MaxNumF: extremum("ogt", propagate=False),
    arith.MinNumF: extremum("olt", propagate=False),
    arith.NegF: _bits_only("neg"),
    arith.CmpF: _compare,
    math.Sqrt: intrinsic("llvm.sqrt"),
    math.AbsF: _bits_only("abs"),
    math.AbsI: _absolute_integer,
    math.Fma: intrinsic("llvm.fma"),
    tt.PreciseSqrt: intrinsic("llvm.sqrt"),
    tt.PreciseDivF: by_name("fdiv"),
    tt.ClampF: _clamp,
}
