"""Transcendental functions of f32 and f64 vectors, inline.

Level: `llvm`. `FUNCTIONS` maps a name to an emitter `(function, features, x) -> value` for vectors of any lane count
and scalars. LLVM's own intrinsics for these are split into one library call a lane on vectors, ten times slower.

Guarantees: exp, exp2, log, log2 within 1.5 ulp, sin, cos, tanh, erf within 2.5 ulp in f32, "short exp2" within 2^-17
of itself, all within about 1e-15 relative in f64; exact on infinities, zeros, NaN and denormals (of input and result).
Nothing here needs fused multiply-add: constants are split so that products in range reductions are exact without it.
Coefficients: `polynomials.py`. Sources: Cody and Waite, Software Manual for the Elementary Functions; Tang 1989 (exp);
FDLIBM (log).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from mltriton.records import NamedTuple
from mltriton.targets.llvm.polynomials import POLYNOMIALS, SPLITS
from mltriton.targets.llvm.types import I32, Type, Value, constant, vector
from mltriton.targets.llvm.writer import Function, Module


class Features(Protocol):
    """What a machine has: fused multiply-add, instructions of AVX-512."""

    @property
    def has_fma(self) -> bool: ...

    @property
    def avx512(self) -> bool: ...


Emitter = Callable[["Vectors", Value], Value]


class _Format(NamedTuple):
    """A float format: mantissa bits, exponent bias, the integer type of its width."""

    mantissa: int
    bias: int
    integer: str
    log_offset: int  # bits of sqrt(1/2)

    @property
    def to_integer(self) -> float:
        """Adding this number rounds to an integer, found in the low bits of the sum."""
        return 1.5 * 2.0**self.mantissa


_FORMATS = {
    "float": _Format(23, 127, "i32", 0x3F3504F3),
    "double": _Format(52, 1023, "i64", 0x3FE6A09E667F3BCD),
}


class Vectors(NamedTuple):
    """Arithmetic on values of one float type inside a function."""

    function: Function
    features: Features
    type: Type

    @property
    def format(self) -> _Format:
        """The float format of the elements."""
        return _FORMATS[self.type.element]

    @property
    def integer(self) -> Type:
        """Integers of the same width and lane count."""
        return self.type.with_element(self.format.integer)

    def number(self, value: float) -> Value:
        """`value` in every lane."""
        return constant(self.type, value)

    def polynomial(self, name: str, x: Value) -> Value:
        """The named polynomial of `polynomials.py` at x, by Horner's rule."""
        *lower, value = (self.number(c) for c in POLYNOMIALS[self.type.element][name])
        for coefficient in reversed(lower):
            value = self.function.fmuladd(value, x, coefficient)
        return value

    def split(self, name: str) -> Sequence[float]:
        """The named constant of `polynomials.py` as a sum of short floats."""
        return SPLITS[self.type.element][name]

    def less_multiples(self, x: Value, n: Value, name: str) -> Value:
        """x - n * constant, part by part."""
        for part in self.split(name):
            x = self.function.fmuladd(n, self.number(-part), x)
        return x

    def round(self, x: Value) -> tuple[Value, Value]:
        """The nearest integer to x (|x| < 2**(mantissa - 2)), as a float and as an integer."""
        shift = self.number(self.format.to_integer)
        shifted = self.function.fadd(x, shift)
        bits = self.function.bitcast(shifted, self.integer)
        integer = self.function.sub(bits, constant(self.integer, _bits(self, self.format.to_integer)))
        return self.function.fsub(shifted, shift), integer

    def fraction(self, x: Value, rounding: int) -> Value | None:
        """x - its integer; 0 of an infinity. None where no instruction gives it for this many lanes."""
        if self._scalef is None:
            return None
        suffix, mask, mode = self._scalef
        extra = [constant(I32, mode)] if mode else []
        every, whole = constant(vector(mask, 1), -1), constant(I32, rounding)
        return self.function.pure_call(f"llvm.x86.avx512.mask.reduce.{suffix}", x.type, x, whole, x, every, *extra)

    def at_most(self, x: Value, high: float) -> Value:
        """The smaller of x and `high`; NaN stays NaN."""
        top = self.number(high)
        return self.function.select(self.function.fcmp("ogt", x, top), top, x)

    def keep_above(self, x: Value, low: float) -> tuple[Value, Value]:
        """(x, where x is not below `low`, or NaN); elsewhere x may become 0.

        For functions that are 0 there: to compute that 0 as a product that underflows takes x86 a hundred cycles.
        """
        keep = self.function.fcmp("uge", x, self.number(low))
        return (x if self._scalef is not None else self.function.select(keep, x, self.number(0.0))), keep

    def times_power_of_two(self, x: Value, n: Value, integer: Value, keep: Value) -> Value:
        """x * 2**n for a normal x and integer n, rounded once where the result is denormal or overflows; 0 where not
        `keep`.
        """
        function = self.function
        if self._scalef is not None:
            return _scaled(function, x, n, keep, *self._scalef)
        half = function.ashr(integer, 1)
        for exponent in (half, function.sub(integer, half)):
            biased = function.shl(function.add(exponent, self.format.bias), self.format.mantissa)
            x = function.fmul(x, function.bitcast(biased, self.type))
        return function.select(keep, x, self.number(0.0))

    @property
    def _scalef(self) -> tuple[str, str, int] | None:
        """How AVX-512's instructions for x * 2**n and fractions are named, where there are any for this many lanes."""
        return _SCALEF.get((self.type.element, self.type.lanes)) if self.features.avx512 else None

    def absolute(self, x: Value) -> Value:
        """|x|."""
        return self.function.intrinsic("llvm.fabs", self.type, x)

    def with_sign_of(self, x: Value, sign: Value) -> Value:
        """|x| with the sign of `sign`."""
        return self.function.intrinsic("llvm.copysign", self.type, x, sign)


