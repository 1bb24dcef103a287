"""Types, attributes and locations as MLIR text.

Level: all. `TextTables` caches the text of interned types and attributes, and gives encodings and locations aliases
when it writes a whole module.
Guarantees: what is written reads back as the same object (`ir/attribute_parser.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from mltriton.ir.attributes import (
    ArrayAttr,
    Attribute,
    DenseArrayAttr,
    DenseAttr,
    DictAttr,
    EnumAttr,
    FloatAttr,
    IntegerAttr,
    OpaqueAttr,
    StringAttr,
    SymbolRefAttr,
    TypeAttr,
    UnitAttr,
)
from mltriton.ir.floats import decimal_text
from mltriton.ir.location import CallSiteLoc, FileLoc, Location, NameLoc
from mltriton.ir.types import (
    FloatType,
    FunctionType,
    IndexType,
    IntegerType,
    MemDescType,
    NoneType,
    PointerType,
    TensorDescType,
    TensorType,
    TokenType,
    Type,
    shape_of,
)
from mltriton.layouts.base import LayoutAttr
from mltriton.layouts.text import encoding_text

_BARE_NAME = re.compile(r"[A-Za-z_][\w$.]*\Z", re.ASCII)
_SYMBOL_NAME = re.compile(r"[A-Za-z_][\w$.-]*\Z", re.ASCII)
_ESCAPES = {'"': r"\22", "\\": r"\\", "\n": r"\0A", "\t": r"\09", "\r": r"\0D"}


class TextTables:
    """Text of types, attributes and locations.

    With `aliases`, encodings and locations are written as aliases, whose definitions collect in `definitions` and
    `location_definitions`, dependencies first.
    """

    def __init__(self, aliases: bool = False) -> None:
        self.aliases = aliases
        self.types: dict[Type, str] = {}
        self.attributes: dict[Attribute, str] = {}
        self.encodings: dict[LayoutAttr, str] = {}
        self.locations: dict[Location, str] = {}
        self.definitions: list[str] = []
        self.location_definitions: list[str] = []
        self._taken: dict[str, int] = {}

    def type(self, type: Type) -> str:
        """The text of a type."""
        text = self.types.get(type)
        if text is None:
            text = self.types[type] = _TYPES[type.__class__](self, type)
        return text

    def type_list(self, types: list[Type] | tuple[Type, ...]) -> str:
        """Several types, separated by commas."""
        return ", ".join(map(self.type, types))

    def results(self, types: list[Type] | tuple[Type, ...]) -> str:
        """What stands after the arrow of a function type: one type bare, otherwise in parentheses."""
        if len(types) == 1 and not isinstance(types[0], FunctionType):
            return self.type(types[0])
        return f"({self.type_list(types)})"

    def attribute(self, attribute: Attribute) -> str:
        """The text of an attribute."""
        text = self.attributes.get(attribute)
        if text is None:
            if isinstance(attribute, LayoutAttr):
                text = self.encoding(attribute)
            else:
                text = _ATTRIBUTES[attribute.__class__](self, attribute)
            self.attributes[attribute] = text
        return text

    def entries(self, entries: Mapping[str, Attribute]) -> str:
        """`a = 1 : i32, b`: named attributes, sorted by name."""
        return ", ".join(self.entry(name, entries[name]) for name in sorted(entries))

    def entry(self, name: str, value: Attribute) -> str:
        """`a = 1 : i32`, or `a` for a unit attribute."""
        key = name if _BARE_NAME.match(name) else quoted(name)
        return key if isinstance(value, UnitAttr) else f"{key} = {self.attribute(value)}"

    def encoding(self, encoding: LayoutAttr) -> str:
        """The alias of an encoding, or its text where there are no aliases."""
        if not self.aliases:
            return encoding_text(encoding)
        alias = self.encodings.get(encoding)
        if alias is None:
            text = encoding_text(encoding, self.encoding)
            alias = self.encodings[encoding] = self._alias(encoding.alias_base)
            self.definitions.append(f"{alias} = {text}\n")
        return alias

    def location(self, location: Location) -> str:
        """What stands inside `loc(...)`: an alias or the location itself."""
        if not self.aliases:
            return self._location_text(location)
        alias = self.locations.get(location)
        if alias is None:
            text = self._location_text(location)
            alias = self.locations[location] = self._alias("loc")
            self.location_definitions.append(f"{alias} = loc({text})\n")
        return alias

    def _location_text(self, location: Location) -> str:
        if isinstance(location, FileLoc):
            return f"{quoted(location.file)}:{location.line}:{location.column}"
        if isinstance(location, CallSiteLoc):
            return f"callsite({self.location(location.callee)} at {self.location(location.caller)})"
        if isinstance(location, NameLoc):
            return f"{quoted(location.name)}({self.location(location.child)})"
        return "unknown"

    def _alias(self, base: str) -> str:
        number = self._taken.get(base, 0)
        self._taken[base] = number + 1
        separator = "_" if base[-1].isdigit() else ""
        return f"#{base}{separator}{number}" if number else f"#{base}"


def type_text(type: Type) -> str:
    """The MLIR text of a type, without aliases."""
    return TextTables().type(type)


def attribute_text(attribute: Attribute) -> str:
    """The MLIR text of an attribute, without aliases; an enumeration case is its integer."""
    return TextTables().attribute(attribute)


def location_text(location: Location) -> str:
    """`loc("file.py":12:4)`."""
    return f"loc({TextTables().location(location)})"


def quoted(text: str) -> str:
    """A string in quotes, with MLIR's escapes."""
    escaped = "".join(_ESCAPES.get(c) or (c if c.isprintable() else _hex_bytes(c)) for c in text)
    return f'"{escaped}"'


