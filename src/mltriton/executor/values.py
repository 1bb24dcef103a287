"""How the executor holds values in numpy, and how they lie in memory.

Level: all. A scalar is a numpy scalar and a block an array of the same dtype; bf16 and fp8 values are held as float32
numbers that the type can represent exactly, so that arithmetic is "compute in float32, round" (`rounder`), as the
hardware does it. In memory they are bit patterns (`encode`, `decode`).

    type             value      memory
    i1               bool       uint8 (0 or 1)
    i8 .. i64        int8 ..    the same (signless: operations say how they read it)
    index, pointer   int64      int64
    f16, f32, f64    float16 .. the same
    bf16             float32    uint16
    f8E4M3FN/E5M2    float32    uint8
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from mltriton.errors import ExecutionError
from mltriton.ir.types import (
    BF16,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    F64,
    FloatType,
    IndexType,
    IntegerType,
    PointerType,
    Type,
)

Array = Any  # a numpy array or scalar: every function here takes both

_where: Callable[..., Array] = np.where
_INTEGERS = {1: np.dtype(np.bool_), 8: np.dtype(np.int8), 16: np.dtype(np.int16), 32: np.dtype(np.int32)}
_FLOATS = {F16: np.dtype(np.float16), F64: np.dtype(np.float64)}
_BITS = {BF16: np.dtype(np.uint16), F8E4M3: np.dtype(np.uint8), F8E5M2: np.dtype(np.uint8)}
_INT64, _FLOAT32 = np.dtype(np.int64), np.dtype(np.float32)


@cache
def value_dtype(type: Type) -> np.dtype[Any]:
    """The dtype of a value of scalar type `type`; ExecutionError for a type that has no numpy form."""
    if isinstance(type, IntegerType) and (type.width in _INTEGERS or type.width == 64):
        return _INTEGERS.get(type.width, _INT64)
    if isinstance(type, FloatType):
        return _FLOATS.get(type, _FLOAT32)
    if isinstance(type, PointerType | IndexType):
        return _INT64
    raise ExecutionError(f"the executor has no values of type {type}")


@cache
def memory_dtype(type: Type) -> np.dtype[Any]:
    """The dtype of an element of scalar type `type` in memory."""
    value = value_dtype(type)
    return np.dtype(np.uint8) if value == np.bool_ else _BITS.get(type, value) if isinstance(type, FloatType) else value


def scalar(value: Any, type: Type) -> Array:
    """A Python or numpy number as a scalar of `type`: integers wrap, floats round."""
    if isinstance(type, FloatType):
        return rounder(type)(np.float64(value)).astype(value_dtype(type))
    dtype = value_dtype(type)
    if dtype == np.bool_:
        return np.bool_(int(value) & 1)
    return np.array(int(value) & ((1 << 64) - 1), np.uint64).astype(dtype)[()]


def choose(condition: Any, true: Any, false: Any) -> Array:
    """Element by element; scalars give a scalar."""
    return _where(condition, true, false)[()]


def is_block(value: Any) -> bool:
    """Whether a value is a block, not a scalar."""
    return isinstance(value, np.ndarray)


def encode(values: Array, type: Type) -> Array:
    """The bits that values of `type` have in memory."""
    if type in _ENCODERS:
        return _ENCODERS[type](values)
    return values.astype(np.uint8) if values.dtype == np.bool_ else values


def decode(bits: Array, type: Type) -> Array:
    """The values of `type` that bits in memory stand for."""
    if type in _DECODERS:
        return _DECODERS[type](bits)
    return bits != 0 if isinstance(type, IntegerType) and type.width == 1 else bits


@cache
def rounder(type: Type) -> Callable[[Array], Array]:
    """The function that rounds floats of any width to `type` (nearest, ties to even), in the dtype of its values."""
    if type is BF16:
        return round_bf16
    if type in _SMALL:
        return lambda values: _SMALL[type].round(values)
    dtype = value_dtype(type)
    return lambda values: values.astype(dtype)


def is_wide(type: Type) -> bool:
    """Whether numpy's own dtype is the type, so that results of numpy arithmetic need no further rounding."""
    return type in (F16, F32, F64)


def round_bf16(values: Array) -> Array:
    """Round to bf16, ties to even; NaN stays NaN."""
    bits = _odd_float32(values).view(np.uint32)
    rounded = (bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))) & np.uint32(0xFFFF0000)
    quiet = (bits | np.uint32(0x400000)) & np.uint32(0xFFFF0000)
    return choose(np.isnan(values), quiet, rounded).view(np.float32)


