"""Functions of floats as the CPU computes them (`targets/llvm/math.py`), and rounding without an instruction.

Level: intrinsic -> llvm. Guarantees: floats narrower than 32 bits are widened to f32 and the result is rounded once.
"""

from __future__ import annotations

from mltriton.dialects import arith, math
from mltriton.targets.cpu.features import CpuFeatures
from mltriton.targets.cpu.llvm.emit.context import Emitter, Rule, Rules
from mltriton.targets.llvm.emit.floats import wide
from mltriton.targets.llvm.types import Value, constant
from mltriton.targets.llvm.writer import Function


def transcendental(name: str) -> Rule:
    """A function of `targets/llvm/math.py`."""

    def rule(e: Emitter, op: arith.Unary) -> Value:
        from mltriton.targets.llvm.math import FUNCTIONS  # Few kernels need it.

        x = e.widen(e.get(op.source), op.source.type)
        return e.narrow(FUNCTIONS[name](e.function, e.features, x), op.results[0].type)

    return rule


def _rsqrt(f: Function, x: Value) -> Value:
    return f.fdiv(constant(x.type, 1.0), f.intrinsic("llvm.sqrt", x.type, x))


def rounding(stem: str) -> Rule:
    """Floor or ceil; SSE2 has no instruction for it, so there it is made of truncations."""

    def rule(e: Emitter, op: arith.Unary) -> Value:
        from mltriton.targets.llvm.math import rounded  # Few kernels need it.

        x = e.widen(e.get(op.source), op.source.type)
        emit = rounded if _lacks_rounding(e.features) else _rounded
        return e.narrow(emit(e.function, stem, x), op.results[0].type)

    return rule


def _lacks_rounding(features: CpuFeatures) -> bool:
    return features.is_x86 and features.vector_bits == 128


def _rounded(f: Function, stem: str, x: Value) -> Value:
    return f.intrinsic(f"llvm.{stem}", x.type, x)


RULES: Rules = {
    **{kind: transcendental(name) for kind, name in math.TRANSCENDENTAL.items()},
    math.Rsqrt: wide(_rsqrt),
    math.Floor: rounding("floor"),
    math.Ceil: rounding("ceil"),
}
