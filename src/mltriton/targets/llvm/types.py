"""LLVM types and typed values as immutable data.

Level: `llvm`. A `Type` is a scalar or a fixed vector of one, a `Value` is a piece of LLVM text that has a type: an SSA
name or a constant. One lane always means the scalar itself; `<1 x T>` is never produced.
Guarantees: the text of a constant is exact (floats are written as bit patterns).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple


class Type(NamedTuple):
    """`element` ("float", "i32", "ptr", "void", ...) or, for more than one lane, a vector of it (see `vector`)."""

    element: str
    lanes: int
    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def bits(self) -> int:
        """Width of one element in bits."""
        return element_bits(self.element)

    @property
    def bytes(self) -> int:
        """Bytes one value takes in memory (an i1 takes one)."""
        return max(self.bits // 8, 1) * self.lanes

    @property
    def is_float(self) -> bool:
        """Whether elements are floating-point numbers."""
        return self.element in _FLOAT_SUFFIX

    @property
    def is_vector(self) -> bool:
        """Whether there is more than one lane."""
        return self.lanes > 1

    @property
    def suffix(self) -> str:
        """The type as intrinsic names spell it: `f32`, `v16f32`, `p0`."""
        element = _SUFFIX.get(self.element, self.element)
        return f"v{self.lanes}{element}" if self.is_vector else element

    @property
    def scalar(self) -> Type:
        """The type of one lane."""
        return vector(self.element, 1)

    def with_lanes(self, lanes: int) -> Type:
        """The same element with another lane count."""
        return vector(self.element, lanes)

    def with_element(self, element: str) -> Type:
        """The same lane count with another element."""
        return vector(element, self.lanes)


# Pointers to private memory (a stack), to arrays, to constants and to memory that a workgroup shares; the numbers are
# those of OpenCL's address spaces.
_POINTERS = {"ptr": "p0", **{f"ptr addrspace({space})": f"p{space}" for space in (1, 2, 3, 4)}}
_BITS = {"float": 32, "double": 64, "half": 16, "bfloat": 16, "void": 0, **dict.fromkeys(_POINTERS, 64)}
_FLOAT_SUFFIX = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}
_SUFFIX = {**_POINTERS, **_FLOAT_SUFFIX}


@cache
def element_bits(element: str) -> int:
    """Width in bits of an LLVM scalar type by its name; ValueError for other names."""
    if element in _BITS:
        return _BITS[element]
    if element[0] == "i" and element[1:].isdigit():
        return int(element[1:])
    raise ValueError(f"LLVM element type {element!r} is not known here")


@cache
def vector(element: str, lanes: int) -> Type:
    """`lanes` elements; one lane gives the scalar type."""
    element_bits(element)
    return Type(element, lanes, element if lanes == 1 else f"<{lanes} x {element}>")


VOID = vector("void", 1)
PTR = vector("ptr", 1)
GLOBAL_PTR = vector("ptr addrspace(1)", 1)
CONSTANT_PTR = vector("ptr addrspace(2)", 1)
SHARED_PTR = vector("ptr addrspace(3)", 1)
I1 = vector("i1", 1)
I8 = vector("i8", 1)
I16 = vector("i16", 1)
I32 = vector("i32", 1)
I64 = vector("i64", 1)
F16 = vector("half", 1)
BF16 = vector("bfloat", 1)
F32 = vector("float", 1)
F64 = vector("double", 1)


class Value(NamedTuple):
    """An SSA name or constant of a type. `literal` is the number behind a constant (for every lane), else None;
    `elements` are the numbers of a constant vector, each of its own.
    """

    type: Type
    text: str
    literal: int | float | None = None
    elements: tuple[int | float, ...] = ()

    def __str__(self) -> str:
        """The operand with its type, as instructions spell it."""
        return f"{self.type.text} {self.text}"


def constant(type_: Type, number: int | float) -> Value:
    """`number` in every lane of `type_`. Integers wrap to the width; floats are rounded to nearest."""
    if not type_.is_float:
        return _whole(type_, int(number))
    number = float(number)
    return _of_text(type_, _float_text(type_.element, number), number, _is_positive_zero(number))


@cache
def _whole(type_: Type, number: int) -> Value:
    number = _wrap(number, type_.bits)
    text = str(number) if type_.bits > 1 else ("true" if number else "false")
    return _of_text(type_, text, number, number == 0)


def _of_text(type_: Type, text: str, number: int | float, is_zero: bool) -> Value:
    if type_.is_vector:
        text = "zeroinitializer" if is_zero else f"splat ({type_.element} {text})"
    return Value(type_, text, number)


def integers(element: str, numbers: Sequence[int] | range) -> Value:
    """A constant vector of the given integers, such as the lane numbers."""
    return listed(vector(element, 1), numbers)


def listed(scalar: Type, numbers: Sequence[int | float]) -> Value:
    """A constant vector of the given numbers; of one number, a scalar."""
    if len(numbers) == 1:
        return constant(scalar, numbers[0])
    texts = (constant(scalar, number).text if scalar.is_float else str(int(number)) for number in numbers)
    lanes = ", ".join(f"{scalar.element} {text}" for text in texts)
    return Value(scalar.with_lanes(len(numbers)), f"<{lanes}>", None, tuple(numbers))


def poison(type_: Type) -> Value:
    """A value nobody may look at."""
    return Value(type_, "poison")


def bits_of(type_: Type, number: int | float) -> int:
    """The bits of a number as an element of a type, without a sign."""
    if not type_.is_float:
        return int(number) & (1 << type_.bits) - 1
    if type_.element == "bfloat":
        return bfloat16_bits(number)
    if type_.element == "half":
        return _half_bits(number)
    if type_.element == "float":
        return int.from_bytes(struct.pack("<f", _to_f32(number)), "little")
    return int.from_bytes(struct.pack("<d", number), "little")


def bfloat16_bits(number: float) -> int:
    """The bits of `number` as bf16, rounded to nearest even; NaN keeps its sign and becomes quiet."""
    bits = struct.unpack("<I", struct.pack("<f", _to_f32(number)))[0]
    if number != number:
        return (bits >> 16) | 0x40
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def _wrap(number: int, bits: int) -> int:
    if bits == 1:
        return number & 1
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def _is_positive_zero(number: int | float) -> bool:
    return struct.pack("<d", number) == bytes(8)


def _to_f32(number: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _float_text(element: str, number: float) -> str:
    if element in ("half", "bfloat"):
        return f"0x{'H' if element == 'half' else 'R'}{bits_of(vector(element, 1), number):04X}"
    return f"0x{bits_of(F64, _to_f32(number) if element == 'float' else number):016X}"


def _half_bits(number: float) -> int:
    try:
        return struct.unpack("<H", struct.pack("<e", number))[0]
    except OverflowError:
        return 0x7C00 if number > 0 else 0xFC00
