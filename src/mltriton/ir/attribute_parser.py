"""Reading attributes, encodings and locations.

Level: all. Takes MLIR text; gives interned objects. Aliases (`#blocked = ...`, `#loc3 = loc(...)`) may be defined
anywhere at the start of a line and are resolved when they are first used. Integers are wrapped to the signed range of
their type; floats are rounded to theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

from mltriton.ir.attributes import (
    ArrayAttr,
    Attribute,
    DenseArrayAttr,
    DenseAttr,
    DictAttr,
    FloatAttr,
    IntegerAttr,
    OpaqueAttr,
    StringAttr,
    SymbolRefAttr,
    TypeAttr,
    UnitAttr,
)
from mltriton.ir.constants import wrap
from mltriton.ir.floats import bits_to_float, round_float
from mltriton.ir.location import UNKNOWN, CallSiteLoc, FileLoc, Location, NameLoc
from mltriton.ir.type_parser import T, TypeParser
from mltriton.ir.types import (
    FLOATS,
    I1,
    I64,
    INDEX,
    FloatType,
    IntegerType,
    TensorType,
    Type,
)
from mltriton.layouts.base import Encoding, LayoutAttr
from mltriton.layouts.text import EncodingTextError, Field, build_encoding, is_encoding_name

_ALIAS = re.compile(r"^#([A-Za-z_][\w$.-]*)\s*=\s*", re.MULTILINE)


class AttributeParser(TypeParser):
    """A type parser that also reads attributes and locations."""

    def __init__(self, text: str, filename: str = "<text>") -> None:
        super().__init__(text, filename)
        self._alias_positions = {found[1]: found.end() for found in _ALIAS.finditer(text)}
        self._aliases: dict[str, Attribute | Location] = {}
        self._open_aliases: set[str] = set()  # those that are being read

    # Attributes.

    def attribute(self) -> Attribute:
        """Read an attribute."""
        text, position = self.text_read, self.position
        first = text[position : position + 1]
        if first == "#":
            return self._hash_attribute()
        if first in _ATTRIBUTE_STARTS:
            return _ATTRIBUTE_STARTS[first](self)
        if self.at_number():
            return self._number()
        for word, read in _ATTRIBUTE_WORDS.items():
            if self.at_word(word):
                self.skip(len(word))
                return read(self)
        return TypeAttr(self.type())

    def encoding(self) -> Encoding:
        """Read a layout encoding or an alias of one."""
        start = self.position
        attribute = self.attribute()
        if not isinstance(attribute, Encoding):
            self.fail(f"{attribute} is no layout encoding known here", at=start)
        return attribute

    def dictionary(self) -> dict[str, Attribute]:
        """Read `{a = 1 : i32, b}`."""
        self.expect("{")
        entries: dict[str, Attribute] = {}
        while not self.at("}"):
            start = self.position
            name = self.string() if self.at('"') else self.word("an attribute name")
            if name in entries:
                self.fail(f"attribute `{name}` is given twice", at=start)
            entries[name] = self.attribute() if self.accept("=") else UnitAttr()
            if not self.accept(","):
                break
        self.expect("}")
        return entries

    def _hash_attribute(self) -> Attribute:
        start = self.position
        self.skip(1)
        name = self._hash_name()
        if name in self._alias_positions:
            found = self._resolve(name, self.attribute)
            if isinstance(found, Attribute):
                return found
        elif "." in name:
            if is_encoding_name(name):
                return self._encoding_fields(name, start)
            return OpaqueAttr(f"#{name}{self.skip_angles() if self.at('<') else ''}")
        raise self.error(f"unknown attribute alias #{name}", at=start)

    def _hash_name(self) -> str:
        found = re.compile(r"[A-Za-z_][\w$.]*").match(self.text_read, self.position)
        if found is None:
            self.fail("expected a name after `#`")
        self.skip(len(found[0]))
        return found[0]

    def _resolve(self, name: str, read: Callable[[], Attribute | Location]) -> Attribute | Location:
        if name not in self._aliases:
            saved, self.position = self.position, self._alias_positions[name]
            if name in self._open_aliases:
                self.fail(f"alias #{name} refers to itself", at=saved)
            self._open_aliases.add(name)
            self._aliases[name] = read()
            self._open_aliases.discard(name)
            self.position = saved
        return self._aliases[name]

    def alias_definition(self) -> None:
        """Skip over `#name = attribute`, reading it if nothing has used it yet."""
        self.skip(1)
        name = self._hash_name()
        if name not in self._alias_positions:
            self.fail(f"#{name} stands where an operation or `#{name} = ...` is expected")
        self.position = self._alias_positions[name]
        self._aliases[name] = self.location() if self.at_word("loc") else self.attribute()

    def _encoding_fields(self, name: str, start: int) -> LayoutAttr:
        self.expect("<")
        self.expect("{")
        fields: dict[str, Field] = {}
        while not self.at("}"):
            key = self.word("a field name")
            self.expect("=")
            fields[key] = self._field()
            if not self.accept(","):
                break
        self.expect("}")
        self.expect(">")
        try:
            return build_encoding(name, fields)
        except EncodingTextError as error:
            raise self.error(str(error), at=start, found=f"#{name}") from None

    def _field(self) -> Field:
        if self.at("["):
            return cast(Field, tuple(self.items("[", "]", self._field)))
        for word, value in (("true", True), ("false", False)):
            if self.accept_word(word):
                return value
        return self.encoding() if self.at("#") else self.integer()

    def items(self, opening: str, closing: str, item: Callable[[], T]) -> list[T]:
        """Read any number of items, separated by commas, between two brackets."""
        self.expect(opening)
        items: list[T] = []
        while not self.at(closing):
            items.append(item())
            if not self.accept(","):
                break
        self.expect(closing)
        return items

    def _number(self) -> Attribute:
        start = self.position
        token = self.number_token()
        is_integer = "." not in token
        type = self.type() if self.accept(":") else I64 if is_integer else FLOATS["f64"]
        if isinstance(type, FloatType):
            return FloatAttr(self._float(token, type), type)
        if not is_integer or not (isinstance(type, IntegerType) or type is INDEX):
            self.fail(f"{token} is no value of type {type}", at=start)
        return IntegerAttr(wrap(self.integer_of(token, start), type), type)

    def _float(self, token: str, type: FloatType) -> float:
        if "0x" in token:
            return bits_to_float(int(token, 16), type)
        return round_float(float(token), type)

    def dense_array(self) -> Attribute:
        """Read `<i32: 0, 1>` after `array`."""
        self.expect("<")
        element = self.type()
        values: list[int] = []
        if self.accept(":"):
            while not self.at(">"):
                values.append(self._dense_integer())
                if not self.accept(","):
                    break
        self.expect(">")
        return DenseArrayAttr(tuple(wrap(value, element) for value in values), element)

    def _dense_integer(self) -> int:
        if self.accept_word("true"):
            return 1
        return 0 if self.accept_word("false") else self.integer()

    def dense(self) -> Attribute:
        """Read `<0.0> : tensor<4xf32>` after `dense`."""
        self.expect("<")
        start = self.position
        is_list = self.at("[")
        tokens: list[str] | bytes = []
        if self.at('"'):
            tokens = bytes.fromhex(self.string().removeprefix("0x"))
        elif not self.at(">"):
            tokens = self._dense_tokens()
        self.expect(">")
        self.expect(":")
        type = self.type()
        if not isinstance(type, TensorType):
            self.fail("a dense constant has a tensor type", at=start)
        values = self._dense_values(tokens, type.element, start)
        if len(values) != type.size and (is_list or len(values) != 1):
            self.fail("wrong number of elements", at=start, expected=f"{type.size} for {type}", found=str(len(values)))
        return DenseAttr(values[:1] if len(set(map(repr, values))) == 1 else values, type)

    def _dense_tokens(self) -> list[str]:
        if self.at("["):
            return [token for tokens in self.items("[", "]", self._dense_tokens) for token in tokens]
        return [self.word() if self.at_word("true") or self.at_word("false") else self.number_token()]

    def _dense_values(self, tokens: list[str] | bytes, element: Type, start: int) -> tuple[int | float, ...]:
        if isinstance(tokens, bytes):
            return raw_values(tokens, element)
        if isinstance(element, FloatType):
            return tuple(self._float(token, element) for token in tokens)
        if not isinstance(element, IntegerType) or any("." in token for token in tokens):
            self.fail(f"these are no elements of type {element}", at=start)
        words = {"true": 1, "false": 0}
        return tuple(words[t] if t in words else wrap(self.integer_of(t, start), element) for t in tokens)

    # Locations.

    def location(self) -> Location:
        """Read `loc(...)`."""
        self.expect_word("loc")
        self.expect("(")
        location = self._location_body()
        self.expect(")")
        return location

    def _location_body(self) -> Location:
        if self.at("#"):
            start = self.position
            self.skip(1)
            name = self._hash_name()
            found = self._resolve(name, self.location) if name in self._alias_positions else None
            if not isinstance(found, Location):
                self.fail(f"unknown location alias #{name}", at=start)
            return found
        if self.at('"'):
            return self._named_location(self.string())
        word = self.one_of(["callsite", "fused", "unknown", "loc"])
        return {"callsite": self._call_site, "fused": self._fused, "loc": self._nested, "unknown": lambda: UNKNOWN}[
            word
        ]()

    def _named_location(self, name: str) -> Location:
        if self.accept(":"):
            line = self.integer()
            column = self.integer() if self.accept(":") else 0
            if self.accept_word("to"):
                while self.accept(":") or self.at_number():
                    self.integer()
            return FileLoc(name, line, column)
        return NameLoc(name, self._nested() if self.at("(") else UNKNOWN)

    def _nested(self) -> Location:
        return self.between("(", ")", self._location_body)

    def _call_site(self) -> Location:
        self.expect("(")
        callee = self._location_body()
        self.expect_word("at")
        caller = self._location_body()
        self.expect(")")
        return CallSiteLoc(callee, caller)

    def _fused(self) -> Location:
        if self.at("<"):
            self.skip_angles()
        return (self.items("[", "]", self._location_body) or [UNKNOWN])[0]


def raw_values(data: bytes, element: Type) -> tuple[int | float, ...]:
    """The elements stored in `data`, little-endian (i1: one bit each where that is how many there are)."""
    width = element.width if isinstance(element, IntegerType | FloatType) else 64
    step = max(1, width // 8)
    words = [int.from_bytes(data[i : i + step], "little") for i in range(0, len(data), step)]
    if isinstance(element, FloatType):
        return tuple(bits_to_float(word, element) for word in words)
    return tuple(wrap(word, element) for word in words)


_ATTRIBUTE_STARTS: dict[str, Callable[[AttributeParser], Attribute]] = {
    '"': lambda parser: StringAttr(parser.string()),
    "@": lambda parser: SymbolRefAttr(parser.symbol()),
    "[": lambda parser: ArrayAttr(tuple(parser.items("[", "]", parser.attribute))),
    "{": lambda parser: DictAttr(tuple(sorted(parser.dictionary().items()))),
}

_ATTRIBUTE_WORDS: dict[str, Callable[[AttributeParser], Attribute]] = {
    "true": lambda _: IntegerAttr(1, I1),
    "false": lambda _: IntegerAttr(0, I1),
    "unit": lambda _: UnitAttr(),
    "dense": AttributeParser.dense,
    "array": AttributeParser.dense_array,
}
