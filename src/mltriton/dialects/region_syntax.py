"""Custom syntax of the operations with regions: modules, functions, loops, nests and branches; and of `arith.select`.

Level: all. Each element writes and reads everything after the operation's name, as MLIR does; formats name it
`custom<...>`. A `scf.yield` without values is left out at the end of `scf.for` and `scf.if` bodies, and added when
reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mltriton.dialects import scf, tile, tt, ttg
from mltriton.ir.attribute_text import symbol_text
from mltriton.ir.attributes import (
    ArrayAttr,
    Attribute,
    DenseArrayAttr,
    DictAttr,
    IntegerAttr,
    StringAttr,
    TypeAttr,
    string_in,
)
from mltriton.ir.definition import parts_of
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.syntax_elements import Argument, Element, Parsed
from mltriton.ir.types import I1, I32, INDEX, FunctionType, Type

if TYPE_CHECKING:
    from mltriton.ir.parser import Parser
    from mltriton.ir.printer import Printer


class ModuleElement(Element):
    """`@name attributes {...} { ... }`."""

    def text(self, op: Operation, printer: Printer) -> str:
        name = string_in(op.attributes, "sym_name", None)
        symbol = "" if name is None else f" {symbol_text(name)}"
        return symbol + attributes_text(op, printer, skip=("sym_name",)) + " " + printer.region(op.regions[0])

    def read(self, parser: Parser, parsed: Parsed) -> None:
        if parser.at("@"):
            parsed.attributes["sym_name"] = StringAttr(parser.symbol())
        read_attributes(parser, parsed)
        region = parser.region(isolated=True)
        parsed.regions = [region if region.blocks else Region([Block()])]


class FunctionElement(Element):
    """`public @name(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) -> f32 attributes {...} { ... }`."""

    def text(self, op: Operation, printer: Printer) -> str:
        op = cast(tt.Func, op)
        results = op.function_type.results
        arrow = f" -> {printer.tables.results(results)}" if results else ""
        known = ("sym_name", "function_type", "sym_visibility", "arg_attrs")
        visibility = f" {op.sym_visibility}" if "sym_visibility" in op.attributes else ""
        head = f"{visibility} {symbol_text(op.sym_name)}({self._parameters(op, printer)}){arrow}"
        body = f" {printer.region(op.body)}" if op.body.blocks else ""
        return head + attributes_text(op, printer, skip=known) + body

    def _parameters(self, op: tt.Func, printer: Printer) -> str:
        types = op.function_type.inputs
        attributes = op.promises
        written: list[str] = []
        for index, type in enumerate(types):
            name = f"{printer.names[op.body.block.arguments[index]]}: " if op.body.blocks else ""
            entries = attributes[index]
            extra = f" {printer.tables.attribute(entries)}" if entries.entries else ""
            written.append(f"{name}{printer.type(type)}{extra}")
        return ", ".join(written)

    def read(self, parser: Parser, parsed: Parsed) -> None:
        for word in ("public", "private", "nested"):
            if parser.accept_word(word):
                parsed.attributes["sym_visibility"] = StringAttr(word)
        parsed.attributes["sym_name"] = StringAttr(parser.symbol())
        parameters = parser.items("(", ")", lambda: self._parameter(parser))
        arguments = [argument for argument, _ in parameters]
        results = parser.result_types() if parser.accept("->") else []
        types = tuple(argument.type for argument in arguments)
        parsed.attributes["function_type"] = TypeAttr(FunctionType(types, tuple(results)))
        if any(attributes.entries for _, attributes in parameters):
            parsed.attributes["arg_attrs"] = ArrayAttr(tuple(attributes for _, attributes in parameters))
        read_attributes(parser, parsed)
        parsed.regions = [parser.region(arguments, isolated=True) if parser.at("{") else Region([])]

    def _parameter(self, parser: Parser) -> tuple[Argument, DictAttr]:
        start = parser.position
        name = parser.value_name() if parser.at("%") else ""
        if name:
            parser.expect(":")
        type = parser.type()
        entries = parser.dictionary() if parser.at("{") else {}
        return Argument(name, type, start, parser.argument_hint(name)), DictAttr(tuple(sorted(entries.items())))


class ForElement(Element):
    """`%i = %lower to %upper step %step iter_args(%x = %init) -> (f32) : i32 { ... } {attributes}`."""

    def text(self, op: Operation, printer: Printer) -> str:
        op = cast(scf.For, op)
        names = printer.names
        lower, upper, step = (names[value] for value in op.operands[:3])
        head = f" {names[op.counter]} = {lower} to {upper} step {step}"
        carried = assignments(op.carried, op.inits, printer)
        results = (
            f" iter_args({carried}) -> ({printer.tables.type_list([r.type for r in op.results])})" if carried else ""
        )
        counter = "" if op.lower.type is INDEX else f" : {printer.type(op.lower.type)}"
        body = printer.region(op.body, elide=scf.Yield)
        return f"{head}{results}{counter} {body}{attributes_text(op, printer, keyword='')}"

    def read(self, parser: Parser, parsed: Parsed) -> None:
        start = parser.position
        counter = parser.value_name()
        parser.expect("=")
        bounds: list[Value] = [parser.operand()]
        for word in ("to", "step"):
            parser.expect_word(word)
            bounds.append(parser.operand())
        names, inits = read_assignments(parser) if parser.accept_word("iter_args") else ([], [])
        parsed.result_types = parser.result_types() if parser.accept("->") else []
        is_typed = parser.accept(":")
        position = parser.position
        type = parser.type() if is_typed else INDEX
        for bound in bounds:
            parser.check_type(bound, type, position)
        parsed.operands = {"lower": bounds[:1], "upper": bounds[1:2], "step": bounds[2:], "inits": inits}
        arguments = [Argument(counter, type, start), *carried_arguments(parser, names, parsed.result_types)]
        parsed.regions = [parser.region(arguments, terminator=scf.Yield)]
        if parser.at("{"):
            parsed.attributes = parser.declared_dictionary(parsed.cls)


class IfElement(Element):
    """`%c -> (f32) { ... } else { ... } {attributes}`."""

    def text(self, op: Operation, printer: Printer) -> str:
        op = cast(scf.If, op)
        results = f" -> ({printer.tables.type_list([r.type for r in op.results])})" if op.results else ""
        then = printer.region(op.then, elide=scf.Yield)
        otherwise = f" else {printer.region(op.otherwise, elide=scf.Yield)}" if op.otherwise.blocks else ""
        tail = attributes_text(op, printer, keyword="")
        return f" {printer.names[op.condition]}{results} {then}{otherwise}{tail}"

    def read(self, parser: Parser, parsed: Parsed) -> None:
        parsed.operands["condition"] = [parser.operand()]
        parsed.result_types = parser.result_types() if parser.accept("->") else []
        then = parser.region(terminator=scf.Yield)
        parsed.regions = [then, parser.region(terminator=scf.Yield) if parser.accept_word("else") else Region([])]
        if parser.at("{"):
            parsed.attributes = parser.declared_dictionary(parsed.cls)


class WhileElement(Element):
    """`(%x = %init) : (f32) -> f32 { ... } do { ... } attributes {...}`."""

    def text(self, op: Operation, printer: Printer) -> str:
        op = cast(scf.While, op)
        arguments = assignments(op.before.block.arguments, op.inits, printer)
        types = printer.tables.type_list([value.type for value in op.inits])
        head = f"({types}) -> {printer.tables.results([result.type for result in op.results])}"
        before = printer.region(op.before)
        start = f" ({arguments})" if arguments else ""
        return f"{start} : {head} {before} do {printer.region(op.after, labelled=True)}{attributes_text(op, printer)}"

    def read(self, parser: Parser, parsed: Parsed) -> None:
        names, inits = read_assignments(parser) if parser.at("(") else ([], [])
        parsed.operands["inits"] = inits
        parser.expect(":")
        type = parser.function_type()
        parsed.result_types = list(type.results)
        before = parser.region(carried_arguments(parser, names, type.inputs))
        parser.expect_word("do")
        parsed.regions = [before, parser.region(terminator=scf.Yield)]
        read_attributes(parser, parsed)


class WarpSpecializeElement(Element):
    """`default { ... } partition num_warps(4) { ... } {attributes}`."""

    def text(self, op: Operation, printer: Printer) -> str:
        op = cast(ttg.WarpSpecialize, op)
        sides = printer.region(op.default), printer.region(op.partition)
        tail = attributes_text(op, printer, skip=("num_warps",), keyword="")
        return f" default {sides[0]} partition num_warps({op.num_warps}) {sides[1]}{tail}"

    def read(self, parser: Parser, parsed: Parsed) -> None:
        parser.expect_word("default")
        default = parser.region(terminator=ttg.WarpYield)
        for word in ("partition", "num_warps"):
            parser.expect_word(word)
        parser.expect("(")
        count = IntegerAttr(parser.integer(), I32)
        parser.expect(")")
        parsed.regions = [default, parser.region(terminator=ttg.WarpReturn)]
        if parser.at("{"):
            parsed.attributes = parser.declared_dictionary(parsed.cls)
        parsed.attributes["num_warps"] = count


class NestElement(Element):
    """`loops(0, 1) -> (f32) { ... } {attributes}`."""

    def text(self, op: Operation, printer: Printer) -> str:
        op = cast(tile.Nest, op)
        loops = ", ".join(map(str, op.loops))
        results = f" -> ({printer.tables.type_list([r.type for r in op.results])})" if op.results else ""
        tail = attributes_text(op, printer, skip=("loops",), keyword="")
        return f" loops({loops}){results} {printer.region(op.body, elide=tile.Yield)}{tail}"

    def read(self, parser: Parser, parsed: Parsed) -> None:
        parser.expect_word("loops")
        parsed.attributes["loops"] = DenseArrayAttr(tuple(parser.items("(", ")", parser.integer)), I32)
        parsed.result_types = parser.result_types() if parser.accept("->") else []
        parsed.regions = [parser.region(terminator=tile.Yield)]
        if parser.at("{"):
            parsed.attributes |= parser.declared_dictionary(parsed.cls)


class SelectTypes(Element):
    """The type of the values of a select, after that of the condition where it is no plain i1."""

    def text(self, op: Operation, printer: Printer) -> str:
        condition, value = op.operands[0].type, op.operands[1].type
        return f" {printer.type(value)}" if condition is I1 else f" {printer.type(condition)}, {printer.type(value)}"

    def read(self, parser: Parser, parsed: Parsed) -> None:
        condition: Type = I1
        start = parser.position
        type = parser.type()
        if parser.accept(","):
            condition, type = type, parser.type()
        parser.check_type(parsed.operands["condition"][0], condition, start)
        for name in ("true_value", "false_value"):
            parser.check_type(parsed.operands[name][0], type, start)


CUSTOM: dict[str, Element] = {
    "module": ModuleElement(),
    "func": FunctionElement(),
    "for": ForElement(),
    "if": IfElement(),
    "while": WhileElement(),
    "warp_specialize": WarpSpecializeElement(),
    "nest": NestElement(),
    "select-types": SelectTypes(),
}


def attributes_text(op: Operation, printer: Printer, skip: Sequence[str] = (), keyword: str = " attributes") -> str:
    """` attributes {...}` with everything that the syntax does not show otherwise."""
    names = parts_of(type(op)).text_names
    shown: dict[str, Attribute] = {names.get(n, n): value for n, value in op.attributes.items() if n not in skip}
    return f"{keyword} {{{printer.tables.entries(shown)}}}" if shown else ""


def read_attributes(parser: Parser, parsed: Parsed) -> None:
    """Read an optional `attributes {...}`."""
    if parser.accept_word("attributes"):
        parsed.attributes.update(parser.declared_dictionary(parsed.cls))


def assignments(arguments: Sequence[Value], values: Sequence[Value], printer: Printer) -> str:
    """`%x = %init, ...`."""
    names = printer.names
    return ", ".join([f"{names[a]} = {names[v]}" for a, v in zip(arguments, values, strict=True)])


def read_assignments(parser: Parser) -> tuple[list[tuple[str, int]], list[Value]]:
    """Read `(%x = %init, ...)`: names with their positions, and values."""
    pairs = parser.items("(", ")", lambda: (parser.value_name(), parser.position, parser.expect("="), parser.operand()))
    return [(name, position) for name, position, _, _ in pairs], [value for *_, value in pairs]


def carried_arguments(parser: Parser, names: list[tuple[str, int]], types: Sequence[Type]) -> list[Argument]:
    """Block arguments of those names and types."""
    if len(names) != len(types):
        parser.fail("wrong number of types", expected=f"{len(names)} types", found=f"{len(types)} types")
    return [Argument(name, type, start) for (name, start), type in zip(names, types, strict=True)]