def _bits(vectors: Vectors, number: float) -> int:
    """The bit pattern of a power of two times 1.5 or 1."""
    fmt = vectors.format
    exponent, mantissa = 0, number
    while mantissa >= 2:
        exponent, mantissa = exponent + 1, mantissa / 2
    return ((exponent + fmt.bias) << fmt.mantissa) + int((mantissa - 1) * 2**fmt.mantissa)


# VREDUCE: no bits of the fraction stay, no exceptions; of the nearest integer (even), of the next one below.
_WHOLE_NEAREST, _WHOLE_BELOW = 8, 9
# Suffix of the intrinsic, type of its mask, rounding mode if it takes one.
_SCALEF = {
    ("float", 8): ("ps.256", "i8", 0),
    ("float", 16): ("ps.512", "i16", 4),
    ("double", 8): ("pd.512", "i8", 4),
}


def _scaled(function: Function, x: Value, n: Value, keep: Value, suffix: str, mask: str, rounding: int) -> Value:
    """x * 2**n where `keep`, 0 elsewhere."""
    zero = constant(x.type, 0.0)
    extra = [constant(I32, rounding)] if rounding else []
    bits = function.bitcast(keep, vector(mask, 1))
    return function.pure_call(f"llvm.x86.avx512.mask.scalef.{suffix}", x.type, x, n, zero, bits, *extra)


def _exp(v: Vectors, x: Value) -> Value:
    f = v.function
    low, high = (-104.0, 89.0) if v.type.bits == 32 else (-746.0, 710.0)
    x, keep = v.keep_above(v.at_most(x, high), low)
    n, integer = v.round(f.fmul(x, v.number(1.4426950408889634)))
    r = v.less_multiples(x, n, "LN2")
    q = f.fmuladd(f.fmul(r, r), v.polynomial("EXP", r), r)
    return v.times_power_of_two(f.fadd(q, v.number(1.0)), n, integer, keep)


# Exponents below which a power of two is 0 and above which it is infinite, by bits; and the least of normal powers.
_EXPONENTS = {32: (-151.0, 129.0, -126.0), 64: (-1076.0, 1025.0, -1022.0)}


def _exp2(v: Vectors, x: Value, flushes: bool = False) -> Value:
    f = v.function
    low, high, normal = _EXPONENTS[v.type.bits]
    low = normal if flushes else low
    fraction = v.fraction(x, _WHOLE_NEAREST)
    if fraction is not None:
        r, integer, keep = fraction, constant(v.integer, 0), f.fcmp("uge", x, v.number(low))
        n = f.fsub(x, r)
    else:
        x, keep = v.keep_above(v.at_most(x, high), low)
        n, integer = v.round(x)
        r = f.fsub(x, n)
    return v.times_power_of_two(f.fmuladd(r, v.polynomial("EXP2", r), v.number(1.0)), n, integer, keep)


def _flushed_exp2(v: Vectors, x: Value) -> Value:
    return _exp2(v, x, flushes=True)


def _short_exp2(v: Vectors, x: Value) -> Value:
    """`_flushed_exp2` within 2^-17, where that is shorter: the instruction that scales rounds exponents down itself."""
    r = v.fraction(x, _WHOLE_BELOW) if v.type.bits == 32 else None
    if r is None:
        return _flushed_exp2(v, x)
    keep = v.function.fcmp("uge", x, v.number(_EXPONENTS[32][2]))
    power = v.function.fmuladd(r, v.polynomial("EXP2_SHORT", r), v.number(1.0))
    return v.times_power_of_two(power, x, constant(v.integer, 0), keep)


