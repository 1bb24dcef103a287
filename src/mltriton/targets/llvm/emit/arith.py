"""`arith` and the arithmetic of `tt`: integers, comparisons, constants, selects. Floats and casts: `floats`, `casts`.

Level: intrinsic -> llvm. Guarantees: division never traps (by zero, or the least integer by -1).
"""

from __future__ import annotations

from typing import Any, cast

from mltriton.dialects import arith, tt
from mltriton.errors import BackendError
from mltriton.ir.attributes import DenseAttr, FloatAttr, IntegerAttr
from mltriton.ir.floats import float_to_bits
from mltriton.ir.types import F32, F64, FloatType, TensorType, bit_width, element_type
from mltriton.targets.llvm.emit.context import Emitter, Rule, Rules
from mltriton.targets.llvm.types import Type, Value, constant, integers, listed, vector
from mltriton.targets.llvm.writer import Function


def binary(op: str) -> Rule:
    """An operation of two operands that LLVM has under the name `op`."""
    return lambda e, o: e.function.binary(op, e.get(o.lhs), e.get(o.rhs))


def intrinsic(stem: str) -> Rule:
    """An operation of two operands that LLVM has as an intrinsic."""

    def rule(e: Emitter, op: arith.Binary) -> Value:
        lhs = e.get(op.lhs)
        return e.function.intrinsic(stem, lhs.type, lhs, e.get(op.rhs))

    return rule


def emit_constant(e: Emitter, op: arith.Constant) -> Value:
    """A number in every lane, or one for each lane."""
    value, type_ = op.value, e.result_type(op)
    if not isinstance(value, DenseAttr):
        return constant(type_, number_of(value.value, value))
    numbers = [number_of(number, value) for number in value.values]
    return constant(type_, numbers[0]) if value.is_splat else listed(type_.scalar, numbers)


def number_of(number: int | float, attribute: IntegerAttr | FloatAttr | DenseAttr) -> int | float:
    """The number itself, or the bits of a float that is held as an integer."""
    element = element_type(attribute.type)
    if isinstance(element, FloatType) and element not in (F32, F64):
        return float_to_bits(float(number), element)
    return number


def _safe_divisor(f: Function, divisor: Value, signed: bool) -> tuple[Value, Value | None]:
    """A divisor that cannot trap, and (for signed division) where the true one is -1."""
    one = constant(divisor.type, 1)
    if divisor.literal is not None:
        is_minus_one = signed and divisor.literal == -1
        safe = one if divisor.literal == 0 or is_minus_one else divisor
        return safe, f.true(divisor.type.lanes) if is_minus_one else None
    safe = f.select(f.icmp("eq", divisor, 0), one, divisor)
    if not signed:
        return safe, None
    minus_one = f.icmp("eq", divisor, -1)
    return f.select(minus_one, one, safe), minus_one


def quotient(e: Emitter, lhs: Value, rhs: Value, signed: bool) -> Value:
    """lhs / rhs rounded to zero; unspecified where rhs is zero."""
    f = e.function
    divisor, minus_one = _safe_divisor(f, rhs, signed)
    through = {32: "double", 16: "float", 8: "float"}.get(lhs.type.bits)
    if lhs.type.is_vector and through is not None and divisor.literal is None:
        # No SIMD unit divides integers; the float quotient of integers this small, truncated, is exact.
        to_float, to_integer = ("sitofp", "fptosi") if signed else ("uitofp", "fptoui")
        wide = lhs.type.with_element(through)
        result = f.cast(to_integer, f.fdiv(f.cast(to_float, lhs, wide), f.cast(to_float, divisor, wide)), lhs.type)
    else:
        result = f.binary("sdiv" if signed else "udiv", lhs, divisor)
    return result if minus_one is None else f.select(minus_one, f.sub(constant(lhs.type, 0), lhs), result)


def _division(signed: bool) -> Rule:
    return lambda e, op: quotient(e, e.get(op.lhs), e.get(op.rhs), signed)


def remainder(e: Emitter, lhs: Value, rhs: Value, signed: bool) -> Value:
    """What a division rounded to zero leaves."""
    return e.function.sub(lhs, e.function.mul(quotient(e, lhs, rhs, signed), rhs))


