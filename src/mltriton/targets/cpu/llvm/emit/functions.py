"""Functions of floats as the CPU computes them: `llvm/math.py`, and rounding where there is no instruction for it.

Level: intrinsic -> llvm. Guarantees: floats narrower than 32 bits are widened to f32 and the result is rounded once.
"""

from __future__ import annotations

from mltriton.dialects import arith, math
from mltriton.targets.cpu.features import CpuFeatures
from mltriton.targets.cpu.llvm.emit.context import Emitter, Rule, Rules
from mltriton.targets.cpu.llvm.math import FUNCTIONS
from mltriton.targets.llvm.emit.floats import wide
from mltriton.targets.llvm.types import Value, constant
from mltriton.targets.llvm.writer import Function


def transcendental(name: str) -> Rule:
    """A function of `llvm/math.py`."""

    def rule(e: Emitter, op: arith.Unary) -> Value:
        x = e.widen(e.get(op.source), op.source.type)
        return e.narrow(FUNCTIONS[name](e.function, e.features, x), op.results[0].type)

    return rule


def _rsqrt(f: Function, x: Value) -> Value:
    return f.fdiv(constant(x.type, 1.0), f.intrinsic("llvm.sqrt", x.type, x))


def rounding(stem: str) -> Rule:
    """Floor or ceil; SSE2 has no instruction for it, so there it is made of truncations."""

    def rule(e: Emitter, op: arith.Unary) -> Value:
        x = e.widen(e.get(op.source), op.source.type)
        emit = _rounded_by_truncation if _lacks_rounding(e.features) else _rounded
        return e.narrow(emit(e.function, stem, x), op.results[0].type)

    return rule


def _lacks_rounding(features: CpuFeatures) -> bool:
    return features.is_x86 and features.vector_bits == 128


def _rounded(f: Function, stem: str, x: Value) -> Value:
    return f.intrinsic(f"llvm.{stem}", x.type, x)


def _rounded_by_truncation(f: Function, stem: str, x: Value) -> Value:
    """Adding and taking away 2**mantissa rounds to nearest; one more step where that went the wrong way."""
    magnitude = f.intrinsic("llvm.fabs", x.type, x)
    limit = constant(x.type, 2.0**23 if x.type.bits == 32 else 2.0**52)
    nearest = f.intrinsic("llvm.copysign", x.type, f.fsub(f.fadd(magnitude, limit), limit), x)
    one, zero = constant(x.type, 1.0), constant(x.type, 0.0)
    too_far = f.fcmp("ogt" if stem == "floor" else "olt", nearest, x)
    step = f.select(too_far, one, zero)
    moved = f.fsub(nearest, step) if stem == "floor" else f.fadd(nearest, step)
    whole = f.intrinsic("llvm.copysign", x.type, moved, x)
    return f.select(f.fcmp("olt", magnitude, limit), whole, x)


RULES: Rules = {
    math.Exp: transcendental("exp"),
    math.Exp2: transcendental("exp2"),
    math.Log: transcendental("log"),
    math.Log2: transcendental("log2"),
    math.Sin: transcendental("sin"),
    math.Cos: transcendental("cos"),
    math.Tanh: transcendental("tanh"),
    math.Erf: transcendental("erf"),
    math.Rsqrt: wide(_rsqrt),
    math.Floor: rounding("floor"),
    math.Ceil: rounding("ceil"),
}
