"""Attributes: compile-time constants that operations carry.

Level: all. Takes Python values; guarantees immutable interned objects (equality is identity). Text form:
`ir/printer.py` and `ir/parser.py`. Layout encodings (`layouts/encodings.py`) are attributes as well.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from mltriton.ir.interned import InternedBase
from mltriton.records import NamedTuple

if TYPE_CHECKING:
    from mltriton.ir.types import Type


class Attribute(InternedBase):
    """Base of all attributes."""

    __slots__ = ()

    def __str__(self) -> str:
        from mltriton.ir.attribute_text import attribute_text  # Writing needs every attribute.

        return attribute_text(self)


class IntegerAttr(Attribute):
    """An integer of a type: `1 : i32`; of type i1 it prints as `true` or `false`. The value is signed, except i1 (0
    or 1).
    """

    value: int
    type: Type


class FloatAttr(Attribute):
    """A float of a type: `1.000000e+00 : f32`. The value is exact in double precision and already rounded to the
    type.
    """

    value: float
    type: Type

    def intern_key(self) -> tuple[Any, ...]:
        return (struct.pack("<d", self.value), self.type)


class StringAttr(Attribute):
    """A string: `"text"`."""

    value: str


class UnitAttr(Attribute):
    """Present or absent: prints as its bare name."""


class TypeAttr(Attribute):
    """A type as an attribute."""

    type: Type


class SymbolRefAttr(Attribute):
    """A reference to a symbol: `@name`."""

    name: str


class ArrayAttr(Attribute):
    """A list of attributes: `[1 : i32, "a"]`."""

    elements: tuple[Attribute, ...]


class DenseArrayAttr(Attribute):
    """A list of plain integers of one type: `array<i32: 0, 1>`."""

    values: tuple[int, ...]
    element_type: Type


class DictAttr(Attribute):
    """Named attributes: `{a = 1 : i32, b}`; used for function argument attributes."""

    entries: tuple[tuple[str, Attribute], ...]

    def get(self, name: str) -> Attribute | None:
        """The entry of that name, or None."""
        return dict(self.entries).get(name)


class DenseAttr(Attribute):
    """A tensor constant `dense<...> : tensor<...>`. `values` has one element (a splat) or one for each element in
    row-major order.
    """

    values: tuple[int | float, ...]
    type: Type

    def intern_key(self) -> tuple[Any, ...]:
        return (tuple(struct.pack("<d", v) if isinstance(v, float) else int(v) for v in self.values), self.type)

    @property
    def is_splat(self) -> bool:
        """Whether one value stands for every element."""
        return len(self.values) == 1

    @property
    def splat(self) -> int | float:
        """The value of a splat."""
        return self.values[0]


class OpaqueAttr(Attribute):
    """An attribute of a dialect that has no class here, kept as its text: `#ttg.shared_memory`."""

    text: str


class EnumAttr(Attribute):
    """One case of an enumeration in `ENUMS`: its keyword in readable text, its integer code in generic text."""

    kind: str
    case: str

    @property
    def code(self) -> int:
        """The integer that generic text shows."""
        return ENUMS[self.kind].cases[self.case]

    @property
    def bits(self) -> int:
        """Width of the integer in generic text."""
        return ENUMS[self.kind].bits


Default = TypeVar("Default")


def integer_in(attributes: Mapping[str, Attribute], name: str, default: Default) -> int | Default:
    """The integer of that name; `default` where there is none."""
    found = attributes.get(name)
    return found.value if isinstance(found, IntegerAttr) else default


def string_in(attributes: Mapping[str, Attribute], name: str, default: Default) -> str | Default:
    """The string of that name; `default` where there is none."""
    found = attributes.get(name)
    return found.value if isinstance(found, StringAttr) else default


class Enum(NamedTuple):
    """An enumeration: keyword -> integer code, and the width that generic text gives the code."""

    bits: int
    cases: dict[str, int]


def _numbered(bits: int, first: int, *names: str) -> Enum:
    return Enum(bits, {name: first + i for i, name in enumerate(names)})


# Codes are those of MLIR's arith dialect and of upstream's TritonAttrDefs.td.
ENUMS: dict[str, Enum] = {
    "cmpi": _numbered(64, 0, "eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"),
    "cmpf": _numbered(
        64,
        0,
        "false",
        "oeq",
        "ogt",
        "oge",
        "olt",
        "ole",
        "one",
        "ord",
        "ueq",
        "ugt",
        "uge",
        "ult",
        "ule",
        "une",
        "uno",
        "true",
    ),
    "axis": _numbered(32, 0, "x", "y", "z"),
    "cache": _numbered(32, 1, "none", "ca", "cg", "wb", "cs", "wt", "cv"),
    "evict": _numbered(32, 1, "evict_normal", "evict_first", "evict_last"),
    "padding": _numbered(32, 1, "pad_zero", "pad_nan"),
    "rmw": _numbered(32, 1, "and", "or", "xor", "add", "fadd", "max", "min", "umax", "umin", "exch"),
    "sem": _numbered(32, 1, "relaxed", "acquire", "release", "acq_rel"),
    "scope": _numbered(32, 1, "gpu", "cta", "sys"),
    "precision": _numbered(32, 0, "tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
    "rounding": _numbered(32, 0, "rtz", "rtne"),
    "scale_format": _numbered(32, 0, "e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "bf16", "fp16"),
    "descriptor_reduce": _numbered(32, 1, "add", "min", "max", "inc", "dec", "and", "or", "xor", "umin", "umax"),
    "tile_layout": _numbered(32, 0, "row", "column"),
    "tiling": _numbered(32, 0, "square", "horizontal", "vertical"),
}
