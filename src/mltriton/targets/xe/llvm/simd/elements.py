"""Element-wise operations of a warp's vector program: rules that see one vector of each block.

Level: intrinsic -> llvm. Almost all are those of a lane's program. What differs: sums and products of 16 elements keep
what is known of addresses, and pointers are integers.
"""

from __future__ import annotations

from mltriton.dialects import arith, math, tt
from mltriton.ir.types import element_type
from mltriton.targets.llvm.emit.arith import memory_type
from mltriton.targets.llvm.types import Value
from mltriton.targets.xe.llvm.emit import elements
from mltriton.targets.xe.llvm.emit.context import Emitter, Rule, Rules
from mltriton.targets.xe.llvm.simd.intrinsics import LANES


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


RULES: Rules = {
    **elements.RULES,
    arith.AddI: _kept("add"),
    arith.SubI: _kept("sub"),
    arith.MulI: _kept("mul"),
    arith.ExtSI: _sign_extension,
    tt.AddPtr: _add_pointer,
    tt.IntToPtr: _integer,
    tt.PtrToInt: _integer,
    math.Erf: elements.opencl("erf"),
}
