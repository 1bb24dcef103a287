"""`libdevice`'s powers, and logarithms and exponentials to base 10.

Takes fp32 or fp64 tensors. fp32 is computed in fp64; fp64 by logarithms in two parts, so that the error is below one
unit in the last place however large the exponent is, and exact powers that are not too large (10 ** 3) are exact.
Source: the series of the inverse hyperbolic tangent and of the exponential; T. J. Dekker (1971) for sums in two parts.
"""

from __future__ import annotations

import math as host

from mltriton.language import types
from mltriton.language.arithmetic import fma
from mltriton.language.building import builtin
from mltriton.language.casting import cast, reinterpret
from mltriton.language.comparison import where
from mltriton.language.extra.elementary import isinf, wide
from mltriton.language.extra.magnitudes import ldexp
from mltriton.language.math import abs, exp2, floor, log2
from mltriton.language.semantic import promoted
from mltriton.language.tensor import tensor

__all__ = ["exp10", "log10", "pow"]

Parts = tuple[tensor, tensor]

# Numbers in two parts.
TWO_BY_LOG_2 = (2.8853900817779268, 4.0710547481862066e-17)
LOG_2 = (0.6931471805599453, 2.3190468138462996e-17)
THIRD = (0.3333333333333333, 1.850371707708594e-17)
LOG2_OF_10 = (3.321928094887362, 1.661617516973592e-16)
LOG10_OF_2 = (0.3010299956639812, -2.8037281277851704e-18)

_LEAST, _MANTISSA, _BIAS = 2.0**-1022, 52, 1023
_ONE_BITS, _FRACTION_BITS = 0x3FF0000000000000, 0xFFFFFFFFFFFFF
_BEYOND = 1200.0  # powers of two beyond are 0 or infinite
_LOGARITHM = tuple(1.0 / n for n in range(27, 3, -2))
_EXPONENTIAL = tuple(1.0 / host.factorial(n) for n in range(15, 1, -1))


def _sum(large: tensor, small: tensor) -> Parts:
    """The sum of two numbers of which the second is not larger."""
    total = large + small
    return total, (large - total) + small


def _product(a: Parts, b: tuple[float, float] | Parts) -> Parts:
    high = a[0] * b[0]
    return high, fma(a[0], b[0], -high) + (a[0] * b[1] + a[1] * b[0])


def _polynomial(coefficients: tuple[float, ...], x: tensor) -> tensor:
    total = x * 0.0 + coefficients[0]
    for coefficient in coefficients[1:]:
        total = fma(total, x, coefficient)
    return total


def _logarithm(x: tensor) -> Parts:
    """The logarithm to base 2 of a finite x > 0, to some 2**-65 of its size."""
    is_small = x < _LEAST
    bits = reinterpret(where(is_small, x * 2.0**54, x), types.int64)
    fraction = reinterpret((bits & _FRACTION_BITS) | _ONE_BITS, types.float64)
    is_high = fraction > host.sqrt(2.0)
    fraction = where(is_high, fraction * 0.5, fraction)
    exponent = ((bits >> _MANTISSA) - _BIAS - where(is_small, 54, 0) + where(is_high, 1, 0)).to(types.float64)
    above, (below, lost) = fraction - 1.0, _sum(fraction * 0.0 + 1.0, fraction)
    lost = where(fraction > 1.0, (fraction - below) + 1.0, lost)
    ratio = above / below
    s = (ratio, (fma(-ratio, below, above) - ratio * lost) / below)
    square = _product(s, s)
    third = _product(_product(s, square), THIRD)
    rest = _polynomial(_LOGARITHM, square[0]) * square[0] * square[0] * ratio
    high, low = _sum(ratio, third[0])
    scaled = _product((high, low + (s[1] + third[1] + rest)), TWO_BY_LOG_2)
    is_whole = exponent == 0.0
    high, low = _sum(where(is_whole, scaled[0], exponent), where(is_whole, 0.0, scaled[0]))
    return _sum(high, low + scaled[1])


def _power_of_two(exponent: Parts) -> tensor:
    """Two to a power."""
    high, low = exponent
    high = where(high > _BEYOND, _BEYOND, where(high < -_BEYOND, -_BEYOND, high))
    low = where(abs(high) == _BEYOND, 0.0, low)
    whole = floor(high + 0.5)
    t, less = _product((high - whole, low), LOG_2)
    curved = _polynomial(_EXPONENTIAL, t) * (t * t)
    total, lost = _sum(t * 0.0 + 1.0, t)
    found = total + (lost + (curved + less * (total + curved)))
    return ldexp(found, whole.to(types.int32))


def _size(base: tensor, exponent: tensor) -> tensor:
    """A finite base > 0 to the power of a finite exponent."""
    return _power_of_two(_product((exponent, exponent * 0.0), _logarithm(base)))


def _power(base: tensor, exponent: tensor, is_narrow: bool) -> tensor:
    """|base| to a power, also of and to what is not finite."""
    usual = exp2(exponent * log2(base))
    if is_narrow:
        return usual
    is_finite = (base > 0.0) & (base < float("inf")) & (abs(exponent) < float("inf"))
    exact = _size(where(is_finite, base, 1.0), where(is_finite, exponent, 1.0))
    return where(is_finite, exact, usual)


@builtin
def pow(x: object, y: object) -> tensor:
    """x to the power of y; NaN for a negative x unless y is an integer."""
    base, exponent = promoted(x, y)
    kind = wide(base, "pow").dtype
    base, exponent = cast(base, types.float64), cast(exponent, types.float64)
    size = _power(abs(base), exponent, kind == types.float32)
    half = exponent * 0.5
    is_integer = floor(exponent) == exponent
    is_odd = is_integer & (floor(half) != half)
    of_negative = where(is_integer | isinf(base), where(is_odd, -size, size), float("nan"))
    # The sign of -0.0 stays with odd powers.
    is_negative = reinterpret(base, types.int64) < 0
    result = where(is_negative & (base == base), where(base == 0.0, where(is_odd, -size, size), of_negative), size)
    is_one = (exponent == 0.0) | (base == 1.0) | ((base == -1.0) & isinf(exponent))
    return cast(where(is_one, 1.0, result), kind)


@builtin
def exp10(x: object) -> tensor:
    """10 to the power of x."""
    value = wide(x, "exp10")
    power = cast(value, types.float64)
    if value.dtype == types.float32:
        return cast(exp2(power * LOG2_OF_10[0]), value.dtype)
    is_finite = abs(power) < float("inf")
    safe = where(is_finite, power, 1.0)
    return where(is_finite, _power_of_two(_product((safe, safe * 0.0), LOG2_OF_10)), exp2(power))


@builtin
def log10(x: object) -> tensor:
    """The logarithm of x to base 10."""
    value = wide(x, "log10")
    number = cast(value, types.float64)
    if value.dtype == types.float32:
        return cast(log2(number) * LOG10_OF_2[0], value.dtype)
    is_usual = (number > 0.0) & (number < float("inf"))
    high, low = _product(_logarithm(where(is_usual, number, 1.0)), LOG10_OF_2)
    return where(is_usual, high + low, log2(number))
