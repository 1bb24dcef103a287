"""Reading types.

Level: all. Takes MLIR text; gives interned types, one that was read before by its text alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from mltriton.ir.attributes import (
    Attribute,
    OpaqueAttr,
)
from mltriton.ir.scanner import Scanner
from mltriton.ir.types import (
    FLOATS,
    INDEX,
    FunctionType,
    IntegerType,
    MemDescType,
    NoneType,
    PointerType,
    TensorDescType,
    TensorType,
    TokenType,
    Type,
)
from mltriton.layouts.base import Encoding, SharedEncoding

T = TypeVar("T")
_SIMPLE_TYPE = re.compile(r"[!\w.]+(?:<(?:[^<>{}]|<[^<>{}]*>)*>)?")
MAX_WIDTH = 2**24 - 1  # bits of an integer type, as in MLIR
_INTEGER_TYPE = re.compile(r"[su]?i(\d+)\Z")
_SHARED_MEMORY = ("ttg.shared_memory", "triton_gpu.shared_memory")


class TypeParser(Scanner):
    """A scanner that also reads types; whoever reads attributes completes it."""

    def __init__(self, text: str, filename: str = "<text>") -> None:
        super().__init__(text, filename)
        self._types: dict[str, Type] = {}

    def attribute(self) -> Attribute:
        """Read an attribute, which a type may hold."""
        raise NotImplementedError("a parser of types alone reads no attributes")

    def encoding(self) -> Encoding:
        """Read an encoding."""
        raise NotImplementedError("a parser of types alone reads no encodings")

    def type(self) -> Type:
        """Read a type."""
        simple = _SIMPLE_TYPE.match(self.text_read, self.position)
        if simple is not None and (known := self._types.get(simple[0])) is not None:
            self.skip(simple.end() - self.position)
            return known
        type = self.function_type() if self.at("(") else self._plain_type()
        if simple is not None and self.text_read[simple.end() : self.position].isspace():
            self._types[simple[0]] = type
        return type

    def _plain_type(self) -> Type:
        start = self.position
        if self.accept("!"):
            name = self.word("a type")
            read = _DIALECT_TYPES.get(name.replace("triton_gpu.", "ttg."))
            if read is None:
                self.fail(f"unknown type !{name}", at=start)
            return read(self)
        name = self.word("a type")
        if name == "tensor":
            return self.between("<", ">", self._tensor_body)
        if name in _NAMED_TYPES:
            return _NAMED_TYPES[name]
        if (integer := _INTEGER_TYPE.match(name)) and len(integer[1]) <= len(str(MAX_WIDTH)):
            width = int(integer[1])
            if width <= MAX_WIDTH:
                return IntegerType(width)
        raise self.error(f"unknown type `{name}`", at=start)

    def shortened_type(self, prefix: str) -> Type:
        """Read a type of the dialect type `prefix` (`tt.ptr`), whose name may be left out: `<f32>`."""
        return _DIALECT_TYPES[prefix](self) if self.at("<") else self.type()

    def type_list(self) -> list[Type]:
        """Read types separated by commas, at least one."""
        types = [self.type()]
        while self.accept(","):
            types.append(self.type())
        return types

    def result_types(self) -> list[Type]:
        """Read what stands after an arrow: one type, or any number in parentheses."""
        if not self.accept("("):
            return [self.type()]
        types = [] if self.at(")") else self.type_list()
        self.expect(")")
        return types

    def function_type(self) -> FunctionType:
        """Read `(types) -> types`."""
        if not self.at("("):
            self.fail("expected a function type")
        inputs = self.result_types()
        self.expect("->")
        return FunctionType(tuple(inputs), tuple(self.result_types()))

    def between(self, opening: str, closing: str, body: Callable[[], T]) -> T:
        """Read something between two marks."""
        self.expect(opening)
        read = body()
        self.expect(closing)
        return read

    def _tensor_body(self) -> TensorType:
        shape = self.dimensions()
        element = self.type()
        return TensorType(shape, element, self.encoding() if self.accept(",") else None)

    def pointer_body(self) -> Type:
        """Read `f32` or `f32, 3`, between the angles of a pointer type."""
        pointee = self.type()
        return PointerType(pointee, self.integer() if self.accept(",") else 1)

    def descriptor_body(self) -> Type:
        """Read `tensor<...>` or the newer `128x64xf16`, between the angles of a descriptor type."""
        block = self.type() if self.at("tensor") else self._tensor_body()
        if not isinstance(block, TensorType):
            self.fail("a descriptor describes tensors")
        return TensorDescType(block)

    def memory_body(self) -> Type:
        """Read `128x64xf16, #shared, #smem, mutable`, between the angles of a memory descriptor type."""
        shape = self.dimensions()
        element = self.type()
        encoding, mutable = None, False
        while self.accept(","):
            if self.accept_word("mutable"):
                mutable = True
                continue
            attribute = self.attribute()
            if isinstance(attribute, SharedEncoding):
                encoding = attribute
            elif not (isinstance(attribute, OpaqueAttr) and attribute.text[1:] in _SHARED_MEMORY):
                self.fail(f"{attribute} is no encoding of shared memory")
        return MemDescType(shape, element, encoding, mutable)

    def in_angles(self, body: Callable[[], Type]) -> Type:
        """Read `<body>`."""
        return self.between("<", ">", body)


_NAMED_TYPES: dict[str, Type] = {**FLOATS, "index": INDEX, "none": NoneType(), "f8E4M3FN": FLOATS["f8E4M3FN"]}

_DIALECT_TYPES: dict[str, Callable[[TypeParser], Type]] = {
    "tt.ptr": lambda parser: parser.in_angles(parser.pointer_body),
    "tt.tensordesc": lambda parser: parser.in_angles(parser.descriptor_body),
    "ttg.memdesc": lambda parser: parser.in_angles(parser.memory_body),
    "ttg.async.token": lambda _: TokenType(),
}
