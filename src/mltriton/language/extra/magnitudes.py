"""`libdevice`'s lengths and roots, and the parts of a float: exponent, neighbour, remainder.

Takes fp32 or fp64 tensors. Lengths are right to a few units in the last place where the squares would overflow or
vanish too; cube roots to two; everything about exponents and remainders is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mltriton.language import types
from mltriton.language.arithmetic import mod
from mltriton.language.building import builtin
from mltriton.language.casting import reinterpret
from mltriton.language.comparison import where
from mltriton.language.extra.elementary import copysign, isinf, wide
from mltriton.language.math import abs, exp2, log2, sqrt
from mltriton.language.semantic import broadcast_all, literal, promoted, to_tensor
from mltriton.language.tensor import tensor

__all__ = [
    "cbrt", "fdim", "hypot", "ilogb", "ldexp", "logb", "nextafter", "norm3d", "norm4d", "rcbrt", "remainder",
    "rhypot", "rnorm3d", "rnorm4d", "saturatef", "scalbn",
]  # fmt: skip

_MANTISSA = {32: 23, 64: 52}  # bits
_SUBNORMAL = {32: 2.0**-126, 64: 2.0**-1022}  # numbers below lack the first bit
_BEYOND = {32: 300, 64: 2200}  # powers of two that make every number 0 or infinite
_LEAST, _MOST = -(2**31), 2**31 - 1


def _length(parts: Sequence[object], name: str) -> tensor:
    """The root of the sum of the squares; infinite where one of the parts is."""
    sizes = broadcast_all(*[abs(wide(part, name)) for part in parts])
    largest = reduce(lambda a, b: where(a > b, a, b), sizes)
    unit = where(largest == 0.0, 1.0, largest)
    # Two divisions where one product with the reciprocal would overflow.
    squares = [(size / unit) * (size / unit) for size in sizes]
    length = largest * sqrt(reduce(lambda a, b: a + b, squares))
    is_infinite = reduce(lambda a, b: a | b, [isinf(size) for size in sizes])
    return where(is_infinite, float("inf"), length)


@builtin
def hypot(x: object, y: object) -> tensor:
    """The length of the vector (x, y)."""
    return _length((x, y), "hypot")


@builtin
def norm3d(x: object, y: object, z: object) -> tensor:
    """The length of the vector (x, y, z)."""
    return _length((x, y, z), "norm3d")


@builtin
def norm4d(x: object, y: object, z: object, w: object) -> tensor:
    """The length of the vector (x, y, z, w)."""
    return _length((x, y, z, w), "norm4d")


@builtin
def rhypot(x: object, y: object) -> tensor:
    """One over the length of the vector (x, y)."""
    return 1.0 / _length((x, y), "rhypot")


@builtin
def rnorm3d(x: object, y: object, z: object) -> tensor:
    """One over the length of the vector (x, y, z)."""
    return 1.0 / _length((x, y, z), "rnorm3d")


@builtin
def rnorm4d(x: object, y: object, z: object, w: object) -> tensor:
    """One over the length of the vector (x, y, z, w)."""
    return 1.0 / _length((x, y, z, w), "rnorm4d")


@builtin
def cbrt(x: object) -> tensor:
    """The cube root of x."""
    value = wide(x, "cbrt")
    size = abs(value)
    guess = exp2(log2(size) * (1.0 / 3.0))
    refined = guess - (guess - size / (guess * guess)) * (1.0 / 3.0)
    return copysign(where((size == 0.0) | isinf(size), size, refined), value)


@builtin
def rcbrt(x: object) -> tensor:
    """One over the cube root of x."""
    return 1.0 / cbrt(x)


@builtin
def fdim(x: object, y: object) -> tensor:
    """x - y where x is above y, otherwise 0."""
    a, b = promoted(x, y)
    a, b = wide(a, "fdim"), wide(b, "fdim")
    return where(a <= b, 0.0, a - b)


@builtin
def saturatef(x: object) -> tensor:
    """x, at least 0 and at most 1; 0 for NaN."""
    value = wide(x, "saturatef")
    return where(value > 0.0, where(value < 1.0, value, 1.0), 0.0)


@builtin
def remainder(x: object, y: object) -> tensor:
    """x - n * y for the integer n nearest to x / y, the even one of two."""
    a, b = promoted(x, y)
    value, size = wide(a, "remainder"), abs(wide(b, "remainder"))
    limit = 2.0 ** {32: 126, 64: 1022}[value.dtype.bits]
    rest = where(size < limit, mod(abs(value), size * 2.0), abs(value))
    # From here `rest` is below 2 * |y|; every difference of numbers so near each other is exact.
    half = where(size < limit, size, size * 0.5)
    is_above = where(size < limit, rest + rest > size, rest > half)
    once = where(is_above, rest - size, rest)
    is_far = where(size < limit, once + once >= size, once >= half) & is_above
    twice = where(is_far, once - size, once)
    signed = where(value < 0.0, -twice, twice)
    signed = where(signed == 0.0, copysign(0.0, value), signed)
    is_number = (size > 0.0) & (abs(value) < float("inf"))
    return where(is_number, where(isinf(size), value, signed), float("nan"))


@builtin
def ldexp(x: object, exponent: object) -> tensor:
    """x * 2 ** exponent for an integer exponent."""
    value, power = wide(x, "ldexp"), to_tensor(exponent)
    most = _BEYOND[value.dtype.bits]
    power = power.to(types.int32)
    power = where(power > most, most, where(power < -most, -most, power))
    part = power >> 2
    for _ in range(3):
        value = value * _power_of_two(part, value)
    return value * _power_of_two(power - part * 3, value)


scalbn = ldexp


def _power_of_two(exponent: tensor, like: tensor) -> tensor:
    """2 ** exponent in the dtype of `like`, by its bits; the exponent must be one of a normal number."""
    bits, mantissa = like.dtype.bits, _MANTISSA[like.dtype.bits]
    bias = (1 << bits - mantissa - 2) - 1
    integer = types.get_int_dtype(bits, signed=True)
    return reinterpret((exponent.to(integer) + bias) << mantissa, like.dtype)


@builtin
def ilogb(x: object) -> tensor:
    """The exponent of x as int32; the least int32 for 0 and NaN, the greatest for infinity (NVIDIA's)."""
    value = wide(x, "ilogb")
    return _exponent(abs(value), value)


def _exponent(size: tensor, value: tensor) -> tensor:
    bits, mantissa = value.dtype.bits, _MANTISSA[value.dtype.bits]
    bias = (1 << bits - mantissa - 2) - 1
    is_small = size < _SUBNORMAL[bits]
    scaled = where(is_small, size * 2.0**mantissa, size)
    field = (reinterpret(scaled, types.get_int_dtype(bits, signed=True)) >> mantissa).to(types.int32)
    exponent = field - where(is_small, bias + mantissa, bias)
    return where(size < float("inf"), where(size == 0.0, _LEAST, exponent), where(size == size, _MOST, _LEAST))


@builtin
def logb(x: object) -> tensor:
    """The exponent of x as a float: -inf for 0, inf for infinity."""
    value = wide(x, "logb")
    size = abs(value)
    finite = where(size == 0.0, float("-inf"), _exponent(size, value).to(value.dtype))
    return where(size < float("inf"), finite, size)


@builtin
def nextafter(x: object, y: object) -> tensor:
    """The float after x on the way to y; y where they are equal."""
    a, b = promoted(x, y)
    start, end = wide(a, "nextafter"), wide(b, "nextafter")
    integer = types.get_int_dtype(start.dtype.bits, signed=True)
    bits = reinterpret(start, integer)
    grows = (start < end) == (start > 0.0)
    moved = reinterpret(where(grows, bits + 1, bits - 1), start.dtype)
    least = copysign(reinterpret(literal(1, integer, start.type.shape), start.dtype), end)
    result = where(start == 0.0, least, moved)
    return where(start == end, end, where((start == start) & (end == end), result, start + end))
