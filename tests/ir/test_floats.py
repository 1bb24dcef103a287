"""Bits of float types against numpy and against the definition of the formats."""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mltriton.executor.values import encode, rounder
from mltriton.ir.floats import FORMATS, bits_to_float, convert_float, decimal_text, float_to_bits, round_float
from mltriton.ir.types import BF16, F8E4M3, F8E5M2, F16, F32, F64, FLOATS, FloatType

NARROW = [F8E4M3, F8E5M2, F16, BF16]


@cache
def finite_values(type: FloatType) -> list[float]:
    """Every finite value of a narrow type, from the definition: sign, exponent, mantissa."""
    layout = FORMATS[type.name]
    values: list[float] = []
    for exponent in range(1 << layout.exponent):
        for mantissa in range(1 << layout.mantissa):
            special = exponent == (1 << layout.exponent) - 1
            if special and not (layout.finite and mantissa < (1 << layout.mantissa) - 1):
                continue
            leading, power = (0, 1) if exponent == 0 else (1, exponent)
            significand = leading + mantissa / (1 << layout.mantissa)
            values.append(math.ldexp(significand, power - layout.bias))
    return values


@pytest.mark.parametrize("type", NARROW, ids=str)
def test_every_bit_pattern_reads_and_writes_back(type: FloatType) -> None:
    values = [bits_to_float(bits, type) for bits in range(1 << type.width)]
    for bits, value in enumerate(values):
        assert math.isnan(value) or float_to_bits(value, type) == bits
    positive = [value for value in values[: 1 << (type.width - 1)] if math.isfinite(value)]
    assert positive == finite_values(type)


@pytest.mark.parametrize(("type", "largest", "infinity"), [(F8E4M3, 448.0, 448.0), (F8E5M2, 57344.0, math.inf)])
def test_fp8_saturates(type: FloatType, largest: float, infinity: float) -> None:
    assert max(finite_values(type)) == largest
    for value in (largest, largest * 1.01, 2 * largest, 1e30):
        assert round_float(value, type) == largest and round_float(-value, type) == -largest
    assert round_float(math.inf, type) == infinity and round_float(-math.inf, type) == -infinity
    assert convert_float(math.inf, type) == largest and convert_float(-math.inf, type) == -largest
    assert math.isnan(round_float(math.nan, type)) and math.isnan(convert_float(math.nan, type))


@pytest.mark.parametrize("type", [F8E4M3, F8E5M2], ids=str)
@given(value=st.floats(width=32))
def test_fp8_is_rounded_as_the_executor_does(type: FloatType, value: float) -> None:
    executed = encode(rounder(type)(np.float32(value)), type)
    assert int(executed) == float_to_bits(convert_float(value, type), type) or math.isnan(value)


@given(st.floats(), st.sampled_from(NARROW))
def test_rounding_is_to_the_nearest_even(value: float, type: FloatType) -> None:
    rounded = round_float(value, type)
    if not math.isfinite(value):
        saturated = math.copysign(448.0, value) if type is F8E4M3 and math.isinf(value) else value
        assert repr(rounded) == repr(saturated)
        return
    known = finite_values(type)
    if abs(value) >= known[-1] or not math.isfinite(rounded):
        assert abs(value) >= known[-1]
        return
    above = bisect_right(known, abs(value))
    distances = {c: abs(Fraction(abs(value)) - Fraction(c)) for c in known[above - 1 : above + 1]}
    best = [c for c, distance in distances.items() if distance == min(distances.values())]
    assert abs(rounded) in best and (len(best) == 1 or float_to_bits(abs(rounded), type) % 2 == 0)
    assert math.copysign(1, rounded) == math.copysign(1, value)


@given(st.floats())
def test_f16_and_f32_agree_with_numpy(value: float) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        for type, numpy_type in ((F16, np.float16), (F32, np.float32)):
            expected = numpy_type(value)
            if math.isnan(value):
                assert math.isnan(round_float(value, type))
            else:
                assert float_to_bits(value, type) == int(expected.view(f"u{expected.itemsize}"))


@given(st.floats(width=32))
def test_bf16_is_the_upper_half_of_f32(value: float) -> None:
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if math.isnan(value):
        assert math.isnan(round_float(value, BF16))
    else:
        assert float_to_bits(value, BF16) == (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


@given(st.sampled_from(sorted(FLOATS)), st.integers(0, 2**64 - 1))
def test_text_reads_back_as_the_same_bits(name: str, pattern: int) -> None:
    type = FLOATS[name]
    bits = pattern & ((1 << type.width) - 1)
    value = bits_to_float(bits, type)
    text = decimal_text(value, type)
    if text.startswith("0x"):
        assert not math.isfinite(value)
        again = bits_to_float(int(text, 16), type)
        assert math.isnan(again) if math.isnan(value) else again == value
    else:
        assert float_to_bits(float(text), type) == bits


@pytest.mark.parametrize(
    ("value", "type", "text"),
    [
        (0.1, F32, "1.000000e-01"),
        (1 / 3, F32, "3.33333343e-01"),
        (1 / 3, F64, "3.3333333333333331e-01"),
        (-0.0, F16, "-0.000000e+00"),
        (math.inf, F32, "0x7F800000"),
        (-math.inf, F16, "0xFC00"),
        (math.nan, BF16, "0x7FC0"),
        (math.nan, F8E4M3, "0x7F"),
    ],
)
def test_decimal_text(value: float, type: FloatType, text: str) -> None:
    assert decimal_text(value, type) == text