def _logarithm_parts(v: Vectors, x: Value) -> tuple[Value, Value, Value]:
    """(e, f, rest) with log(x) = e log(2) + f + rest, where x = 2**e (1 + f) is positive and finite."""
    f, fmt = v.function, v.format
    is_small = f.fcmp("olt", x, v.number(2.0 ** (1 - fmt.bias)))
    x = f.select(is_small, f.fmul(x, v.number(2.0 ** (fmt.mantissa + 2))), x)
    bits = f.bitcast(x, v.integer)
    exponent = f.ashr(f.sub(bits, constant(v.integer, fmt.log_offset)), fmt.mantissa)
    reduced = f.bitcast(f.sub(bits, f.shl(exponent, fmt.mantissa)), v.type)
    scale = constant(v.integer, -(fmt.mantissa + 2))
    exponent = f.add(exponent, f.select(is_small, scale, constant(v.integer, 0)))
    e = _small_integer_to_float(v, exponent)
    m = f.fsub(reduced, v.number(1.0))
    return e, m, _log_rest(v, m)


def _small_integer_to_float(v: Vectors, integer: Value) -> Value:
    """sitofp for |integer| < 2**20, without the 64-bit conversion that SSE and AVX2 lack."""
    shift = v.format.to_integer
    bits = v.function.add(integer, constant(v.integer, _bits(v, shift)))
    return v.function.fsub(v.function.bitcast(bits, v.type), v.number(shift))


def _log_rest(v: Vectors, m: Value) -> Value:
    f = v.function
    half_square = f.fmul(f.fmul(m, m), v.number(0.5))
    if v.type.bits == 32:
        cube = f.fmul(f.fmul(m, m), m)
        return f.fsub(f.fmul(cube, v.polynomial("LOG", m)), half_square)
    s = f.fdiv(m, f.fadd(m, v.number(2.0)))
    z = f.fmul(s, s)
    return f.fsub(f.fmul(s, f.fadd(half_square, f.fmul(z, v.polynomial("LOG_S", z)))), half_square)


def _at_the_edges(v: Vectors, x: Value, logarithm: Value) -> Value:
    """The logarithm with what zero, negative numbers, infinity and NaN give."""
    f, infinity = v.function, float("inf")
    result = f.select(f.fcmp("oeq", x, v.number(infinity)), x, logarithm)
    result = f.select(f.fcmp("oeq", x, v.number(0.0)), v.number(-infinity), result)
    return f.select(f.fcmp("ult", x, v.number(0.0)), v.number(float("nan")), result)


def _log(v: Vectors, x: Value) -> Value:
    f = v.function
    e, m, rest = _logarithm_parts(v, x)
    high, low = v.split("LN2")
    rest = f.fmuladd(e, v.number(low), rest)
    return _at_the_edges(v, x, f.fmuladd(e, v.number(high), f.fadd(m, rest)))


def _log2(v: Vectors, x: Value) -> Value:
    f = v.function
    e, m, rest = _logarithm_parts(v, x)
    # log2(e) = 1 + 0.44...: the products then are small against the sum they go into.
    factor = v.number(0.44269504088896340736)
    total = f.fmuladd(m, factor, f.fmul(rest, factor))
    return _at_the_edges(v, x, f.fadd(f.fadd(f.fadd(total, rest), m), e))


def _sin(v: Vectors, x: Value) -> Value:
    is_zero = v.function.fcmp("oeq", x, v.number(0.0))
    return v.function.select(is_zero, x, _circular(v, x, "sin", 0))  # the polynomial loses the sign of -0


def _cos(v: Vectors, x: Value) -> Value:
    return _circular(v, x, "cos", 1)


def _circular(v: Vectors, x: Value, name: str, quarter: int) -> Value:
    """sin(x + quarter * pi/2). Arguments too large for the range reduction go to the C library, all lanes together."""
    f = v.function
    if v.type.bits == 64:
        limit, constants = 1e6, "HALF_PI"
    else:
        limit, constants = (1e5, "HALF_PI") if v.features.has_fma else (6e3, "HALF_PI_SHORT")

    def small() -> list[Value]:
        return [circular(v, *reduced(v, x, constants), quarter)]

    is_large = f.any_lane(f.fcmp("ogt", v.absolute(x), v.number(limit)))
    return f.choose(is_large, lambda: [f.call(_library_function(f.module, name, v.type), v.type, x)], small, name)[0]