def _hex_bytes(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode())


def symbol_text(name: str) -> str:
    """`@name`, in quotes where the name needs them."""
    return f"@{name}" if _SYMBOL_NAME.match(name) else f"@{quoted(name)}"


def number_text(value: float, type: Type) -> str:
    """A number of a scalar type without the type: `1`, `true`, `1.000000e+00`."""
    if isinstance(type, FloatType):
        return decimal_text(float(value), type)
    if isinstance(type, IntegerType) and type.width == 1:
        return "true" if value else "false"
    return str(int(value))


def _tensor(tables: TextTables, type: TensorType) -> str:
    encoding = "" if type.encoding is None else f", {tables.attribute(type.encoding)}"
    return f"tensor<{_dimensions(type.shape)}{tables.type(type.element)}{encoding}>"


def _memory(tables: TextTables, type: MemDescType) -> str:
    parts = [_dimensions(type.shape) + tables.type(type.element)]
    if type.encoding is not None:
        parts.append(tables.attribute(type.encoding))
    parts.append("#ttg.shared_memory")
    return f"!ttg.memdesc<{', '.join(parts)}{', mutable' if type.mutable else ''}>"


def _dimensions(shape: tuple[int, ...]) -> str:
    return "".join(f"{size}x" for size in shape)


def _pointer(tables: TextTables, type: PointerType) -> str:
    space = f", {type.address_space}" if type.address_space != 1 else ""
    return f"!tt.ptr<{tables.type(type.pointee)}{space}>"


def _function(tables: TextTables, type: FunctionType) -> str:
    return f"({tables.type_list(type.inputs)}) -> {tables.results(type.results)}"


_TYPES: dict[type[Type], Callable[[TextTables, Any], str]] = {
    IntegerType: lambda _, type: f"i{type.width}",
    FloatType: lambda _, type: type.name,
    IndexType: lambda _, type: "index",
    NoneType: lambda _, type: "none",
    TokenType: lambda _, type: "!ttg.async.token",
    PointerType: _pointer,
    TensorType: _tensor,
    TensorDescType: lambda tables, type: f"!tt.tensordesc<{tables.type(type.block)}>",
    MemDescType: _memory,
    FunctionType: _function,
}


def _number(tables: TextTables, attribute: IntegerAttr | FloatAttr) -> str:
    text = number_text(attribute.value, attribute.type)
    return text if text in ("true", "false") else f"{text} : {tables.type(attribute.type)}"


def _integers(tables: TextTables, attribute: DenseArrayAttr) -> str:
    values = ", ".join(number_text(value, attribute.element_type) for value in attribute.values)
    return f"array<{tables.type(attribute.element_type)}{': ' if values else ''}{values}>"


def _dense(tables: TextTables, attribute: DenseAttr) -> str:
    type = attribute.type
    element = type.element if isinstance(type, TensorType) else type
    numbers = [number_text(value, element) for value in attribute.values]
    text = numbers[0] if len(set(numbers)) == 1 else _nested(numbers, shape_of(type))
    return f"dense<{text}> : {tables.type(type)}"


def _nested(numbers: list[str], shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return f"[{', '.join(numbers)}]"
    step = len(numbers) // shape[0]
    return f"[{', '.join(_nested(numbers[i : i + step], shape[1:]) for i in range(0, len(numbers), step))}]"


_ATTRIBUTES: dict[type[Attribute], Callable[[TextTables, Any], str]] = {
    IntegerAttr: _number,
    FloatAttr: _number,
    StringAttr: lambda _, attribute: quoted(attribute.value),
    UnitAttr: lambda _, attribute: "unit",
    TypeAttr: lambda tables, attribute: tables.type(attribute.type),
    SymbolRefAttr: lambda _, attribute: symbol_text(attribute.name),
    ArrayAttr: lambda tables, attribute: f"[{', '.join(map(tables.attribute, attribute.elements))}]",
    DenseArrayAttr: _integers,
    DictAttr: lambda tables, attribute: f"{{{tables.entries(dict(attribute.entries))}}}",
    DenseAttr: _dense,
    OpaqueAttr: lambda _, attribute: attribute.text,
    EnumAttr: lambda _, attribute: f"{attribute.code} : i{attribute.bits}",
}
