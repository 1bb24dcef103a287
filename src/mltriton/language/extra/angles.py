"""`libdevice`'s angles and areas: inverse trigonometric and inverse hyperbolic functions, and sines of multiples of pi.

Takes fp32 or fp64 tensors. Errors of a few units in the last place of the dtype. The arc tangent is that of a ratio: a
rotation by one of three angles leaves a ratio below tan(pi/16), where the Taylor series is short.
"""

from __future__ import annotations

import math as host

from mltriton.language import types
from mltriton.language.building import builtin
from mltriton.language.comparison import where
from mltriton.language.extra.elementary import copysign, isinf, log1p, rint, signbit, trunc, wide
from mltriton.language.math import abs, cos, fma, log, sin, sqrt
from mltriton.language.semantic import literal, promoted
from mltriton.language.tensor import tensor

__all__ = ["acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cospi", "sinpi"]

_LOW, _MIDDLE = host.tan(host.pi / 16), host.tan(3 * host.pi / 16)
_EIGHTH = host.tan(host.pi / 8)
_TERMS = {32: 6, 64: 12}  # of the Taylor series
_LARGE = {32: 2.0**100, 64: 2.0**1000}


def full_like(x: tensor, value: float) -> tensor:
    """A constant of the dtype and shape of x."""
    return literal(value, x.dtype, x.type.shape)


def _angle(y: tensor, x: tensor) -> tensor:
    """The angle of the point (x, y) in the first quadrant: from 0 to pi/2; 0 for the origin."""
    bits = y.dtype.bits
    is_steep = y > x
    low, high = where(is_steep, x, y), where(is_steep, y, x)
    are_infinite = isinf(low)
    low = where(isinf(high), where(are_infinite, 1.0, 0.0), low)
    high = where(isinf(high), 1.0, where(high == 0.0, 1.0, high))
    scale = where(high > _LARGE[bits], 2.0**-8, 1.0)
    low, high = low * scale, high * scale
    is_low, is_middle = low <= high * _LOW, low <= high * _MIDDLE
    tangent = where(is_low, 0.0, where(is_middle, full_like(y, _EIGHTH), 1.0))
    turned = where(is_low, 0.0, where(is_middle, full_like(y, host.pi / 8), host.pi / 4))
    angle = turned + _arc_tangent((low - tangent * high) / (high + tangent * low))
    return where(is_steep, host.pi / 2 - angle, angle)


def _arc_tangent(x: tensor) -> tensor:
    """The arc tangent of |x| <= tan(pi/16)."""
    square, terms = x * x, _TERMS[x.dtype.bits]
    total = full_like(x, (-1) ** (terms - 1) / (2 * terms - 1))
    for n in reversed(range(1, terms - 1)):
        total = fma(total, square, (-1) ** n / (2 * n + 1))
    return fma(x * square, total, x)


@builtin
def atan(x: object) -> tensor:
    """The angle in radians whose tangent is x, from -pi/2 to pi/2."""
    value = wide(x, "atan")
    return copysign(_angle(abs(value), full_like(value, 1.0)), value)


@builtin
def atan2(y: object, x: object) -> tensor:
    """The angle in radians of the point (x, y), from -pi to pi."""
    above, right = promoted(y, x)
    above, right = wide(above, "atan2"), wide(right, "atan2")
    angle = _angle(abs(above), abs(right))
    angle = where(signbit(right), host.pi - angle, angle)
    return where((above == above) & (right == right), copysign(angle, above), above + right)


@builtin
def asin(x: object) -> tensor:
    """The angle in radians whose sine is x, from -pi/2 to pi/2; NaN outside [-1, 1]."""
    value = wide(x, "asin")
    size = abs(value)
    return where(size <= 1.0, copysign(_angle(size, sqrt((1.0 - size) * (1.0 + size))), value), float("nan"))


@builtin
def acos(x: object) -> tensor:
    """The angle in radians whose cosine is x, from 0 to pi; NaN outside [-1, 1]."""
    value = wide(x, "acos")
    half = _angle(sqrt(1.0 - value), sqrt(1.0 + value))
    return where(abs(value) <= 1.0, 2.0 * half, float("nan"))


@builtin
def asinh(x: object) -> tensor:
    """The inverse hyperbolic sine of x."""
    value = wide(x, "asinh")
    size = abs(value)
    square = size * size
    near = log1p(size + square / (1.0 + sqrt(1.0 + square)))
    return copysign(where(size > 1e8, log(size) + host.log(2.0), near), value)


@builtin
def acosh(x: object) -> tensor:
    """The inverse hyperbolic cosine of x, NaN below 1."""
    value = wide(x, "acosh")
    above = value - 1.0
    near = log1p(above + sqrt(above * (above + 2.0)))
    return where(value >= 1.0, where(value > 1e8, log(value) + host.log(2.0), near), float("nan"))


@builtin
def atanh(x: object) -> tensor:
    """The inverse hyperbolic tangent of x, NaN outside [-1, 1]."""
    value = wide(x, "atanh")
    size = abs(value)
    return copysign(where(size <= 1.0, 0.5 * log1p(2.0 * size / (1.0 - size)), float("nan")), value)


@builtin
def sinpi(x: object) -> tensor:
    """The sine of pi * x."""
    return _quarter_turns(wide(x, "sinpi"), 0)


@builtin
def cospi(x: object) -> tensor:
    """The cosine of pi * x."""
    return _quarter_turns(wide(x, "cospi"), 1)


def _quarter_turns(x: tensor, first: int) -> tensor:
    """sin(pi * x + first * pi/2): exact where the result is a multiple of a half turn's sine.

    A zero has the sign of x where it is the sine's, and none where it is the cosine's, as NVIDIA's.
    """
    below = x - trunc(x * 0.5) * 2.0  # Exact, since it is no longer than x: quarters of large numbers fit in no float.
    turns = rint(below * 2.0)
    rest = (below - turns * 0.5) * host.pi
    quarter = turns.to(types.int32) + first
    value = where((quarter & 1) == 0, sin(rest), cos(rest))
    value = where((quarter & 2) == 0, value, -value)
    return where(value == 0.0, full_like(x, 0.0) if first else copysign(0.0, x), value)
