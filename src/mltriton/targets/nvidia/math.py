"""Functions of f32 and f64 on NVIDIA's GPUs: instructions where they are exact enough, else the polynomials of all
targets. No library of NVIDIA's takes part.

Level: `llvm`. Guarantees: exp2, rsqrt and `/` of f32 within 2 ulp (the instructions'), exp of f32 within 2 ulp, +, -,
*, `/` of f64, `div_rn`, sqrt, fma, floor and ceil exactly rounded, remainders exact, everything else as
`targets/llvm/math.py` says. Denormals are kept everywhere but in powers of which the program says that it needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mltriton.dialects import arith, math, tt
from mltriton.targets.llvm import large_angles
from mltriton.targets.llvm.emit import floats
from mltriton.targets.llvm.math import Vectors, circular, erf, reduced
from mltriton.targets.llvm.types import F32, I32, Type, Value, constant
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.nvidia.assembly import ptx
from mltriton.targets.simt import elements
from mltriton.targets.simt.context import Emitter, Rule, Rules
from mltriton.targets.simt.elements import inline
from mltriton.targets.simt.features import Features

Compute = Callable[[Function, Value], Value]


def by_width(single: Compute, double: Compute) -> Compute:
    """Another way for each width."""
    return lambda f, x: (single if x.type == F32 else double)(f, x)


def instruction(name: str) -> Compute:
    """An instruction of one operand."""
    return lambda f, x: ptx(f, f"{name} $0, $1;", [x.type], x, pure=True)[0]


POWER_OF_TWO = instruction("ex2.approx.f32")
_POWER_IN_RANGE = instruction("ex2.approx.ftz.f32")  # neither operand nor result is a denormal that matters
_LOG2_E = 1.4426950408889634
_LOG2_E_HIGH = 1.44269502162933349609375  # as f32
_STEPS = 252.0  # powers of two that a normal f32 can be


def exponential(f: Function, x: Value) -> Value:
    """2**n 2**r with x log2(e) = n + r and 0 <= r < 1; r is outside where 2**n would be no normal number."""

    def number(value: float) -> Value:
        return constant(F32, value)

    # n + 126 in steps of 1/252 between 0 and 1, so that saturation keeps it in its range.
    scaled = f.pure_call("llvm.nvvm.fma.rn.sat.f", F32, x, number(_LOG2_E / _STEPS), number(0.5))
    shifted = f.pure_call("llvm.nvvm.fma.rm.f", F32, scaled, number(_STEPS), number(2.0**23 * 1.5 + 1))
    n = f.fsub(shifted, number(2.0**23 * 1.5 + 127))
    rest = f.intrinsic("llvm.fma", F32, x, number(_LOG2_E_HIGH), f.fneg(n))
    rest = f.intrinsic("llvm.fma", F32, x, number(_LOG2_E - _LOG2_E_HIGH), rest)
    scale = f.bitcast(f.shl(f.bitcast(shifted, I32), 23), F32)
    return f.fmul(_POWER_IN_RANGE(f, rest), scale)


_LN_2 = 0.6931471805599453
_LN_2_HIGH = 0.693147182464599609375  # as f32
_LEAST = -104.0  # e to this power is less than half the least denormal


def exponential_of_negative(f: Function, x: Value) -> Value:
    """The same for x up to 0, without denormals: 2**t (1 + u), with t = x log2(e) as it is rounded and u the rest of x,
    of which e**u is no more.
    """

    def number(value: float) -> Value:
        return constant(F32, value)

    x = f.intrinsic("llvm.maximum", F32, x, number(_LEAST))  # -inf has no rest
    scaled = f.fmul(x, number(_LOG2_E))
    rest = f.intrinsic("llvm.fma", F32, scaled, number(-_LN_2_HIGH), x)
    rest = f.intrinsic("llvm.fma", F32, scaled, number(_LN_2_HIGH - _LN_2), rest)
    power = _POWER_IN_RANGE(f, scaled)
    return f.intrinsic("llvm.fma", F32, power, rest, power)


_KEPT, _FLUSHED = (floats.wide(by_width(of, inline("exp2"))) for of in (POWER_OF_TWO, _POWER_IN_RANGE))


_OF_ANY, _OF_NEGATIVE = (floats.wide(by_width(of, inline("exp"))) for of in (exponential, exponential_of_negative))


def power_of_two(e: Emitter, op: math.Exp2) -> Value | Sequence[Value] | None:
    """2**x, with denormals unless the program needs none."""
    return (_FLUSHED if op.flushes else _KEPT)(e, op)


def power_of_e(e: Emitter, op: math.Exp) -> Value | Sequence[Value] | None:
    """e**x; where the program says that x is no more than 0, and needs no denormals, by fewer instructions."""
    return (_OF_NEGATIVE if op.flushes else _OF_ANY)(e, op)


def quotient(f: Function, x: Value, y: Value) -> Value:
    """x / y; of f32 by a reciprocal, without the branches that correct rounding takes."""
    if x.type != F32 or (x.literal is not None and y.literal is not None):
        return f.fdiv(x, y)
    return ptx(f, "div.full.f32 $0, $1, $2;", [F32], x, y, pure=True)[0]


def high_product(f: Function, a: Value, b: Value) -> Value:
    """The high half of the product of integers of 32 or 64 bits without a sign."""
    return ptx(f, f"mul.hi.u{a.type.bits} $0, $1, $2;", [a.type], a, b, pure=True)[0]


_LARGEST = {"float": 1e5, "double": 1e6}  # from here on the first reduction is no longer exact


def sine_of(quarter: int) -> Compute:
    """sin(x + quarter pi/2), of large angles by a function of its own."""

    def compute(f: Function, x: Value) -> Value:
        v = Vectors(f, Features(), x.type)

        def near() -> list[Value]:
            return [circular(v, *reduced(v, x, "HALF_PI"), quarter)]

        def far() -> list[Value]:
            return [f.call(_of_large_angles(f.module, x.type, quarter), x.type, x)]

        is_small = f.fcmp("ole", v.absolute(x), v.number(_LARGEST[x.type.element]))
        (made,) = f.choose(is_small, near, far, "angle")
        return made if quarter else f.select(f.fcmp("oeq", x, v.number(0.0)), x, made)  # of -0, too

    return compute


def _of_large_angles(module: Module, type_: Type, quarter: int) -> str:
    """The name of the function for angles that are large."""
    name = f"{'cos' if quarter else 'sin'}.large.{type_.suffix}"
    if not module.defines(name):
        f = module.function(name, type_, [("x", type_)], extra="noinline ")
        v = Vectors(f, Features(), type_)
        f.ret(circular(v, *large_angles.reduced(v, f.parameters[0], high_product), quarter))
    return name


def error_function(f: Function, x: Value) -> Value:
    """The error function; of f32 with the instruction for powers of two."""

    def exp(v: Vectors, y: Value) -> Value:
        return POWER_OF_TWO(v.function, v.function.fmul(y, v.number(_LOG2_E)))

    return erf(Vectors(f, Features(), x.type), x, exp)


def _reciprocal_root(f: Function, x: Value) -> Value:
    return f.fdiv(constant(x.type, 1.0), f.intrinsic("llvm.sqrt", x.type, x))


def remainder(f: Function, x: Value, y: Value) -> Value:
    """x - y trunc(x / y), by a function of its own."""
    return f.call(_of_remainders(f.module, x.type), x.type, x, y)


def _of_remainders(module: Module, type_: Type) -> str:
    """The name of the function for remainders."""
    name = f"remainder.{type_.suffix}"
    if not module.defines(name):
        f = module.function(name, type_, [("x", type_), ("y", type_)], extra="noinline ")
        f.ret(_long_division(Vectors(f, Features(), type_), *f.parameters))
    return name


def _long_division(v: Vectors, x: Value, y: Value) -> Value:
    """x - y trunc(x / y), bit by bit of the quotient as FDLIBM has it: nothing is rounded."""
    f, fmt, bits = v.function, v.format, v.integer
    sign = f.and_(f.bitcast(x, bits), constant(bits, 1 << (v.type.bits - 1)))
    exponent, rest = _taken_apart(v, x)
    least, divisor = _taken_apart(v, y)
    with f.repeat([rest, exponent], "divide") as loop:
        rest, exponent = loop.carried
        loop.leave_unless(f.icmp("sgt", exponent, least))
        loop.yield_(f.shl(_less(f, rest, divisor), 1), f.sub(exponent, 1))
    rest = _less(f, rest, divisor)
    # rest * 2**(least - bias - mantissa) is exact: the rest has no more bits than the divisor.
    made = f.cast("uitofp", rest, v.type)
    half = f.ashr(f.sub(least, fmt.bias + fmt.mantissa), 1)
    for power in (half, f.sub(f.sub(least, fmt.bias + fmt.mantissa), half)):
        made = f.fmul(made, f.bitcast(f.shl(f.add(power, fmt.bias), fmt.mantissa), v.type))
    made = f.bitcast(f.or_(f.bitcast(made, bits), sign), v.type)
    smaller = f.fcmp("olt", v.absolute(x), v.absolute(y))
    defined = f.and_(f.fcmp("ord", f.fsub(x, x), y), f.fcmp("une", y, v.number(0.0)))
    return f.select(defined, f.select(smaller, x, made), v.number(float("nan")))


def _taken_apart(v: Vectors, x: Value) -> tuple[Value, Value]:
    """Exponent, with its bias, and significand of |x|; of denormals with the leading bit in its place."""
    f, fmt, bits = v.function, v.format, v.integer
    is_small = f.fcmp("olt", v.absolute(x), v.number(2.0 ** (1 - fmt.bias)))
    scaled = f.fmul(x, v.number(2.0 ** (fmt.mantissa + 1)))
    magnitude = f.bitcast(v.absolute(f.select(is_small, scaled, x)), bits)
    exponent = f.lshr(magnitude, fmt.mantissa)
    lowered = f.select(is_small, constant(bits, fmt.mantissa + 1), constant(bits, 0))
    hidden = 1 << fmt.mantissa
    return f.sub(exponent, lowered), f.or_(f.and_(magnitude, hidden - 1), hidden)


def _less(f: Function, rest: Value, divisor: Value) -> Value:
    """The rest after one step."""
    return f.select(f.icmp("uge", rest, divisor), f.sub(rest, divisor), rest)


def _extremum(name: str, predicate: str, propagate: bool) -> floats.Rule:
    """Of f32 (and narrower floats) the instruction, of f64, which has none that gives NaN, a comparison."""
    by_comparison = floats.extremum(predicate, propagate)
    by_instruction = floats.intrinsic(name)

    def rule(e: floats.Emitter, op: arith.Binary) -> object:
        compares = e.result_type(op).bits == 64 or floats.chooses_bits(op.result.type)
        return (by_comparison if compares else by_instruction)(e, op)

    return rule  # pyright: ignore[reportReturnType]


def _negation(otherwise: Rule, negated: Callable[[Value, Value], Value | None]) -> Rule:
    """Up to 32 bits the complement and one more, which ptxas does not see through: of signed extrema of negated
    integers it makes VIMNMX3 for sm_90 and loses the sign of the second (12.8 and 13.0, at every level).
    """

    def rule(e: Emitter, op: arith.Binary) -> object:
        f, value = e.function, negated(e.get(op.lhs), e.get(op.rhs))
        if value is None or value.type.bits > I32.bits or value.literal is not None:
            return otherwise(e, op)
        word = f.cast("sext", value, I32)
        [made] = ptx(f, "not.b32 $0, $1; add.s32 $0, $0, 1;", [I32], word, pure=True)
        result = f.cast("trunc", made, value.type)
        e.affine.promise(result, e.affine.divisor(value))
        return result

    return rule


def _factor(lhs: Value, rhs: Value) -> Value | None:
    """What is multiplied by -1."""
    return lhs if rhs.literal == -1 else rhs if lhs.literal == -1 else None


MATH: dict[type, Compute] = {
    **{kind: inline(name) for kind, name in math.TRANSCENDENTAL.items()},
    math.Sin: sine_of(0),
    math.Cos: sine_of(1),
    math.Erf: by_width(error_function, inline("erf")),
    math.Rsqrt: by_width(instruction("rsqrt.approx.f32"), _reciprocal_root),
}
RULES: Rules = {
    **{kind: floats.wide(compute) for kind, compute in MATH.items()},
    math.Exp: power_of_e,
    math.Exp2: power_of_two,
    math.Sqrt: floats.intrinsic("llvm.sqrt"),
    math.Fma: floats.intrinsic("llvm.fma"),
    tt.PreciseSqrt: floats.intrinsic("llvm.sqrt"),
    arith.DivF: floats.wide(quotient),
    arith.RemF: floats.wide(remainder),
    arith.SubI: _negation(elements.RULES[arith.SubI], lambda lhs, rhs: rhs if lhs.literal == 0 else None),
    arith.MulI: _negation(elements.RULES[arith.MulI], _factor),
    arith.MaximumF: _extremum("llvm.maximum", "ogt", propagate=True),
    arith.MinimumF: _extremum("llvm.minimum", "olt", propagate=True),
    arith.MaxNumF: _extremum("llvm.maxnum", "ogt", propagate=False),
    arith.MinNumF: _extremum("llvm.minnum", "olt", propagate=False),
}
