"""Multiples of pi/2 taken off from angles of any size (Payne and Hanek 1983).

Level: `llvm`. Takes an f32 or f64 whose magnitude is 1 or more, by those bits of 2/pi that matter to it.
Guarantees: the rest errs by about an ulp; NaN for infinities and NaN.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.targets.llvm.math import Vectors
from mltriton.targets.llvm.types import Value, constant
from mltriton.targets.llvm.writer import Function

HighProduct = Callable[[Function, Value, Value], Value]  # of integers without a sign, of the floats' width

# 2/pi, 64 bits a word.
_WORDS = (
    0xA2F9836E4E441529,
    0xFC2757D1F534DDC0,
    0xDB6295993C439041,
    0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0,
    0x06492EEA09D1921C,
    0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484,
    0xE99C7026B45F7E41,
    0x3991D639835339F4,
    0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F,
    0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B,
    0x3D0739F78A5292EA,
    0x6BFB5FB11F8D5D08,
    0x56033046FC7B6BAB,
)
_HALF_PI = {
    "float": (1.57079637050628662109375, -4.37113900018624283e-8),
    "double": (1.5707963267948966, 6.123233995736766e-17),
}


def reduced(v: Vectors, x: Value, high_product: HighProduct) -> tuple[Value, Value]:
    """(r, n) with x = r + n pi/2: the product of the significand with three words of 2/pi; of n whole multiples of 4
    are left out.
    """
    f, integer, width, fmt = v.function, v.integer, v.type.bits, v.format
    bits = f.bitcast(v.absolute(x), integer)
    hidden = 1 << fmt.mantissa
    significand = f.or_(f.and_(bits, hidden - 1), hidden)
    start = f.sub(f.lshr(bits, fmt.mantissa), fmt.bias + fmt.mantissa - (width - 2))
    high, middle, low = _window(v, start)
    fraction = f.mul(significand, middle)
    whole = f.add(f.mul(significand, high), high_product(f, significand, middle))
    total = f.add(fraction, high_product(f, significand, low))
    whole = f.add(whole, f.cast("zext", f.icmp("ult", total, fraction), integer))
    n = f.lshr(f.add(whole, 1 << (width - 3)), width - 2)
    above = f.fmul(f.cast("sitofp", f.sub(whole, f.shl(n, width - 2)), v.type), v.number(2.0 ** -(width - 2)))
    turns = f.fmuladd(f.cast("uitofp", total, v.type), v.number(2.0 ** -(2 * width - 2)), above)
    first, second = _HALF_PI[v.type.element]
    r = f.fmuladd(turns, v.number(first), f.fmul(turns, v.number(second)))
    r = f.fadd(r, f.fsub(v.absolute(x), v.absolute(x)))  # NaN where x is no number
    negative = f.fcmp("olt", x, v.number(0.0))
    return f.select(negative, f.fneg(r), r), f.select(negative, f.sub(constant(integer, 0), n), n)


def _words(width: int) -> list[int]:
    """2/pi in words of that width, behind a word of zeros, as far as an exponent reaches."""
    if width == 64:
        return [0, *_WORDS]
    halves = [word >> shift & 0xFFFFFFFF for word in _WORDS for shift in (32, 0)]
    return [0, *halves[:7]]


def _window(v: Vectors, start: Value) -> list[Value]:
    """Three words of 2/pi from bit `start` on."""
    f, width = v.function, v.type.bits
    all_words = _words(width)
    index, shift = f.ashr(start, width.bit_length() - 1), f.and_(start, width - 1)
    found = [f.icmp("eq", index, step) for step in range(1, len(all_words) - 3)]

    def word(number: int) -> Value:
        chosen = constant(v.integer, all_words[number])
        for step, is_there in enumerate(found, number + 1):
            chosen = f.select(is_there, constant(v.integer, all_words[step]), chosen)
        return chosen

    words, rest = [word(number) for number in range(4)], f.sub(constant(v.integer, width - 1), shift)
    return [f.or_(f.shl(words[number], shift), f.lshr(f.lshr(words[number + 1], 1), rest)) for number in range(3)]
