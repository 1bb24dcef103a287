"""The elements of custom syntaxes: each writes its part of an operation and reads it back.

Level: all. `text` returns its part with a leading space where one belongs, or "" when there is nothing to write;
`read` consumes it and adds what it found to `Parsed`. Formats are compiled to these by `ir/syntax.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from mltriton.ir.attributes import ENUMS, Attribute, EnumAttr, IntegerAttr, UnitAttr
from mltriton.ir.definition import AttributePart, parts_of, segments_of
from mltriton.ir.operation import Operation, Region, Value
from mltriton.ir.types import I1, Type
from mltriton.records import NamedTuple, record

if TYPE_CHECKING:
    from mltriton.ir.parser import Parser
    from mltriton.ir.printer import Printer


@record()
class Parsed:
    """What was read of one operation so far; `result_names` are those left of the equals sign."""

    cls: type[Operation]
    result_names: Sequence[str] = ()
    operands: dict[str, list[Value]] = field(default_factory=dict[str, list[Value]])
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    regions: list[Region] = field(default_factory=list[Region])
    result_types: list[Type] | None = None

    def values(self, name: str) -> list[Value]:
        """The operands of a group, or all of them (`operands`) in declared order."""
        if name != "operands":
            return self.operands.get(name, [])
        return [value for group in parts_of(self.cls).operands for value in self.operands.get(group, [])]


class Argument(NamedTuple):
    """A block argument as read: its name in the text, type, position, and the name its location gives it."""

    name: str
    type: Type
    start: int
    hint: str | None = None


class Element:
    """Base of elements."""

    def text(self, op: Operation, printer: Printer) -> str:
        """This part of the text of `op`, with a leading space where one belongs."""
        raise NotImplementedError

    def read(self, parser: Parser, parsed: Parsed) -> None:
        """Read this part; raises `IRSyntaxError`."""
        raise NotImplementedError

    def is_next(self, parser: Parser) -> bool:
        """Whether the text goes on with this element: decides whether an optional group is there."""
        raise NotImplementedError


class Literal(Element):
    """A keyword or punctuation."""

    def __init__(self, word: str, space: str) -> None:
        self.word = word
        self.written = space + word
        self.is_keyword = word[0].isalpha()

    def text(self, op: Operation, printer: Printer) -> str:
        return self.written

    def read(self, parser: Parser, parsed: Parsed) -> None:
        if self.is_keyword:
            parser.expect_word(self.word)
        else:
            parser.expect(self.word)

    def is_next(self, parser: Parser) -> bool:
        return parser.at_word(self.word) if self.is_keyword else parser.at(self.word)


class OperandElement(Element):
    """The operands of one group, separated by commas."""

    def __init__(self, cls: type[Operation], name: str, space: str) -> None:
        groups = parts_of(cls).operands
        self.name = name
        self.space = space
        self.arity = groups[name]
        self.group = list(groups).index(name)
        before = list(groups.values())[: self.group]
        self.index = self.group if all(arity == "one" for arity in [*before, self.arity]) else -1

    def values(self, op: Operation) -> list[Value]:
        """The operands of the group."""
        sizes = segments_of(op)
        start = sum(sizes[: self.group])
        return op.operands[start : start + sizes[self.group]]

    def text(self, op: Operation, printer: Printer) -> str:
        if self.index >= 0:
            return self.space + printer.names[op.operands[self.index]]
        names = printer.names
        written = ", ".join([names[value] for value in self.values(op)])
        return self.space + written if written else ""

    def read(self, parser: Parser, parsed: Parsed) -> None:
        if self.arity == "variadic":
            parsed.operands[self.name] = parser.operands()
        else:
            parsed.operands[self.name] = [parser.operand()]

    def is_next(self, parser: Parser) -> bool:
        return parser.at("%")


class AttributeElement(Element):
    """An attribute as attribute text."""

    def __init__(self, cls: type[Operation], name: str, space: str) -> None:
        self.name = name
        self.space = space
        self.part: AttributePart = parts_of(cls).attributes[name]

    def stored(self, op: Operation) -> Attribute:
        """The attribute, or the default's encoding when it is unset."""
        found = op.attributes.get(self.name)
        value = found if found is not None else self.part.encode(self.part.default)
        return value if value is not None else UnitAttr()

    def text(self, op: Operation, printer: Printer) -> str:
        return self.space + printer.tables.attribute(self.stored(op))

    def read(self, parser: Parser, parsed: Parsed) -> None:
        parsed.attributes[self.name] = parser.attribute()


