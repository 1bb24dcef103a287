"""Reads the LLVM IR text that `targets/llvm/writer.py` writes: lines to tokens, types and values.

Level: `llvm`. Guarantees: what the writer does not write raises `BackendError` with the line.
"""

from __future__ import annotations

import re
import struct

from mltriton.errors import BackendError
from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import Type, vector

_TOKEN = re.compile(r"[%@][\w.$-]+|0x[HR]?[0-9A-F]+|-?\d+|[A-Za-z_][\w.]*|[<>()\[\],=]")
_NULLS = ("zeroinitializer", "null")
_UNDEFINED = ("poison", "undef")


class Name(NamedTuple):
    """A value by its name, with the sign before it."""

    text: str


class Number(NamedTuple):
    """One number in every element: its bits."""

    bits: int


class Numbers(NamedTuple):
    """The bits of each element of a vector."""

    bits: tuple[int, ...]


class Undefined(NamedTuple):
    """A value nobody may look at."""


Operand = Name | Number | Numbers | Undefined


class Reader:
    """The tokens of one line, from left to right."""

    def __init__(self, line: str) -> None:
        self.line = line
        self._tokens = _TOKEN.findall(line)
        self._place = 0

    @property
    def next(self) -> str:
        """The next token; empty at the end."""
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def take(self) -> str:
        """The next token, and go on."""
        token = self.next
        self._place += 1
        return token

    def skip(self, token: str) -> bool:
        """Whether the next token is this one, which is passed then."""
        if self.next != token:
            return False
        self._place += 1
        return True

    def expect(self, token: str) -> None:
        """Pass a token that must come now."""
        if not self.skip(token):
            raise self.error(f"{token!r}")

    def error(self, expected: str) -> BackendError:
        """The error for a line that reads otherwise."""
        return BackendError("a line of LLVM IR that no SPIR-V is made of", expected=expected, found=self.line.strip())

    def type(self) -> Type:
        """A type."""
        if self.skip("<"):
            lanes = int(self.take())
            self.expect("x")
            element = self.type().element
            self.expect(">")
            return vector(element, lanes)
        element = self.take()
        if element == "ptr" and self.skip("addrspace"):
            self.expect("(")
            element = f"ptr addrspace({self.take()})"
            self.expect(")")
        try:
            return vector(element, 1)
        except ValueError:
            raise self.error("a type") from None

    def operand(self, type_: Type) -> Operand:
        """A value of a type."""
        token = self.take()
        if token.startswith(("%", "@")):
            return Name(token)
        if token in _NULLS:
            return Number(0)
        if token in _UNDEFINED:
            return Undefined()
        if token == "splat":
            self.expect("(")
            made = self.operand(self.type())
            self.expect(")")
            return made
        if token == "<":
            return self._elements()
        return Number(self._bits(token, type_))

    def typed(self) -> tuple[Type, Operand]:
        """A type and a value of it."""
        type_ = self.type()
        return type_, self.operand(type_)

    def _elements(self) -> Numbers:
        bits: list[int] = []
        while True:
            type_ = self.type()
            value = self.operand(type_)
            bits.append(value.bits if isinstance(value, Number) else 0)
            if not self.skip(","):
                break
        self.expect(">")
        return Numbers(tuple(bits))

    def _bits(self, token: str, type_: Type) -> int:
        if token in ("true", "false"):
            return int(token == "true")
        if not type_.is_float:
            return int(token) & ((1 << type_.bits) - 1)
        digits = token[2:].lstrip("HR")
        number = int(digits, 16)
        if type_.element != "float":
            return number
        value = struct.unpack("<d", struct.pack("<Q", number))[0]
        return struct.unpack("<I", struct.pack("<f", value))[0]
