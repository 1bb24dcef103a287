"""`libdevice`'s logarithms, exponentials, signs and roundings.

Takes fp32 or fp64 tensors; made of the operations there are. Errors of a few units in the last place of the dtype.
"""

from __future__ import annotations

from mltriton.errors import TypeMismatchError
from mltriton.language import types
from mltriton.language.arithmetic import add, bitwise_and, bitwise_or, mod, mul, negative, sub, truediv
from mltriton.language.building import builtin
from mltriton.language.casting import reinterpret
from mltriton.language.comparison import equal, greater_equal, less_than, not_equal, where
from mltriton.language.math import (
    WIDE,
    abs,
    ceil,
    cos,
    exp,
    floor,
    log,
    required,
    sin,
)
from mltriton.language.semantic import promoted, to_tensor
from mltriton.language.tensor import tensor


def wide(x: object, name: str) -> tensor:
    """`x` as a tensor of fp32 or fp64; `TypeMismatchError` for other dtypes."""
    return required(to_tensor(x), WIDE, name)


@builtin
def tan(x: object) -> tensor:
    """The tangent of x in radians."""
    return truediv(sin(x), cos(x))


@builtin
def expm1(x: object) -> tensor:
    """exp(x) - 1 without cancellation near 0 (Kahan)."""
    value = wide(x, "expm1")
    power = exp(value)
    less = sub(power, 1.0)
    corrected = mul(less, truediv(value, log(power)))
    usual = where(equal(less, -1.0), -1.0, where(isinf(power), power, corrected))
    return where(equal(power, 1.0), value, usual)


@builtin
def log1p(x: object) -> tensor:
    """log(1 + x) without cancellation near 0 (Kahan)."""
    value = wide(x, "log1p")
    more = add(value, 1.0)
    corrected = mul(log(more), truediv(value, sub(more, 1.0)))
    return where(equal(more, 1.0), value, where(equal(more, float("inf")), more, corrected))


@builtin
def sinh(x: object) -> tensor:
    """The hyperbolic sine of x."""
    value = wide(x, "sinh")
    less = expm1(abs(value))
    positive = mul(0.5, add(less, truediv(less, add(less, 1.0))))
    return copysign(where(isinf(less), _half_power(value), positive), value)


@builtin
def cosh(x: object) -> tensor:
    """The hyperbolic cosine of x."""
    value = wide(x, "cosh")
    power = exp(abs(value))
    return where(isinf(power), _half_power(value), add(mul(0.5, power), truediv(0.5, power)))


def _half_power(x: tensor) -> tensor:
    """exp(|x|) / 2, also where exp(|x|) is too large."""
    root = exp(mul(abs(x), 0.5))
    return mul(mul(root, 0.5), root)


@builtin
def isnan(x: object) -> tensor:
    """Whether x is NaN."""
    value = wide(x, "isnan")
    return not_equal(value, value)


@builtin
def isinf(x: object) -> tensor:
    """Whether x is infinite."""
    return equal(abs(wide(x, "isinf")), float("inf"))


@builtin
def finitef(x: object) -> tensor:
    """Whether x is neither infinite nor NaN."""
    return less_than(abs(wide(x, "finitef")), float("inf"))


@builtin
def signbit(x: object) -> tensor:
    """Whether x is negative, -0.0 included."""
    value = wide(x, "signbit")
    return less_than(reinterpret(value, types.get_int_dtype(value.dtype.bits, signed=True)), 0)


@builtin
def copysign(x: object, y: object) -> tensor:
    """|x| with the sign of y."""
    size, sign = promoted(x, y)
    return where(signbit(sign), negative(abs(size)), abs(size))


@builtin
def trunc(x: object) -> tensor:
    """x rounded to zero."""
    value = wide(x, "trunc")
    return where(greater_equal(value, 0.0), floor(value), ceil(value))


@builtin
def round(x: object) -> tensor:
    """x rounded to nearest, halves away from zero."""
    value = wide(x, "round")
    whole = trunc(value)
    return where(greater_equal(abs(sub(value, whole)), 0.5), add(whole, copysign(1.0, value)), whole)


@builtin
def rint(x: object) -> tensor:
    """x rounded to nearest, halves to even."""
    value = wide(x, "rint")
    low = floor(value)
    rest = sub(value, low)
    half = mul(low, 0.5)
    goes_up = bitwise_or(less_than(0.5, rest), bitwise_and(equal(rest, 0.5), not_equal(floor(half), half)))
    return copysign(where(goes_up, add(low, 1.0), low), value)


@builtin
def fmod(x: object, y: object) -> tensor:
    """x - y * trunc(x / y), with the sign of x."""
    value = mod(x, y)
    if not value.dtype.is_floating():
        raise TypeMismatchError(
            "fmod is for floats", expected="fp32 or fp64", found=value.type.name, hint="write x % y for integers"
        )
    return value