class KeywordElement(AttributeElement):
    """An enumeration case as its keyword."""

    def text(self, op: Operation, printer: Printer) -> str:
        value = self.stored(op)
        return self.space + (value.case if isinstance(value, EnumAttr) else printer.tables.attribute(value))

    def read(self, parser: Parser, parsed: Parsed) -> None:
        kind = self.part.kind
        parsed.attributes[self.name] = EnumAttr(kind, parser.one_of(list(ENUMS[kind].cases)))


class IntegerElement(AttributeElement):
    """An integer of known type, without the type."""

    def text(self, op: Operation, printer: Printer) -> str:
        value = self.stored(op)
        return f"{self.space}{value.value if isinstance(value, IntegerAttr) else printer.tables.attribute(value)}"

    def read(self, parser: Parser, parsed: Parsed) -> None:
        parsed.attributes[self.name] = IntegerAttr(parser.integer(), self.part.type)


class UnitElement(AttributeElement):
    """A true/false attribute that is true because its group is there."""

    def text(self, op: Operation, printer: Printer) -> str:
        return ""

    def read(self, parser: Parser, parsed: Parsed) -> None:
        parsed.attributes[self.name] = IntegerAttr(1, I1)


class ChoiceElement(AttributeElement):
    """A true/false attribute as one of two words."""

    def __init__(self, cls: type[Operation], name: str, space: str, words: tuple[str, ...]) -> None:
        super().__init__(cls, name, space)
        self.words = words

    def text(self, op: Operation, printer: Printer) -> str:
        return self.space + self.words[bool(self.part.coder.read(self.stored(op)))]

    def read(self, parser: Parser, parsed: Parsed) -> None:
        parsed.attributes[self.name] = IntegerAttr(self.words.index(parser.one_of(self.words)), I1)


class SharedType(Element):
    """One type that several operands and results have; a list of types for a single variadic group. `prefix`: what
    may be left out before `<`.
    """

    def __init__(self, cls: type[Operation], targets: list[str], space: str, prefix: str) -> None:
        self.operands = [OperandElement(cls, name, "") for name in targets if name != "result"]
        self.results = targets.count("result")
        self.first = self.operands[0].index if self.operands else 0
        self.is_list = len(targets) == 1 and not self.results and self.operands[0].arity != "one"
        self.space = space
        self.prefix = prefix

    def text(self, op: Operation, printer: Printer) -> str:
        if self.is_list:
            return self.space + printer.tables.type_list([value.type for value in self.operands[0].values(op)])
        type = op.results[0].type if self.results else self._first_of(op).type
        written = printer.type(type)
        return self.space + (written.removeprefix(f"!{self.prefix}") if self.prefix else written)

    def _first_of(self, op: Operation) -> Value:
        return op.operands[self.first] if self.first >= 0 else self.operands[0].values(op)[0]

    def read(self, parser: Parser, parsed: Parsed) -> None:
        if self.is_list:
            parser.operand_types(parsed.values(self.operands[0].name))
            return
        start = parser.position
        type = parser.shortened_type(self.prefix) if self.prefix else parser.type()
        for operand in self.operands:
            for value in parsed.values(operand.name):
                parser.check_type(value, type, start)
        if self.results:
            parsed.result_types = [type] * self.results


class ResultTypes(Element):
    """The list of result types."""

    def __init__(self, space: str) -> None:
        self.space = space

    def text(self, op: Operation, printer: Printer) -> str:
        return self.space + printer.tables.type_list([result.type for result in op.results])

    def read(self, parser: Parser, parsed: Parsed) -> None:
        parsed.result_types = parser.type_list()


