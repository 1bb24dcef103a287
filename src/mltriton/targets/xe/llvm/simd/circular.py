"""sin and cos of f32 in a warp's vector program, for arguments of any size.

Level: `llvm`. Multiples of pi/2 are taken off by the steps of `targets/llvm/math.py`, or where an element is too large
for them by those bits of 2/pi that matter (Payne and Hanek 1983). Guarantees: errors as there; NaN for infinities.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.targets.llvm.math import Vectors, circular, reduced
from mltriton.targets.llvm.types import Value, constant
from mltriton.targets.llvm.writer import Function
from mltriton.targets.simt.features import Features
from mltriton.targets.xe.llvm.emit.elements import function
from mltriton.targets.xe.llvm.simd.intrinsics import every, high_product

_LARGE = 1e5  # from here on the first reduction is no longer exact
# 2/pi, 32 bits a word, behind a word of zeros.
_WORDS = (0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)
_FIRST = 120  # the exponent, with its bias, of which the bits from word 0 on matter
_HALF_PI = (1.57079637050628662109375, -4.37113900018624283e-8)


def sine_of(quarter: int) -> Callable[[Function, Value], Value]:
    """sin(x + quarter pi/2)."""

    def compute(f: Function, x: Value) -> Value:
        if x.type.element != "float":
            return function(f, "cos" if quarter else "sin", x)
        v = Vectors(f, Features(), x.type)
        small = f.fcmp("ole", v.absolute(x), v.number(_LARGE))
        near = reduced(v, x, "HALF_PI")
        all_small = every(f, small) if x.type.is_vector else small
        r, n = f.choose(all_small, lambda: near, lambda: _either(v, x, small, near), "circular")
        made = circular(v, r, n, quarter)
        return made if quarter else f.select(f.fcmp("oeq", x, v.number(0.0)), x, made)  # of -0, too

    return compute


def _either(v: Vectors, x: Value, small: Value, near: tuple[Value, Value]) -> list[Value]:
    return [v.function.select(small, *pair) for pair in zip(near, _large(v, x), strict=True)]


def _large(v: Vectors, x: Value) -> tuple[Value, Value]:
    """As `reduced`: the product of the 24 bits of x with 96 bits of 2/pi, whole multiples of 4 left out."""
    f, number = v.function, v.integer
    bits = f.bitcast(v.absolute(x), number)
    mantissa = f.or_(f.and_(bits, 0x7FFFFF), 0x800000)
    high, middle, low = _window(v, f.sub(f.lshr(bits, 23), _FIRST))
    fraction = f.mul(mantissa, middle)
    whole = f.add(f.mul(mantissa, high), high_product(f, mantissa, middle))
    total = f.add(fraction, high_product(f, mantissa, low))
    carry = f.cast("zext", f.icmp("ult", total, fraction), number)
    whole = f.add(whole, carry)
    n = f.lshr(f.add(whole, 1 << 29), 30)
    above = f.fmul(f.cast("sitofp", f.sub(whole, f.shl(n, 30)), v.type), v.number(2.0**-30))
    turns = f.fmuladd(f.cast("uitofp", total, v.type), v.number(2.0**-62), above)
    r = f.fmuladd(turns, v.number(_HALF_PI[0]), f.fmul(turns, v.number(_HALF_PI[1])))
    r = f.fadd(r, f.fsub(v.absolute(x), v.absolute(x)))  # NaN where x is no number
    negative = f.fcmp("olt", x, v.number(0.0))
    return f.select(negative, f.fneg(r), r), f.select(negative, f.sub(constant(number, 0), n), n)


def _window(v: Vectors, start: Value) -> list[Value]:
    """Three words of 2/pi from bit `start` on."""
    f = v.function
    index, shift = f.ashr(start, 5), f.and_(start, 31)
    found = [f.icmp("eq", index, step) for step in range(1, 5)]

    def word(number: int) -> Value:
        chosen = constant(v.integer, _WORDS[number])
        for step, is_there in enumerate(found, number + 1):
            chosen = f.select(is_there, constant(v.integer, _WORDS[step]), chosen)
        return chosen

    words, rest = [word(number) for number in range(4)], f.sub(constant(v.integer, 31), shift)
    return [f.or_(f.shl(words[number], shift), f.lshr(f.lshr(words[number + 1], 1), rest)) for number in range(3)]