def round_to_zero(values: Array, type: Type) -> Array:
    """Round to the narrower `type` towards zero."""
    nearest = rounder(type)(values)
    too_far = np.abs(nearest.astype(np.float64)) > np.abs(values.astype(np.float64))
    bits = encode(nearest, type)
    integer = bits.view(f"u{bits.dtype.itemsize}")
    stepped = (integer - too_far.astype(integer.dtype)).view(bits.dtype)
    return decode(stepped, type)


def _odd_float32(values: Array) -> Array:
    """float32 such that rounding it again to a narrower type rounds only once.

    An inexact float64 becomes its odd neighbour (round to odd).
    """
    if values.dtype != np.float64:
        return values.astype(np.float32)
    nearest = values.astype(np.float32)
    inexact = (nearest.astype(np.float64) != values) & np.isfinite(values)
    away = inexact & (np.abs(nearest.astype(np.float64)) > np.abs(values))
    bits = nearest.view(np.uint32) - away.astype(np.uint32)
    return (bits | inexact.astype(np.uint32)).view(np.float32)


def _encode_bf16(values: Array) -> Array:
    return (values.view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def _decode_bf16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


class SmallFloat:
    """An 8-bit float, by tables. Rounding saturates at the largest finite number, as the conversions of GPUs do.

    NaN stays, and in memory infinity (where there is one).
    """

    def __init__(self, exponent_bits: int, mantissa_bits: int, largest: int, infinity: int | None, nan: int) -> None:
        codes = np.arange(largest + 1)
        exponent, mantissa = codes >> mantissa_bits, codes & ((1 << mantissa_bits) - 1)
        bias, fraction = (1 << (exponent_bits - 1)) - 1, mantissa / (1 << mantissa_bits)
        self.magnitudes = np.where(
            exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias)
        )
        positive = np.full(128, np.nan)
        positive[: largest + 1] = self.magnitudes
        if infinity is not None:
            positive[infinity] = np.inf
        self.values = np.concatenate([positive, -positive]).astype(np.float32)
        self.infinity = largest if infinity is None else infinity
        self.nan = nan

    def encode(self, values: Array) -> Array:
        """The nearest code, ties to even."""
        magnitude = np.abs(np.asarray(values, np.float64))
        lower = np.clip(np.searchsorted(self.magnitudes, magnitude, side="right") - 1, 0, len(self.magnitudes) - 2)
        down, up = magnitude - self.magnitudes[lower], self.magnitudes[lower + 1] - magnitude
        code = lower + ((up < down) | ((up == down) & (lower % 2 == 1)))
        code = np.where(np.isinf(magnitude), self.infinity, np.where(np.isnan(magnitude), self.nan, code))
        return (code + 128 * np.signbit(values)).astype(np.uint8)[()]

    def decode(self, bits: Array) -> Array:
        """The numbers of codes."""
        return self.values[bits]

    def round(self, values: Array) -> Array:
        """The nearest finite numbers of the format."""
        return self.decode(self.encode(np.clip(values, -self.magnitudes[-1], self.magnitudes[-1])))


_SMALL: dict[Type, SmallFloat] = {
    F8E4M3: SmallFloat(4, 3, largest=0x7E, infinity=None, nan=0x7F),
    F8E5M2: SmallFloat(5, 2, largest=0x7B, infinity=0x7C, nan=0x7E),
}
_ENCODERS: dict[Type, Callable[[Array], Array]] = {
    BF16: _encode_bf16,
    F8E4M3: _SMALL[F8E4M3].encode,
    F8E5M2: _SMALL[F8E5M2].encode,
}
_DECODERS: dict[Type, Callable[[Array], Array]] = {
    BF16: _decode_bf16,
    F8E4M3: _SMALL[F8E4M3].decode,
    F8E5M2: _SMALL[F8E5M2].decode,
}


def to_bfloat16(values: Array) -> Array:
    """Floats as bf16 bit patterns (uint16), the form in which numpy arrays of bf16 are given to `run`."""
    return _encode_bf16(round_bf16(np.asarray(values)))


def from_bfloat16(bits: Array) -> Array:
    """bf16 bit patterns (uint16) as float32."""
    return _decode_bf16(np.asarray(bits, np.uint16))
