"""Floats of 8 and 16 bits: conversions from and to f32.

Level: `llvm`. f16, bf16 and fp8 values travel through the code as integers of their width; arithmetic on them is
"widen, compute in f32, narrow", as the levels above define it.
Guarantees: widening is exact; narrowing rounds to nearest even and keeps denormals; too large numbers become infinity,
or in fp8 the largest finite one, as on GPUs. Works for any lane count; only f16 may have
instructions (`f16_conversion`).
"""

from __future__ import annotations

from mltriton.ir.floats import FORMATS, FloatFormat
from mltriton.targets.llvm.types import Value, constant
from mltriton.targets.llvm.writer import Function

_F32 = FORMATS["f32"]
_INFINITY = 0x7F800000
_MAGNITUDE = 0x7FFFFFFF


def widen(function: Function, f16_conversion: bool, bits: Value, name: str) -> Value:
    """The f32 of values of the type `name` ("f16", "bf16", "f8E4M3FN", "f8E5M2") given as integers."""
    layout, f32, half_type = FORMATS[name], bits.type.with_element("float"), bits.type.with_element("half")
    i32 = bits.type.with_element("i32")
    if name == "f16" and f16_conversion:
        return function.cast("fpext", function.bitcast(bits, half_type), f32)
    wide = function.cast("zext", bits, i32)
    if name == "bf16":
        return function.bitcast(function.shl(wide, 16), f32)
    if name == "f8E5M2" and f16_conversion:  # the upper half of an f16
        half = function.bitcast(function.shl(function.cast("zext", bits, bits.type.with_element("i16")), 8), half_type)
        return function.cast("fpext", half, f32)
    width = layout.exponent + layout.mantissa
    magnitude = function.and_(wide, (1 << width) - 1)
    sign = function.shl(function.and_(wide, 1 << width), 31 - width)
    moved = function.shl(magnitude, _F32.mantissa - layout.mantissa)
    normal = function.add(moved, (_F32.bias - layout.bias) << _F32.mantissa)
    # A denormal is the mantissa of a number with the least exponent, less that number's own: arithmetic with denormals
    # of f32 would take the processor a hundred cycles.
    least = _F32.bias - layout.bias + 1
    one = constant(f32, 2.0 ** (least - _F32.bias))
    small = function.fsub(function.bitcast(function.or_(moved, least << _F32.mantissa), f32), one)
    is_small = function.icmp("ult", magnitude, 1 << layout.mantissa)
    result = function.select(is_small, function.bitcast(small, i32), normal)
    # The all-ones exponent: infinity and NaN keep their mantissa; without infinities only the last code is NaN.
    special = function.icmp("uge", magnitude, layout.special)
    ones = _INFINITY | (0x400000 if layout.finite else 0)
    result = function.or_(result, function.select(special, constant(i32, ones), constant(i32, 0)))
    return function.bitcast(function.or_(result, sign), f32)


def narrow(function: Function, f16_conversion: bool, value: Value, name: str, toward_zero: bool = False) -> Value:
    """f32 or f64 values rounded to the type `name`, as integers of its width."""
    if value.type.element == "double":
        value = _round_to_odd(function, value)
    nearest = _nearest(function, f16_conversion, value, name)
    if not toward_zero:
        return nearest
    back = widen(function, f16_conversion, nearest, name)
    too_far = function.fcmp("ogt", _absolute(function, back), _absolute(function, value))
    return function.sub(nearest, function.cast("zext", too_far, nearest.type))


def _nearest(function: Function, f16_conversion: bool, value: Value, name: str) -> Value:
    layout = FORMATS[name]
    narrow_type = value.type.with_element("i16" if name in ("f16", "bf16") else "i8")
    if name == "f16" and f16_conversion:
        return function.bitcast(function.cast("fptrunc", value, value.type.with_element("half")), narrow_type)
    i32 = value.type.with_element("i32")
    bits = function.bitcast(value, i32)
    if name == "bf16":
        rounded = function.lshr(_add_half(function, bits, 16), 16)
        quiet = function.or_(function.lshr(bits, 16), 0x40)
        return function.cast("trunc", function.select(function.fcmp("uno", value, value), quiet, rounded), narrow_type)
    width = layout.exponent + layout.mantissa
    magnitude = function.and_(bits, _MAGNITUDE)
    result = function.select(
        function.icmp("ult", magnitude, (1 - layout.bias + _F32.bias) << _F32.mantissa),
        _denormal(function, function.bitcast(magnitude, value.type), layout),
        _normal(function, magnitude, layout),
    )
    limit = constant(i32, layout.overflow)
    result = function.select(function.icmp("ult", result, limit), result, limit)
    result = function.select(function.fcmp("uno", value, value), constant(i32, layout.nan), result)
    sign = function.and_(function.lshr(bits, 31 - width), 1 << width)
    return function.cast("trunc", function.or_(result, sign), narrow_type)


def _normal(function: Function, magnitude: Value, layout: FloatFormat) -> Value:
    """Round the mantissa (a carry goes into the exponent), then change the exponent's bias."""
    shift = _F32.mantissa - layout.mantissa
    rounded = function.lshr(_add_half(function, magnitude, shift), shift)
    return function.sub(rounded, (_F32.bias - layout.bias) << layout.mantissa)


def _denormal(function: Function, magnitude: Value, layout: FloatFormat) -> Value:
    """Adding a float whose last place is the smallest denormal leaves the count of these in the low bits."""
    exponent = _F32.mantissa + 1 - layout.bias - layout.mantissa
    shifted = function.fadd(magnitude, constant(magnitude.type, 2.0**exponent))
    bits = function.bitcast(shifted, magnitude.type.with_element("i32"))
    return function.sub(bits, (exponent + _F32.bias) << _F32.mantissa)


def _add_half(function: Function, bits: Value, shift: int) -> Value:
    """What, cut off by `shift` bits, is rounded to nearest even."""
    odd = function.and_(function.lshr(bits, shift), 1)
    return function.add(function.add(bits, (1 << (shift - 1)) - 1), odd)


def _round_to_odd(function: Function, value: Value) -> Value:
    """The f32 of an f64, its last bit set where it is inexact: rounding it once more then rounds only once."""
    bits = _truncated(function, value)
    back = function.cast("fpext", function.bitcast(bits, value.type.with_element("float")), value.type)
    inexact = function.cast("zext", function.fcmp("one", back, value), bits.type)
    return function.bitcast(function.or_(bits, inexact), value.type.with_element("float"))


def truncated(function: Function, value: Value) -> Value:
    """The f32 of an f64, rounded to zero."""
    return function.bitcast(_truncated(function, value), value.type.with_element("float"))


def _truncated(function: Function, value: Value) -> Value:
    """The bits of what `truncated` gives."""
    i32 = value.type.with_element("i32")
    nearest = function.cast("fptrunc", value, value.type.with_element("float"))
    away = function.fcmp(
        "ogt", _absolute(function, function.cast("fpext", nearest, value.type)), _absolute(function, value)
    )
    return function.sub(function.bitcast(nearest, i32), function.cast("zext", away, i32))


def _absolute(function: Function, value: Value) -> Value:
    return function.intrinsic("llvm.fabs", value.type, value)
