"""The bits of float types: rounding a Python float to a type, and between values and bit patterns.

Level: all. Takes and returns Python floats, which hold every value of every supported type exactly. Rounding is to
nearest even. Rounding to fp8 saturates, as conversions of GPUs do: what is too large becomes the largest finite number.
A conversion (`convert_float`) does so with infinity too; the infinity of f8E5M2 itself keeps its bits. The payload of a
NaN is not kept. Source: IEEE 754 and "FP8 Formats for Deep Learning" (f8E4M3FN, f8E5M2).
"""

from __future__ import annotations

import math
import struct

from mltriton.ir.types import FloatType
from mltriton.records import NamedTuple


class FloatFormat(NamedTuple):
    """`exponent` and `mantissa` bits.

    `finite`: the all-ones exponent holds numbers too, and only the all-ones mantissa is NaN. `saturates`: a number that
    is too large becomes the largest one.
    """

    exponent: int
    mantissa: int
    finite: bool = False
    saturates: bool = False

    @property
    def bias(self) -> int:
        """What is added to the exponent."""
        return (1 << (self.exponent - 1)) - 1

    @property
    def nan(self) -> int:
        """The canonical NaN."""
        all_ones = ((1 << self.exponent) - 1) << self.mantissa
        return all_ones | ((1 << self.mantissa) - 1 if self.finite else 1 << (self.mantissa - 1))

    @property
    def special(self) -> int:
        """The first magnitude that is no finite number: infinity, or NaN without infinities."""
        return self.nan if self.finite else ((1 << self.exponent) - 1) << self.mantissa

    @property
    def overflow(self) -> int:
        """What a finite magnitude becomes that is too large."""
        return self.special - 1 if self.saturates else self.special

    @property
    def infinity(self) -> int:
        """The bits of infinity, or of what stands for it in a type that has none."""
        return self.overflow if self.finite else self.special


FORMATS: dict[str, FloatFormat] = {
    "f8E4M3FN": FloatFormat(4, 3, finite=True, saturates=True),
    "f8E5M2": FloatFormat(5, 2, saturates=True),
    "f16": FloatFormat(5, 10),
    "bf16": FloatFormat(8, 7),
    "f32": FloatFormat(8, 23),
    "f64": FloatFormat(11, 52),
}


def float_to_bits(value: float, type: FloatType) -> int:
    """The bit pattern of `value` rounded to `type`."""
    if type.name == "f64":
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    layout = FORMATS[type.name]
    sign = (math.copysign(1.0, value) < 0) << (type.width - 1)
    return sign | _magnitude_bits(abs(value), layout)


def _magnitude_bits(value: float, layout: FloatFormat) -> int:
    if math.isnan(value):
        return layout.nan
    if math.isinf(value):
        return layout.infinity
    if value == 0.0:
        return 0
    lowest = 1 - layout.bias
    exponent = max(math.frexp(value)[1] - 1, lowest)
    # Scaling by a power of two is exact, and Python rounds half to even.
    # The implicit leading bit carries into the exponent field by itself.
    steps = round(math.ldexp(value, layout.mantissa - exponent))
    bits = ((exponent - lowest) << layout.mantissa) + steps
    return min(bits, layout.overflow)


def bits_to_float(bits: int, type: FloatType) -> float:
    """The value of a bit pattern of `type`."""
    if type.name == "f64":
        return struct.unpack("<d", struct.pack("<Q", bits))[0]
    layout = FORMATS[type.name]
    sign = -1.0 if bits >> (type.width - 1) & 1 else 1.0
    mantissa = bits & ((1 << layout.mantissa) - 1)
    exponent = bits >> layout.mantissa & ((1 << layout.exponent) - 1)
    if bits & layout.special == layout.special:
        return math.nan if layout.finite or mantissa else math.copysign(math.inf, sign)
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - layout.bias - layout.mantissa)
    return sign * math.ldexp(mantissa + (1 << layout.mantissa), exponent - layout.bias - layout.mantissa)


def round_float(value: float, type: FloatType) -> float:
    """`value` rounded to `type`, as a Python float."""
    return value if type.name == "f64" else bits_to_float(float_to_bits(value, type), type)


def convert_float(value: float, type: FloatType) -> float:
    """`value` converted to `type` as an operation of a kernel: in fp8 infinity becomes the largest number too."""
    layout = FORMATS[type.name]
    if layout.saturates and math.isinf(value):
        return math.copysign(bits_to_float(layout.overflow, type), value)
    return round_float(value, type)


def decimal_text(value: float, type: FloatType) -> str:
    """Text that reads back as exactly `value` rounded to `type`.

    `1.500000e+00`, with more digits where six are too few; infinities and NaN are their bits in hexadecimal.
    """
    value = round_float(value, type)
    if math.isfinite(value):
        for digits in (6, 8, 16):
            text = f"{value:.{digits}e}"
            if round_float(float(text), type) == value:
                return text
    return f"0x{float_to_bits(value, type):0{type.width // 4}X}"
