"""AVX-512's instructions for what takes several otherwise: extrema that pick numbers, rounding to bf16.

Level: intrinsic -> llvm. Takes the general rules of these operations and gives rules that use them wherever a value's
type has no such instruction, or its numbers could differ. Guarantees: the same results (of zeros of both signs an
extremum may be either). VCVTNEPS2BF16 makes zero of denormals, so it rounds only what surely is none.
"""

from __future__ import annotations

from typing import Any

from mltriton.dialects import arith, math
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import BF16, F32, element_type
from mltriton.targets.cpu.llvm.emit.context import Emitter, Rule, Rules
from mltriton.targets.llvm.emit import casts, floats
from mltriton.targets.llvm.types import I32, Value, constant, poison, vector
from mltriton.targets.llvm.writer import Function

# VRANGE: suffix of the intrinsic, type of its mask, rounding mode if it takes one.
_RANGE = {
    ("float", 4): ("ps.128", "i8", 0),
    ("float", 8): ("ps.256", "i8", 0),
    ("float", 16): ("ps.512", "i16", 4),
    ("double", 2): ("pd.128", "i8", 0),
    ("double", 4): ("pd.256", "i8", 0),
    ("double", 8): ("pd.512", "i8", 4),
}
_LEAST_LANES = {"float": 4, "double": 2}
_COMPARED_SIGN = 4  # the sign is that of what was chosen
_ROUNDED = {8: "256", 16: "512"}  # lanes of VCVTNEPS2BF16


def _extremum(kind: type[arith.Binary], which: int) -> Rule:
    """The larger (1) or smaller (0) number, or the other operand where one is none."""
    general: Any = floats.RULES[kind]

    def rule(e: Emitter, op: arith.Binary) -> Value:
        a, b = e.get(op.lhs), e.get(op.rhs)
        lanes = max(a.type.lanes, _LEAST_LANES.get(a.type.element, 0))
        form = _RANGE.get((a.type.element, lanes))
        if form is None or not e.features.avx512 or floats.never_nan(op.lhs) or floats.never_nan(op.rhs):
            return general(e, op)
        padded = [_padded(e.function, x, lanes) for x in (a, b)]
        return _first(e.function, _range(e.function, which, padded[0], padded[1], form), a)

    return rule


def _range(f: Function, which: int, a: Value, b: Value, form: tuple[str, str, int]) -> Value:
    suffix, mask, rounding = form
    extra = [constant(I32, rounding)] if rounding else []
    every, chosen = constant(vector(mask, 1), -1), constant(I32, which | _COMPARED_SIGN)
    return f.pure_call(f"llvm.x86.avx512.mask.range.{suffix}", a.type, a, b, chosen, a, every, *extra)


def _padded(f: Function, x: Value, lanes: int) -> Value:
    """At least so many lanes, the new ones undefined."""
    if x.type.lanes == lanes:
        return x
    if not x.type.is_vector:
        return f.insert(poison(x.type.with_lanes(lanes)), x, 0)
    return f.shuffle(x, x, [*range(x.type.lanes), *[-1] * (lanes - x.type.lanes)])


def _first(f: Function, x: Value, like: Value) -> Value:
    """As many of the first lanes as a value has."""
    if x.type == like.type:
        return x
    return f.shuffle(x, x, range(like.type.lanes)) if like.type.is_vector else f.extract(x, 0)


def _truncate(e: Emitter, op: arith.TruncF) -> Value:
    general: Any = casts.RULES[arith.TruncF]
    x = e.get(op.source)
    width = _ROUNDED.get(x.type.lanes)
    is_rounding = element_type(op.results[0].type) is BF16 and element_type(op.source.type) is F32
    if width is None or not is_rounding or not e.features.bf16_dot or not never_denormal(op.source):
        return general(e, op)
    name, type_ = f"llvm.x86.avx512bf16.cvtneps2bf16.{width}", x.type.with_element("bfloat")
    return e.function.bitcast(e.function.pure_call(name, type_, x), x.type.with_element("i16"))


def never_denormal(value: IRValue) -> bool:
    """Whether a value is known to be no denormal: powers of two that are none, and choices of them."""
    op = value.defining_op
    if isinstance(op, arith.Select):
        return never_denormal(op.true_value) and never_denormal(op.false_value)
    return (isinstance(op, math.Exp2) and op.flushes) or splat_of(value) == 0


RULES: Rules = {
    arith.MaxNumF: _extremum(arith.MaxNumF, 1),
    arith.MinNumF: _extremum(arith.MinNumF, 0),
    arith.TruncF: _truncate,
}
