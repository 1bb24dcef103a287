"""The 8-bit floats that the IR does not have: fp8e4b8, fp8e4b15 and fp8e5b16, which lie in memory and convert.

Takes blocks whose IR type is that of bytes; guarantees exact values when they become wider floats, and rounding to
nearest even back, where what is too large (infinity, too) becomes the largest number. fp8e4b8 and fp8e5b16 (OCP's FNUZ)
have one NaN, 0x80, and no -0; fp8e4b15 has no NaN: it becomes the largest number, too.
"""

from __future__ import annotations

from mltriton.language import types
from mltriton.language.arithmetic import minimum
from mltriton.language.casting import cast, reinterpret
from mltriton.language.comparison import where
from mltriton.language.math import abs
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype
from mltriton.records import NamedTuple

MOST = 0x7F  # the code of the largest number
F32_BIAS, F32_MANTISSA, F32_INFINITY = 127, 23, 0x7F800000


class _Format(NamedTuple):
    bias: int
    mantissa: int
    has_nan: bool


FORMATS = {
    types.float8e4b8: _Format(8, 3, True),
    types.float8e4b15: _Format(15, 3, False),
    types.float8e5b16: _Format(16, 2, True),
}


def decoded(value: tensor) -> tensor:
    """The numbers as fp32."""
    layout = FORMATS[value.dtype]
    code = cast(tensor(value.handle, value.type.with_element(types.uint8)), types.int32)
    scaled = reinterpret((code & MOST) << (F32_MANTISSA - layout.mantissa), types.float32)
    number = scaled * 2.0 ** (F32_BIAS - layout.bias)
    signed = where(code > MOST, -number, number)
    return where(code == MOST + 1, float("nan"), signed) if layout.has_nan else signed


def encoded(value: tensor, target: dtype) -> tensor:
    """fp32 as a type of `FORMATS`."""
    layout = FORMATS[target]
    size = abs(value)
    code = where(size < 2.0 ** (1 - layout.bias), _small(size, layout), _usual(size, layout))
    code = minimum(code, MOST)
    is_negative = reinterpret(value, types.int32) < 0
    if layout.has_nan:
        signed = where(is_negative & (code > 0), code + MOST + 1, code)
        signed = where(value == value, signed, MOST + 1)
    else:
        signed = where(is_negative, code + MOST + 1, code)
    return tensor(cast(signed, types.uint8).handle, value.type.with_element(target))


def _usual(size: tensor, layout: _Format) -> tensor:
    """Rounding the mantissa may carry into the exponent, of a NaN with all bits set past it; then the bias changes."""
    bits, shift = minimum(reinterpret(size, types.int32), F32_INFINITY), F32_MANTISSA - layout.mantissa
    rounded = (bits + ((1 << (shift - 1)) - 1) + ((bits >> shift) & 1)) >> shift
    return rounded - ((F32_BIAS - layout.bias) << layout.mantissa)


def _small(size: tensor, layout: _Format) -> tensor:
    """Adding a number whose last place is that of the smallest ones leaves their count in its last bits."""
    exponent = F32_MANTISSA + 1 - layout.bias - layout.mantissa
    return reinterpret(size + 2.0**exponent, types.int32) - ((exponent + F32_BIAS) << F32_MANTISSA)
