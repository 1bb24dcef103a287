"""Element-wise operations of a SIMD kernel: rules that see one vector of each block.

Level: intrinsic -> llvm. Almost all are those of a lane's program. What differs: sums and products of 16 elements keep
what is known of addresses, pointers are integers, and functions of which the vector compiler makes much code are
polynomials (`targets/llvm/math.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.dialects import arith, math, tt
from mltriton.ir.types import element_type
from mltriton.targets.llvm.emit import floats
from mltriton.targets.llvm.emit.arith import memory_type
from mltriton.targets.llvm.math import rounded
from mltriton.targets.llvm.types import I32, Value, constant
from mltriton.targets.llvm.writer import Function
from mltriton.targets.simt.context import Emitter, Rule, Rules
from mltriton.targets.simt.elements import inline
from mltriton.targets.xe.llvm.emit import elements
from mltriton.targets.xe.llvm.emit.elements import function
from mltriton.targets.xe.llvm.simd.circular import sine_of
from mltriton.targets.xe.llvm.simd.intrinsics import LANES, high_product


def _kept(name: str) -> Rule:
    """A sum or product whose constant part stays apart."""

    def rule(e: Emitter, op: arith.Binary) -> Value:
        lhs, rhs = e.get(op.lhs), e.get(op.rhs)
        if lhs.type.lanes > LANES:
            return e.function.binary(name, lhs, rhs)
        return getattr(e.affine, name)(lhs, rhs)

    return rule


def _sign_extension(e: Emitter, op: arith.ExtSI) -> Value:
    value, to = e.get(op.source), e.result_type(op)
    if value.type.bits == 1 or value.type.lanes > LANES:
        return e.function.cast("sext", value, to)
    return e.affine.widen(value, to)


def _add_pointer(e: Emitter, op: tt.AddPtr) -> Value:
    return e.affine.address(e.get(op.ptr), e.get(op.offset), memory_type(element_type(op.ptr.type)))


def _integer(e: Emitter, op: arith.Cast) -> Value:
    """Between pointers and integers: pointers are integers of 64 bits."""
    value, to = e.get(op.source), e.result_type(op)
    return e.function.cast("trunc" if to.bits < value.type.bits else "zext", value, to)


def _high_product(e: Emitter, op: tt.MulhiUI) -> Value:
    """OpenCL's function takes one element after the other."""
    lhs, rhs = e.get(op.lhs), e.get(op.rhs)
    return high_product(e.function, lhs, rhs) if lhs.type.bits == I32.bits else elements.high_product(e, op)


# log2(e) in two parts, ln(2), and up to where the exponential is a finite f32.
_LOG2_E, _LOG2_E_REST, _LN_2, _LARGEST = 1.4426950216293335, 1.9259629911266175e-08, 0.6931471805599453, 88.7


def _exponential(f: Function, x: Value) -> Value:
    """exp2 of the product with log2(e), and what the product was rounded by: OpenCL's own is 800 instructions here."""
    if x.type.element != "float":
        return inline("exp")(f, x)
    factor, rest = constant(x.type, _LOG2_E), constant(x.type, _LOG2_E_REST)
    product = f.fmul(x, factor)
    lost = function(f, "fma", x, rest, function(f, "fma", x, factor, f.fneg(product)))
    power = function(f, "native_exp2", product)
    exact = function(f, "fma", f.fmul(lost, constant(x.type, _LN_2)), power, power)
    inside = f.fcmp("ole", function(f, "fabs", x), constant(x.type, _LARGEST))
    return f.select(inside, exact, power)


def _power_of_two(f: Function, x: Value) -> Value:
    return function(f, "native_exp2", x) if x.type.element == "float" else inline("exp2")(f, x)


def _root(f: Function, x: Value) -> Value:
    """By the instruction, as in a lane's program; `tt.precise_sqrt` is rounded."""
    return function(f, "native_sqrt" if x.type.element == "float" else "sqrt", x)


def _rounding(stem: str) -> Callable[[Function, Value], Value]:
    """There is an instruction for f32 alone."""

    def compute(f: Function, x: Value) -> Value:
        return function(f, stem, x) if x.type.element == "float" else rounded(f, stem, x)

    return compute


_INLINE = {math.Log: "log", math.Log2: "log2"}
RULES: Rules = {
    **elements.RULES,
    math.Exp: floats.wide(_exponential),
    math.Exp2: floats.wide(_power_of_two),
    **{kind: floats.wide(inline(name)) for kind, name in _INLINE.items()},
    math.Sqrt: floats.wide(_root),
    math.Sin: floats.wide(sine_of(0)),
    math.Cos: floats.wide(sine_of(1)),
    math.Floor: floats.wide(_rounding("floor")),
    math.Ceil: floats.wide(_rounding("ceil")),
    arith.AddI: _kept("add"),
    arith.SubI: _kept("sub"),
    arith.MulI: _kept("mul"),
    arith.ExtSI: _sign_extension,
    tt.MulhiUI: _high_product,
    tt.AddPtr: _add_pointer,
    tt.IntToPtr: _integer,
    tt.PtrToInt: _integer,
}
