"""MLIR text to IR.

Level: all. `parse_module` reads a module (or operations without one, which then get one) in custom or generic syntax,
as this package and upstream Triton write it. Guarantees: structure and types as written, with the operand types that
the text states checked; rules of operations are left to `ir/verifier.py`. An operation without `loc(...)` gets its
location in the text. Raises `IRSyntaxError` with file, line, column and a caret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from mltriton.errors import IRSyntaxError
from mltriton.ir.attribute_parser import AttributeParser
from mltriton.ir.attributes import ENUMS, Attribute, DenseArrayAttr, EnumAttr, IntegerAttr
from mltriton.ir.definition import ENUM, Parts, parts_of
from mltriton.ir.location import FileLoc, NameLoc
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.registry import find_operation
from mltriton.ir.syntax import Syntax, old_syntaxes, syntax_of
from mltriton.ir.syntax_elements import Argument, Parsed
from mltriton.ir.types import Type

_UNNAMED = re.compile(r"arg\d+\Z|\d+\Z")
_DEFINITION = re.compile(r"%[\w$.-]+(:\d+)?(\s*,\s*%[\w$.-]+(:\d+)?)*\s*=(?!=)")
MAX_RESULTS = 2**16
_DROPPED = ("operandSegmentSizes", "fastmath", "overflowFlags")


def parse_attribute(text: str, filename: str = "<text>") -> Attribute:
    """The attribute or encoding that the whole of `text` writes. Raises `IRSyntaxError`."""
    parser = Parser(text, filename)
    found = parser.attribute()
    if parser.position < len(parser.text_read):
        raise parser.error("there is more after the attribute")
    return found


def parse_module(text: str, filename: str = "<text>") -> Module:
    """Read a module. Top-level operations that stand in no module are put into one."""
    return Parser(text, filename).module()


def _types_text(parsed: Parsed) -> str:
    return ", ".join(str(value.type) for value in parsed.values("operands")) or "no operands"


class Parser(AttributeParser):
    """An attribute parser that also reads operations; `names` are the values in scope."""

    def __init__(self, text: str, filename: str = "<text>") -> None:
        super().__init__(text, filename)
        self.names: dict[str, Value] = {}
        self._defined: list[str] = []  # names defined in the region that is being read

    def module(self) -> Module:
        """Read the whole text."""
        made = Module.empty()
        block = made.body.block
        while self.position < len(self.text_read):
            if self.at("#"):
                self.alias_definition()
            else:
                block.append(self.operation())
        if len(block.ops) == 1 and isinstance(block.ops[0], Module):
            block.ops[0].block = None
            return block.ops[0]
        return made

    # Operations.

    def operation(self) -> Operation:
        """Read one operation."""
        start = self.position
        names = self._result_names() if self.at("%") else []
        parsed = self._generic(names) if self.at('"') else self._custom(names)
        op = self._create(parsed, start)
        if self.at_word("loc"):
            op.loc = self.location()
        else:
            location = self.in_source(start)
            op.loc = FileLoc(*location)
        self._define_results(op, names, start)
        return op

    def _result_names(self) -> list[str]:
        names: list[str] = []
        while True:
            name = self.value_name()
            start = self.position
            count = self.integer() if self.accept(":") else 1
            if count > MAX_RESULTS:
                self.fail("no operation has so many results", at=start, expected=f"at most {MAX_RESULTS}")
            names.extend([name] if count == 1 else [f"{name}#{i}" for i in range(count)])
            if not self.accept(","):
                break
        self.expect("=")
        return names

    def _class(self, name: str, start: int) -> type[Operation]:
        found = find_operation(name)
        if found is None:
            self.fail(f"unknown operation `{name}`", at=start)
        return found

    def _custom(self, names: list[str]) -> Parsed:
        start = self.position
        cls = self._class(self.word("an operation"), start)
        syntax = syntax_of(cls)
        if syntax is None:
            self.fail(
                f"`{cls.name}` has no custom syntax: write it in generic syntax, with its name in quotes", at=start
            )
        return self._read_syntax(cls, syntax, names)

    def _read_syntax(self, cls: type[Operation], syntax: Syntax, names: list[str]) -> Parsed:
        start = self.position
        parsed = Parsed(cls, names)
        try:
            syntax.read(self, parsed)
        except IRSyntaxError as error:
            return self._read_old(parsed, names, start, error)
        return parsed

    def _read_old(self, parsed: Parsed, names: list[str], start: int, error: IRSyntaxError) -> Parsed:
        for syntax in old_syntaxes(parsed.cls):
            self.position = start
            parsed = Parsed(parsed.cls, names)
            try:
                syntax.read(self, parsed)
            except IRSyntaxError:
                continue
            return parsed
        raise error

    def _generic(self, names: list[str]) -> Parsed:
        start = self.position
        cls = self._class(self.string(), start)
        parts = parts_of(cls)
        self.expect("(")
        operands = [] if self.at(")") else self.operands()
        self.expect(")")
        position = self.position + 1
        attributes = self.between("<", ">", self.dictionary) if self.at("<") else {}
        isolated = self._enter(cls.isolated)
        regions = self.items("(", ")", self.region) if self.at("(") else []
        self._leave(isolated)
        attributes |= self.dictionary() if self.at("{") else {}
        self.expect(":")
        self.expect("(")
        self.operand_types(operands)
        self.expect(")")
        self.expect("->")
        result_types = self.result_types()
        sizes = self._group_sizes(parts, operands, attributes.get("operandSegmentSizes"), start)
        groups: dict[str, list[Value]] = {}
        for name, size in zip(parts.operands, sizes, strict=True):
            groups[name], operands = operands[:size], operands[size:]
        return Parsed(cls, names, groups, self.declared(cls, attributes, position), regions, result_types)

    def _group_sizes(
        self, parts: Parts, operands: Sequence[Value], stated: Attribute | None, start: int
    ) -> tuple[int, ...]:
        if isinstance(stated, DenseArrayAttr):
            sizes = stated.values
        else:
            spare = len(operands) - sum(arity == "one" for arity in parts.operands.values())
            groups = sum(arity != "one" for arity in parts.operands.values())
            share, rest = divmod(spare, groups) if groups else (0, spare)
            sizes = tuple(1 if arity == "one" else share for arity in parts.operands.values())
            if rest or spare < 0:
                self.fail("wrong number of operands", at=start, found=str(len(operands)))
        if sum(sizes) != len(operands) or len(sizes) != len(parts.operands):
            self.fail("operandSegmentSizes does not fit the operands", at=start, found=f"{len(operands)} operands")
        return sizes

    def _create(self, parsed: Parsed, start: int) -> Operation:
        parts = parts_of(parsed.cls)
        groups = [parsed.operands.get(name, []) for name in parts.operands]
        operands = [value for group in groups for value in group]
        types = parsed.result_types if parsed.result_types is not None else self.inferred_types(parsed)
        if len(types) != len(parsed.result_names) and parsed.result_names:
            expected, found = str(len(types)), str(len(parsed.result_names))
            self.fail(f"`{parsed.cls.name}` has not so many results", at=start, expected=expected, found=found)
        missing = len(parts.regions) - len(parsed.regions)
        regions = parsed.regions + [Region([]) for _ in range(missing)]
        segments = None if parts.is_fixed else tuple(map(len, groups))
        return parsed.cls(operands, types, parsed.attributes, regions, segments=segments)

    def inferred_types(self, parsed: Parsed) -> Sequence[Type]:
        """The result types that the class infers from what was read; none where it infers nothing."""
        infer = cast("Any", getattr(parsed.cls, "infer", None))
        if infer is None:
            return ()
        try:
            return cast("Sequence[Type]", infer(parsed.values("operands"), parsed.attributes))
        except (AssertionError, AttributeError, LookupError, TypeError, ValueError):  # Made for operands that fit.
            self.fail(f"the operands or attributes do not fit `{parsed.cls.name}`", found=_types_text(parsed))

    def _define_results(self, op: Operation, names: list[str], start: int) -> None:
        for name, result in zip(names, op.results, strict=False):
            self.define(name, result, start)
            if name.endswith("#0"):  # %x is %x#0
                self.define(name[:-2], result, start)

    # What elements read.

    def define(self, name: str, value: Value, start: int) -> None:
        """Bring a value into scope; a name that is no number becomes its hint."""
        if name in self.names:
            self.fail(f"%{name} is defined twice", at=start)
        self.names[name] = value
        self._defined.append(name)
        if not name[0].isdigit():
            value.hint = name.partition("#")[0]

    def operand(self) -> Value:
        """Read a value that is in scope."""
        start = self.position
        value = self.names.get(name := self.value_name())
        if value is None:
            self.fail(f"%{name} is not defined here", at=start)
        return value

    def operands(self) -> list[Value]:
        """Read any number of values separated by commas; what the next operation defines is none of them."""
        if not self.at("%") or _DEFINITION.match(self.text_read, self.position):
            return []
        values = [self.operand()]
        while self.accept(","):
            values.append(self.operand())
        return values

    def operand_types(self, values: Sequence[Value]) -> None:
        """Read a list of types and check that the values have them."""
        for index, value in enumerate(values):
            if index:
                self.expect(",")
            start = self.position
            self.check_type(value, self.type(), start)

    def check_type(self, value: Value, type: Type, start: int) -> None:
        """Fail at `start` where the text states another type than the value has."""
        if value.type is not type:
            name = next((name for name, known in self.names.items() if known is value), "?")
            self.fail(f"%{name} has another type than stated here", at=start, expected=str(value.type), found=str(type))

    def declared_dictionary(self, cls: type[Operation]) -> dict[str, Attribute]:
        """Read a dictionary of attributes of an operation."""
        start = self.position
        return self.declared(cls, self.dictionary(), start)

    def declared(self, cls: type[Operation], entries: Mapping[str, Attribute], start: int) -> dict[str, Attribute]:
        """Attributes as read, by their declared names; integers become enumeration cases where one is declared."""
        declared = parts_of(cls).attributes
        names = {text: name for name, text in parts_of(cls).text_names.items()}
        made: dict[str, Attribute] = {}
        for text, value in entries.items():
            if text in _DROPPED:
                continue
            name = names.get(text, text)
            part = declared.get(name)
            made[name] = self._case(part.kind, value, start) if part is not None and part.coder is ENUM else value
        return made

    def _case(self, kind: str, value: Attribute, start: int) -> Attribute:
        if not isinstance(value, IntegerAttr):
            return value
        for case, code in ENUMS[kind].cases.items():
            if code == value.value:
                return EnumAttr(kind, case)
        raise self.error(
            f"{value.value} is no case of {kind}", at=start, expected=str(ENUMS[kind].cases), found=str(value.value)
        )

    # Regions.

    def _enter(self, isolated: bool) -> tuple[dict[str, Value], list[str]]:
        saved = self.names, self._defined
        self._defined = []
        if isolated:
            self.names = {}
        return saved

    def _leave(self, saved: tuple[dict[str, Value], list[str]]) -> None:
        if self.names is saved[0]:
            for name in self._defined:
                del self.names[name]
        self.names, self._defined = saved

    def region(
        self,
        arguments: Sequence[Argument] = (),
        isolated: bool = False,
        terminator: type[Operation] | None = None,
    ) -> Region:
        """Read `{ ... }`.

        `arguments` are the block's where the syntax names them before the brace. With `terminator`, a block that does
        not end with one gets one without operands.
        """
        saved = self._enter(isolated)
        self.expect("{")
        region = Region([])
        if self.at("^"):
            self._block(region, self._label())
        elif arguments or terminator is not None or not self.at("}"):
            self._block(region, arguments)
        if self.at("^"):
            self.fail("a region has one block: jumps between blocks are not supported")
        self.expect("}")
        self._leave(saved)
        if terminator is not None and not (region.block.ops and region.block.terminator.terminator):
            region.block.append(terminator())
        return region

    def _label(self) -> list[Argument]:
        self.expect("^")
        self.word("a block name")
        arguments = self.arguments() if self.at("(") else []
        self.expect(":")
        return arguments

    def arguments(self) -> list[Argument]:
        """Read `(%a: f32, %b: i32 loc(...))`."""
        return self.items("(", ")", self.argument)

    def argument(self) -> Argument:
        """Read `%a: f32 loc(...)`; the location of an unnamed argument may name it."""
        start = self.position
        name = self.value_name()
        self.expect(":")
        type = self.type()
        return Argument(name, type, start, self.argument_hint(name))

    def argument_hint(self, name: str) -> str | None:
        """Read an optional `loc("x_ptr"(...))` after an argument: the name it gives to `%arg0`."""
        location = self.location() if self.at_word("loc") else None
        return location.name if isinstance(location, NameLoc) and _UNNAMED.match(name) else None

    def _block(self, region: Region, arguments: Sequence[Argument]) -> None:
        block = region.add(Block([argument.type for argument in arguments]))
        for argument, value in zip(arguments, block.arguments, strict=True):
            self.define(argument.name, value, argument.start)
            value.hint = argument.hint or value.hint
        while not (self.at("}") or self.at("^")):
            if self.position == len(self.text_read):
                self.fail("expected `}`")
            block.append(self.operation())