def _remainder(signed: bool) -> Rule:
    return lambda e, op: remainder(e, e.get(op.lhs), e.get(op.rhs), signed)


def _rounded_division(up: bool) -> Rule:
    """Signed division rounding up or down: the truncated quotient, corrected where it went the wrong way."""

    def rule(e: Emitter, op: arith.Binary) -> Value:
        f, lhs, rhs = e.function, e.get(op.lhs), e.get(op.rhs)
        truncated = quotient(e, lhs, rhs, signed=True)
        inexact = f.icmp("ne", f.sub(lhs, f.mul(truncated, rhs)), 0)
        wrong_way = f.icmp("sge" if up else "slt", f.xor(lhs, rhs), 0)
        step = f.cast("zext", f.and_(inexact, wrong_way), lhs.type)
        return f.add(truncated, step) if up else f.sub(truncated, step)

    return rule


def _high_product(e: Emitter, op: tt.MulhiUI) -> Value:
    f, lhs, rhs = e.function, e.get(op.lhs), e.get(op.rhs)
    wide = lhs.type.with_element(f"i{2 * lhs.type.bits}")
    product = f.mul(f.cast("zext", lhs, wide), f.cast("zext", rhs, wide))
    return f.cast("trunc", f.lshr(product, lhs.type.bits), lhs.type)


def _compare(e: Emitter, op: arith.CmpI) -> Value:
    return e.function.icmp(op.predicate, e.get(op.lhs), e.get(op.rhs))


def _select(e: Emitter, op: arith.Select) -> Value:
    return e.function.select(e.get(op.condition), e.get(op.true_value), e.get(op.false_value))


def _make_range(e: Emitter, op: tt.MakeRange) -> Value:
    return integers(e.result_type(op).element, range(op.start, op.end))


def _splat(e: Emitter, op: tt.Splat) -> Value:
    return e.function.splat(e.get(op.source), cast(TensorType, op.result.type).size)


def same(e: Emitter, op: Any) -> Value:
    """An operation that changes the type only above LLVM."""
    return e.get(op.operands[0])


def _add_pointer(e: Emitter, op: tt.AddPtr) -> Value:
    """Pointer arithmetic; a splat pointer stays scalar, so that gathers have one base and an index vector."""
    pointer, offset = e.get(op.ptr), e.get(op.offset)
    splat = op.ptr.defining_op
    if isinstance(splat, tt.Splat) and offset.type.is_vector:
        pointer = e.get(splat.source)
    return e.function.gep(pointer, offset, memory_type(element_type(op.ptr.type)))


def memory_type(pointer: Any) -> Type:
    """The LLVM type with the size of what a pointer type points to (i1 takes a byte)."""
    if isinstance(pointer.pointee, TensorType):
        raise BackendError(f"{pointer} is a block pointer, which the intrinsic level does not have")
    return vector(f"i{bit_width(pointer.pointee)}", 1)


RULES: Rules = {
    arith.Constant: emit_constant,
    arith.AddI: binary("add"),
    arith.SubI: binary("sub"),
    arith.MulI: binary("mul"),
    arith.DivSI: _division(signed=True),
    arith.DivUI: _division(signed=False),
    arith.CeilDivSI: _rounded_division(up=True),
    arith.FloorDivSI: _rounded_division(up=False),
    arith.RemSI: _remainder(signed=True),
    arith.RemUI: _remainder(signed=False),
    arith.AndI: binary("and"),
    arith.OrI: binary("or"),
    arith.XOrI: binary("xor"),
    arith.ShLI: binary("shl"),
    arith.ShRSI: binary("ashr"),
    arith.ShRUI: binary("lshr"),
    arith.MaxSI: intrinsic("llvm.smax"),
    arith.MinSI: intrinsic("llvm.smin"),
    arith.MaxUI: intrinsic("llvm.umax"),
    arith.MinUI: intrinsic("llvm.umin"),
    arith.CmpI: _compare,
    arith.Select: _select,
    tt.MulhiUI: _high_product,
    tt.MakeRange: _make_range,
    tt.Splat: _splat,
    tt.Unsplat: same,
    tt.AddPtr: _add_pointer,
}
