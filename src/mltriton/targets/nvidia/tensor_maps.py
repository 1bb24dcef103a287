"""The tensor maps that a launch passes to a kernel: which ones, what each is of, and how its words are made.

Level: intrinsic -> llvm, and runtime; importing this module loads no compiler module. A number of a map (a size, a
stride, what the base is moved by) is a sum of products of the kernel's parameters. Source: CUDA driver API,
`cuTensorMapEncodeTiled`.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

MAP_BYTES = 128
ALIGNMENT = 64  # of a map; a kernel's parameter has it too
BASE_ALIGNMENT = 16  # bytes, and of strides
MOST_STRIDE, MOST_SIZE = 1 << 40, 1 << 32
UNSIGNED = {1: 0, 2: 1, 4: 2, 8: 4}  # CUtensorMapDataType by bytes: bits are copied, whatever they mean
SIGNED, FLOATS = {4: 3, 8: 5}, {"f16": 6, "f32": 7, "bf16": 9}
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}  # CUtensorMapSwizzle by bytes
PROMOTION = 3  # CU_TENSOR_MAP_L2_PROMOTION_L2_256B

Term = tuple[int, tuple[int, ...]]  # a factor, and the numbers of the parameters that it is multiplied by
Number = tuple[Term, ...]


@dataclass(frozen=True)
class TensorMap:
    """A map: `base` is the number of a parameter, moved by `shift` bytes; sizes and boxes in elements, strides in bytes
    but for the first; all from the fastest dimension on; there is such a map where the numbers `positive` are, too.
    `wide` are the parameters of 64 bits among those of numbers. There is none where a parameter of `apart` is the
    base's array, and none where blocks are `stored` through it to rows that end inside of 16 bytes: the engine writes
    all 16 (seen on an H100, for elements of one to four bytes; what it loads from such rows is right).
    """

    base: int
    element_bytes: int
    shift: Number
    sizes: tuple[Number, ...]
    strides: tuple[Number, ...]
    box: tuple[int, ...]
    swizzle: int
    wide: tuple[int, ...] = ()
    positive: tuple[Number, ...] = ()
    apart: tuple[int, ...] = ()
    stored: bool = False
    combined: int | None = None  # CUtensorMapDataType of elements that are combined with what is there

    def evaluated(self, words: Sequence[int]) -> Evaluated | None:
        """The map for a launch with these words for its parameters; None where there is none."""
        shift = self._value(self.shift, words)
        sizes = tuple(self._value(number, words) for number in self.sizes)
        strides = tuple(self._value(number, words) for number in self.strides)
        if any(self._value(number, words) <= 0 for number in self.positive):
            return None
        if words[self.base] in (words[place] for place in self.apart):
            return None
        if self.stored and sizes[0] * self.element_bytes % BASE_ALIGNMENT:
            return None
        parts = sizes, strides, self.box, self.element_bytes, self.swizzle, self.combined
        made = Evaluated(words[self.base] + shift, *parts)
        return made if made.is_legal else None

    def _value(self, number: Number, words: Sequence[int]) -> int:
        return sum(factor * prod(self._signed(words, place) for place in places) for factor, places in number)

    def _signed(self, words: Sequence[int], place: int) -> int:
        bits = 64 if place in self.wide else 32
        low = words[place] & ((1 << bits) - 1)
        return low - (1 << bits) if low >> (bits - 1) else low

    def encoded(self) -> bytes:
        """As `%Map` of runtime/native/ir/cuda.ll, and its numbers after it."""
        numbers = (*self.positive, self.shift, *self.sizes, *self.strides)
        words = [*self.apart, *(word for number in numbers for word in self._words(number))]
        boxes = (*self.box, *(0,) * (5 - len(self.box)))
        counts = (len(self.positive), len(self.apart), self.element_bytes * self.stored)
        head = (self.base, data_type(self.element_bytes, self.combined), len(self.box), SWIZZLES[self.swizzle], *counts)
        return struct.pack(f"<12I{len(words)}q", *head, *boxes, *words)

    def _words(self, number: Number) -> list[int]:
        """The count of terms, and of each its factor, the count of parameters, and twice their numbers (one more for
        those of 64 bits).
        """
        terms = [
            [factor, len(places), *(2 * place + (place in self.wide) for place in places)] for factor, places in number
        ]
        return [len(terms), *(word for term in terms for word in term)]


@dataclass(frozen=True)
class Evaluated:
    """A map with its numbers known; `strides` are those of the dimensions after the first."""

    base: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_bytes: int
    swizzle: int
    combined: int | None = None

    @property
    def is_legal(self) -> bool:
        """Whether the engine takes it."""
        sizes = all(0 < size <= MOST_SIZE for size in self.sizes)
        strides = all(0 <= stride < MOST_STRIDE and stride % BASE_ALIGNMENT == 0 for stride in self.strides)
        return sizes and strides and self.base % BASE_ALIGNMENT == 0

    def encoded_by(self, encode: Any) -> Any:
        """The map as the kernel takes it, made by the driver's `cuTensorMapEncodeTiled`; None where that refuses."""
        rank, room = len(self.sizes), ctypes.create_string_buffer(MAP_BYTES + ALIGNMENT)
        made = (ctypes.c_char * MAP_BYTES).from_buffer(room, -ctypes.addressof(room) % ALIGNMENT)
        sizes, strides = (ctypes.c_uint64 * rank)(*self.sizes), (ctypes.c_uint64 * rank)(*self.strides, 0)
        box, ones = (ctypes.c_uint32 * rank)(*self.box), (ctypes.c_uint32 * rank)(*(1,) * rank)
        how = (0, SWIZZLES[self.swizzle], PROMOTION, 0)  # not interleaved; elements outside are 0
        kind, base = data_type(self.element_bytes, self.combined), ctypes.c_void_p(self.base)
        return None if encode(made, kind, rank, base, sizes, strides, box, ones, *how) else made


def data_type(element_bytes: int, combined: int | None) -> int:
    """The CUtensorMapDataType of a map's elements."""
    return UNSIGNED[element_bytes] if combined is None else combined


def from_json(values: Sequence[Mapping[str, Any]]) -> tuple[TensorMap, ...]:
    """The maps as `dataclasses.asdict` and JSON leave them."""
    return tuple(TensorMap(**{name: _tuples(value) for name, value in item.items()}) for item in values)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, cast("list[Any]", value))) if isinstance(value, (list, tuple)) else value
