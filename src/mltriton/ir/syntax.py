"""Custom syntax of operations: one short format string a class, from which text is both written and read.

Level: all. A class says `syntax = "$lhs `,` $rhs attr-dict `:` type($lhs, $rhs, result)"`; `syntax_of(cls)` compiles
it once to a list of elements (`ir/syntax_elements.py`). The notation follows MLIR's declarative assembly formats:

    `keyword`                     that text
    $name                         an operand group or an attribute of the class
    type($a, $b, result)          one type that all of these have (`result` twice: two results); a variadic group has a
                                  list of types
    type(results)                 the list of result types
    type(inferred)                the type of the result, which must be the one that `infer` gives
    short<tt.ptr>($a)             a type whose leading `!tt.ptr` may be left out
    functional-type($a, results)  `(types) -> types`; `operands` stands for all operands
    attr-dict                     the attributes that the format does not name, without those at their default
    choice<none|all>($flag)       a true/false attribute as one of two words
    permissions                   `fastmath<...>`, `overflow<...>`: read and dropped, as they only permit optimisations
    ( ... $name^ ... )?           present when the marked operand or attribute is
    any-order( ... | ... )        such groups, in any order
    custom<name>                  elements of the dialects (`dialects/region_syntax.py`)

Result types that the format does not state come from the class's `infer`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from mltriton.ir.definition import BOOLEAN, ENUM, INTEGER, AttributePart, parts_of
from mltriton.ir.operation import Operation
from mltriton.ir.registry import custom_elements
from mltriton.ir.syntax_elements import (
    AnyOrder,
    AttributeDictionary,
    AttributeElement,
    ChoiceElement,
    Element,
    FunctionalType,
    Group,
    InferredType,
    IntegerElement,
    KeywordElement,
    Literal,
    OperandElement,
    Parsed,
    Permissions,
    ResultTypes,
    SharedType,
    UnitElement,
)

if TYPE_CHECKING:
    from mltriton.ir.parser import Parser
    from mltriton.ir.printer import Printer

_TOKEN = re.compile(r"\s*(`[^`]*`|\$\w+\^?|[\w-]+(?:<[^>]*>)?\(?|\)\??|[(|,])")


class Syntax:
    """A compiled format."""

    def __init__(self, elements: tuple[Element, ...]) -> None:
        self.elements = elements
        self._writers = [element.text for element in elements if not isinstance(element, Permissions)]

    def text(self, op: Operation, printer: Printer) -> str:
        """What follows the operation's name, with a leading space."""
        return "".join([write(op, printer) for write in self._writers])

    def read(self, parser: Parser, parsed: Parsed) -> None:
        """Read what follows the operation's name into `parsed`."""
        for element in self.elements:
            element.read(parser, parsed)


@cache
def syntax_of(cls: type[Operation]) -> Syntax | None:
    """The compiled syntax of a class; None when it has generic text only."""
    return _compile(cls, cls.syntax) if cls.syntax else None


@cache
def old_syntaxes(cls: type[Operation]) -> tuple[Syntax, ...]:
    """The compiled older forms that are read as well."""
    return tuple(_compile(cls, text) for text in cls.old_syntax)


def _compile(cls: type[Operation], text: str) -> Syntax:
    compiler = _Compiler(cls, text)
    elements = tuple(compiler.sequence())
    for element in elements:
        if isinstance(element, AttributeDictionary):
            element.named = frozenset(compiler.named)
    return Syntax(elements)


class _Compiler:
    """Recursive descent over the tokens of one format."""

    def __init__(self, cls: type[Operation], text: str) -> None:
        self.cls = cls
        self.parts = parts_of(cls)
        self.tokens = _TOKEN.findall(text)
        self.position = 0
        self.previous = ""  # the literal before the current element, "" for any other element
        self.named: set[str] = set()

    def sequence(self, *ends: str) -> Iterator[Element]:
        """Elements up to one of `ends`, which is left unread."""
        while self.position < len(self.tokens) and self.tokens[self.position] not in ends:
            yield self._element(self._next())

    def _next(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1]

    def _element(self, token: str) -> Element:
        if token.startswith("`"):
            literal = Literal(token.strip("`"), self._space(token.strip("`")))
            self.previous = literal.word
            return literal
        space = self._space("")
        made = self._directive(token, space)
        self.previous = "" if not isinstance(made, Group) else self.previous
        return made

    def _directive(self, token: str, space: str) -> Element:
        name, _, argument = token.rstrip("(").partition("<")
        if token.startswith("$"):
            return self._named(token.strip("$^"), space, anchored=token.endswith("^"))
        if token == "(":
            return self._group(")?")
        if name == "any-order":
            return AnyOrder(self._clauses())
        if name == "choice":
            (target,) = self._arguments()
            self.named.add(target)
            return ChoiceElement(self.cls, target, space, tuple(argument.rstrip(">").split("|")))
        if name in ("type", "short"):
            targets = self._arguments()
            if targets[0] in ("results", "inferred"):
                return ResultTypes(space) if targets[0] == "results" else InferredType(space)
            return SharedType(self.cls, targets, space, argument.rstrip(">"))
        if name == "functional-type":
            return FunctionalType(self.cls, self._arguments()[0], space)
        if name == "custom":
            return custom_elements()[argument.rstrip(">")]
        return {"attr-dict": AttributeDictionary, "permissions": Permissions}[name](self.cls)

    def _named(self, name: str, space: str, anchored: bool) -> Element:
        if name in self.parts.operands:
            return OperandElement(self.cls, name, space)
        self.named.add(name)
        part = self.parts.attributes[name]
        return _attribute_element(part, anchored)(self.cls, name, space)

    def _group(self, *ends: str) -> Group:
        start = self.position
        elements = list(self.sequence(*ends))
        anchors = [t.strip("$^") for t in self.tokens[start : self.position] if t.endswith("^")]
        self._next()
        return Group(self.cls, elements, anchors[0])

    def _clauses(self) -> list[Group]:
        groups: list[Group] = []
        while self.tokens[self.position - 1] != ")":
            groups.append(self._group("|", ")"))
        return groups

    def _arguments(self) -> list[str]:
        names: list[str] = []
        while (token := self._next()) != ")":
            if token != ",":
                names.append(token.strip("$"))
        return names

    def _space(self, literal: str) -> str:
        if self.previous in ("(", "[") or literal in (",", ")", "]"):
            return ""
        return "" if literal in ("(", "[") and not self.previous else " "


def _attribute_element(part: AttributePart, anchored: bool) -> type[AttributeElement]:
    if part.coder is BOOLEAN and anchored:
        return UnitElement
    return {ENUM: KeywordElement, INTEGER: IntegerElement}.get(part.coder, AttributeElement)