def reduced(v: Vectors, x: Value, constants: str) -> tuple[Value, Value]:
    """(r, n) with x = r + n pi/2 and r as small as it can be; n is an integer. For x that is not too large."""
    n, integer = v.round(v.function.fmul(x, v.number(0.63661977236758134)))
    return v.less_multiples(x, n, constants), integer


def circular(v: Vectors, r: Value, n: Value, quarter: int) -> Value:
    """sin(r + (n + quarter) pi/2) for a small r."""
    f, z = v.function, v.function.fmul(r, r)
    sine = f.fmuladd(f.fmul(z, r), v.polynomial("SIN", z), r)
    cosine = f.fmuladd(z, v.number(-0.5), v.number(1.0))
    cosine = f.fmuladd(f.fmul(z, z), v.polynomial("COS", z), cosine)
    quadrant = f.add(n, quarter)
    is_odd = f.icmp("ne", f.and_(quadrant, 1), 0)
    sign = f.shl(f.and_(quadrant, 2), v.type.bits - 2)
    bits = f.bitcast(f.select(is_odd, cosine, sine), v.integer)
    return f.bitcast(f.xor(bits, sign), v.type)


def _library_function(module: Module, name: str, type_: Type) -> str:
    """A function that calls the C library's `name` on each lane."""
    function_name = f"{name}.each.{type_.suffix}"
    if not module.defines(function_name):
        function = module.function(function_name, type_, [("x", type_)], extra="noinline ")
        (value,) = function.parameters
        for lane in range(type_.lanes):
            result = function.intrinsic(f"llvm.{name}", type_.scalar, function.extract(value, lane))
            value = function.insert(value, result, lane)
        function.ret(value)
    return function_name


def _tanh(v: Vectors, x: Value) -> Value:
    f = v.function
    a = v.absolute(x)
    z = f.fmul(x, x)
    near = f.fmuladd(f.fmul(z, x), v.polynomial("TANH", z), x)
    e = _exp(v, f.fadd(a, a))
    far = f.fsub(v.number(1.0), f.fdiv(v.number(2.0), f.fadd(e, v.number(1.0))))
    return v.with_sign_of(f.select(f.fcmp("olt", a, v.number(0.625)), near, far), x)


def erf(v: Vectors, x: Value, exp: Emitter = _exp) -> Value:
    """The error function; `exp` is the exponential of numbers from -18 to -1 (f64: -38), of 3 ulp or so."""
    f = v.function
    border, end = (1.0, 3.95) if v.type.bits == 32 else (1.5, 5.94)
    a = v.absolute(x)
    near = f.fmul(x, v.polynomial("ERF", f.fmul(x, x)))
    tail = exp(v, f.fneg(v.polynomial("ERF_TAIL", v.at_most(a, end))))
    far = f.fsub(v.number(1.0), tail)
    return f.select(f.fcmp("olt", a, v.number(border)), near, v.with_sign_of(far, x))


_EMITTERS: dict[str, Emitter] = {
    "exp": _exp,
    "exp2": _exp2,
    "flushed exp2": _flushed_exp2,
    "short exp2": _short_exp2,
    "log": _log,
    "log2": _log2,
    "sin": _sin,
    "cos": _cos,
    "tanh": _tanh,
    "erf": erf,
}


def _emitter(emit: Emitter) -> Callable[[Function, Features, Value], Value]:
    return lambda function, features, x: emit(Vectors(function, features, x.type), x)


FUNCTIONS: dict[str, Callable[[Function, Features, Value], Value]] = {
    name: _emitter(emit) for name, emit in _EMITTERS.items()
}


def rounded(f: Function, stem: str, x: Value) -> Value:
    """Floor or ceil without an instruction for it: adding and taking away 2**mantissa rounds to nearest; one more step
    where that went the wrong way.
    """
    magnitude = f.intrinsic("llvm.fabs", x.type, x)
    limit = constant(x.type, 2.0 ** _FORMATS[x.type.element].mantissa)
    nearest = f.intrinsic("llvm.copysign", x.type, f.fsub(f.fadd(magnitude, limit), limit), x)
    one, zero = constant(x.type, 1.0), constant(x.type, 0.0)
    too_far = f.fcmp("ogt" if stem == "floor" else "olt", nearest, x)
    step = f.select(too_far, one, zero)
    moved = f.fsub(nearest, step) if stem == "floor" else f.fadd(nearest, step)
    whole = f.intrinsic("llvm.copysign", x.type, moved, x)
    return f.select(f.fcmp("olt", magnitude, limit), whole, x)