class InferredType(ResultTypes):
    """The type of the only result, which must be the one that the class infers."""

    def read(self, parser: Parser, parsed: Parsed) -> None:
        start = parser.position
        type = parser.type()
        (inferred,) = parser.inferred_types(parsed)
        if inferred is not type:
            parser.fail("another result type than the operands give", start, expected=str(inferred), found=str(type))


class FunctionalType(Element):
    """`(operand types) -> result types`."""

    def __init__(self, cls: type[Operation], target: str, space: str) -> None:
        self.target = target
        self.group = None if target == "operands" else OperandElement(cls, target, "")
        self.space = space

    def text(self, op: Operation, printer: Printer) -> str:
        values = op.operands if self.group is None else self.group.values(op)
        operands = printer.tables.type_list([value.type for value in values])
        return f"{self.space}({operands}) -> {printer.tables.results([result.type for result in op.results])}"

    def read(self, parser: Parser, parsed: Parsed) -> None:
        parser.expect("(")
        parser.operand_types(parsed.values(self.target))
        parser.expect(")")
        parser.expect("->")
        parsed.result_types = parser.result_types()


class AttributeDictionary(Element):
    """`{a = 1 : i32}`: the attributes that the format does not name and that are not at their default."""

    named: frozenset[str] = frozenset()

    def __init__(self, cls: type[Operation]) -> None:
        self.cls = cls
        parts = parts_of(cls)
        self.text_names = parts.text_names
        self.defaults = {
            name: part.encode(part.default) for name, part in parts.attributes.items() if part.default is not None
        }

    def text(self, op: Operation, printer: Printer) -> str:
        if op.attributes.keys() <= self.named:
            return ""
        shown = {
            self.text_names.get(name, name): value
            for name, value in op.attributes.items()
            if name not in self.named and self.defaults.get(name) is not value
        }
        return f" {{{printer.tables.entries(shown)}}}" if shown else ""

    def read(self, parser: Parser, parsed: Parsed) -> None:
        if parser.at("{"):
            parsed.attributes.update(parser.declared_dictionary(self.cls))


class Permissions(Element):
    """`fastmath<...>` and `overflow<...>`: read and dropped."""

    def __init__(self, cls: type[Operation]) -> None:
        pass

    def text(self, op: Operation, printer: Printer) -> str:
        return ""

    def read(self, parser: Parser, parsed: Parsed) -> None:
        for word in ("overflow", "fastmath"):
            if parser.accept_word(word):
                parser.skip_angles()


class Group(Element):
    """Elements that are there when an operand or attribute is."""

    def __init__(self, cls: type[Operation], elements: list[Element], anchor: str) -> None:
        self.elements = elements
        self.anchor = anchor
        parts = parts_of(cls)
        self.operand = OperandElement(cls, anchor, "") if anchor in parts.operands else None
        part = parts.attributes.get(anchor)
        self.default = part.encode(part.default) if part is not None else None

    def text(self, op: Operation, printer: Printer) -> str:
        if not self._is_present(op):
            return ""
        return "".join([element.text(op, printer) for element in self.elements])

    def _is_present(self, op: Operation) -> bool:
        if self.operand is not None:
            return bool(self.operand.values(op))
        value = op.attributes.get(self.anchor)
        return value is not None and value is not self.default

    def read(self, parser: Parser, parsed: Parsed) -> None:
        if self.is_next(parser):
            for element in self.elements:
                element.read(parser, parsed)

    def is_next(self, parser: Parser) -> bool:
        return self.elements[0].is_next(parser)


class AnyOrder(Element):
    """Groups in any order, each at most once."""

    def __init__(self, groups: list[Group]) -> None:
        self.groups = groups

    def text(self, op: Operation, printer: Printer) -> str:
        return "".join([group.text(op, printer) for group in self.groups])

    def read(self, parser: Parser, parsed: Parsed) -> None:
        left = list(self.groups)
        while found := next((group for group in left if group.is_next(parser)), None):
            found.read(parser, parsed)
            left.remove(found)
