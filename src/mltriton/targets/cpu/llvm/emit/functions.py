"""Functions of floats as the CPU computes them (`targets/llvm/math.py`), and rounding without an instruction.

Level: intrinsic -> llvm. Guarantees: floats narrower than 32 bits are widened to f32 and the result is rounded once.
"""

from __future__ import annotations

from typing import Any

from mltriton.dialects import arith, math
from mltriton.targets.cpu.features import CpuFeatures
from mltriton.targets.cpu.llvm.emit.context import Emitter, Rule, Rules
from mltriton.targets.llvm.emit.floats import wide
from mltriton.targets.llvm.types import Value, constant
from mltriton.targets.llvm.writer import Function

VECTOR = 8  # lanes for which AVX-512 has instructions that scale by powers of two
POWERS = ("exp", "exp2", "flushed exp2", "short exp2")
SHORT = 11  # bits up to which a power is short


def transcendental(name: str) -> Rule:
    """A function of `targets/llvm/math.py`; powers of few numbers as those of a vector, where that is shorter."""

    def rule(e: Emitter, op: arith.Unary) -> Value:
        from mltriton.targets.llvm.math import FUNCTIONS  # Few kernels need it.

        x = e.widen(e.get(op.source), op.source.type)
        is_short = name in POWERS and x.type.lanes < VECTOR and e.features.avx512
        y = FUNCTIONS[name](e.function, e.features, _repeated(e.function, x) if is_short else x)
        return e.narrow(_first(e.function, y, x.type.lanes) if is_short else y, op.results[0].type)

    return rule


def _repeated(f: Function, x: Value) -> Value:
    """A vector of a number or a few, again and again."""
    if not x.type.is_vector:
        return f.splat(x, VECTOR)
    return f.shuffle(x, x, [lane % x.type.lanes for lane in range(VECTOR)])


def _first(f: Function, x: Value, lanes: int) -> Value:
    """The first lanes."""
    return f.shuffle(x, x, range(lanes)) if lanes > 1 else f.extract(x, 0)


_KEPT, _FLUSHED, _SHORT = map(transcendental, ("exp2", "flushed exp2", "short exp2"))


def _power_of_two(e: Emitter, op: math.Exp2) -> Any:
    if not op.flushes:
        return _KEPT(e, op)
    return (_SHORT if 0 < op.bits <= SHORT else _FLUSHED)(e, op)


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
    math.Exp2: _power_of_two,
    math.Rsqrt: wide(_rsqrt),
    math.Floor: rounding("floor"),
    math.Ceil: rounding("ceil"),
}
