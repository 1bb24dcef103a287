"""Conversions between integers, floats and pointers.

Level: intrinsic -> llvm. Guarantees: conversions to a narrower float round once, whatever they come from (i64 to a
float of 8 or 16 bits goes through f64, rounded to odd); float to integer out of range is unspecified.
"""

from __future__ import annotations

from mltriton.dialects import arith, tt
from mltriton.dialects.arith_folding import MAX_EXACT
from mltriton.ir.types import F32, F64, element_type
from mltriton.targets.llvm.emit.context import Emitter, Rule, Rules
from mltriton.targets.llvm.types import Type, Value, constant


def result_like(e: Emitter, op: arith.Cast, value: Value) -> Type:
    """The LLVM type of the result, with the lanes of `value`."""
    return e.result_type(op).with_lanes(value.type.lanes)


def integer_cast(name: str) -> Rule:
    """Between integer types."""

    def rule(e: Emitter, op: arith.Cast) -> Value:
        value = e.get(op.source)
        return e.function.cast(name, value, result_like(e, op, value))

    return rule


def _float_cast(e: Emitter, op: arith.Cast) -> Value:
    return e.narrow(e.widen(e.get(op.source), op.source.type), op.results[0].type)


def _chosen_rounding(e: Emitter, op: tt.FpToFp) -> Value:
    wide = e.widen(e.get(op.source), op.source.type)
    return e.narrow(wide, op.result.type, toward_zero=op.rounding == "rtz")


def from_integer(name: str) -> Rule:
    """Integer to float: narrow floats through f32 or, where f32 would round already, f64."""

    def rule(e: Emitter, op: arith.Cast) -> Value:
        value, target = e.get(op.source), element_type(op.results[0].type)
        is_direct = target is F32 or target is F64
        if value.type.bits == 64 and not is_direct:
            value = _exact_in_f64(e, value, signed=name == "sitofp")
        through = result_like(e, op, value).element if is_direct else ("float" if value.type.bits <= 16 else "double")
        return e.narrow(e.function.cast(name, value, value.type.with_element(through)), target)

    return rule


def _exact_in_f64(e: Emitter, value: Value, *, signed: bool) -> Value:
    """An i64 that f64 holds, and that a float of at most 41 bits of precision cannot tell from `value`: of numbers that
    f64 might round, the last 12 bits become their middle unless all are 0.
    """
    f = e.function
    none, middle = constant(value.type, 0), constant(value.type, 0x800)
    rest = f.select(f.icmp("eq", f.and_(value, 0xFFF), 0), none, middle)
    odd = f.or_(f.and_(value, -0x1000), rest)
    shifted = f.add(value, MAX_EXACT) if signed else value
    return f.select(f.icmp("ule", shifted, 2 * MAX_EXACT if signed else MAX_EXACT), value, odd)


def to_integer(name: str) -> Rule:
    """Float to integer, rounding to zero; integers of less than 32 bits through i32."""

    def rule(e: Emitter, op: arith.Cast) -> Value:
        value = e.widen(e.get(op.source), op.source.type)
        target = result_like(e, op, value)
        if target.bits >= 32:
            return e.function.cast(name, value, target)
        whole = e.function.cast("fptosi", value, target.with_element("i32"))
        return e.function.cast("trunc", whole, target)

    return rule


def _index_cast(e: Emitter, op: arith.Cast) -> Value:
    value = e.get(op.source)
    target = result_like(e, op, value)
    return e.function.cast("trunc" if target.bits < value.type.bits else "sext", value, target)


def _bitcast(e: Emitter, op: arith.Cast) -> Value:
    """The same bits; between a pointer and a pointer nothing, between i1 and a byte a widening of the bit."""
    value = e.get(op.source)
    target = result_like(e, op, value)
    if "ptr" in (value.type.element, target.element) and value.type != target:
        return e.function.cast("ptrtoint" if target.element != "ptr" else "inttoptr", value, target)
    if 1 in (value.type.bits, target.bits) and value.type.bits != target.bits:
        return e.function.cast("trunc" if target.bits == 1 else "zext", value, target)
    return e.function.bitcast(value, target)


RULES: Rules = {
    arith.ExtSI: integer_cast("sext"),
    arith.ExtUI: integer_cast("zext"),
    arith.TruncI: integer_cast("trunc"),
    arith.ExtF: _float_cast,
    arith.TruncF: _float_cast,
    arith.SIToFP: from_integer("sitofp"),
    arith.UIToFP: from_integer("uitofp"),
    arith.FPToSI: to_integer("fptosi"),
    arith.FPToUI: to_integer("fptoui"),
    arith.Bitcast: _bitcast,
    arith.IndexCast: _index_cast,
    tt.Bitcast: _bitcast,
    tt.FpToFp: _chosen_rounding,
    tt.IntToPtr: integer_cast("inttoptr"),
    tt.PtrToInt: integer_cast("ptrtoint"),
}
