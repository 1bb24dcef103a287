"""IR as MLIR text.

Level: all. `print_op` writes an operation with everything in it: in the custom syntax of each operation
(`ir/syntax.py`), or in the generic syntax that every MLIR tool reads. A module gets aliases for encodings and
locations. Guarantees: for what the verifier accepts, parsing the text and printing it again gives the same text.
Values print by their hint made unique (`%acc`, `%acc_0`), otherwise by number; names start again in each isolated
operation (a function).
"""

from __future__ import annotations

import re

from mltriton.ir.attribute_text import TextTables, attribute_text, location_text, type_text
from mltriton.ir.attributes import Attribute, DenseArrayAttr
from mltriton.ir.definition import parts_of, segments_of
from mltriton.ir.operation import Block, Operation, OpResult, Region, Value
from mltriton.ir.syntax import syntax_of
from mltriton.ir.types import I32

__all__ = ["Names", "Printer", "attribute_text", "location_text", "print_op", "type_text"]

_HINT = re.compile(r"[A-Za-z_$.-][\w$.-]*\Z", re.ASCII)
_BAD_CHARACTER = re.compile(r"[^\w$.-]", re.ASCII)


def print_op(op: Operation, generic: bool = False, locations: bool = False) -> str:
    """The text of an operation, without a final newline."""
    whole = op.block is None and bool(op.regions) and not op.operands and not op.results
    return Printer(generic, locations, aliases=whole).print(op)


class Names(dict[Value, str]):
    """Names of the values in one scope (`%x`); a value that is met before its definition gets one on the spot."""

    def __init__(self) -> None:
        super().__init__()
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def __missing__(self, value: Value) -> str:
        base = value.hint or (value.op.default_name() if isinstance(value, OpResult) else "arg")
        if base is None or base == "arg":
            name = self._numbered(base or "", "")
        else:
            name = self._unique(base)
        self[value] = name
        return name

    def results(self, op: Operation) -> str:
        """What stands left of the equals sign: `%a, %b`, or `%0:2` for several results without hints."""
        if len(op.results) == 1:
            return self[op.results[0]]
        if any(result.hint for result in op.results):
            return ", ".join(self[result] for result in op.results)
        group = self._numbered("", "")
        for result in op.results:
            self[result] = f"{group}#{result.index}"
        return f"{group}:{len(op.results)}"

    def _unique(self, base: str) -> str:
        if not _HINT.match(base):
            base = _BAD_CHARACTER.sub("_", base)
            base = base if _HINT.match(base) else f"_{base}"
        name = f"%{base}"
        return self._numbered(base, "_") if name in self._taken else self._take(name)

    def _numbered(self, base: str, separator: str) -> str:
        number = self._next.get(base, 0)
        while (name := f"%{base}{separator}{number}") in self._taken:
            number += 1
        self._next[base] = number + 1
        return self._take(name)

    def _take(self, name: str) -> str:
        self._taken.add(name)
        return name


class Printer:
    """State of one print: the names in scope, the tables of texts and the indentation."""

    def __init__(self, generic: bool = False, locations: bool = False, aliases: bool = False) -> None:
        self.generic = generic
        self.locations = locations
        self.tables = TextTables(aliases)
        self.type = self.tables.type
        self.names = Names()
        self.indent = ""

    def print(self, op: Operation) -> str:
        """The text of `op` and of the aliases it uses."""
        body = self.op(op)
        tables = self.tables
        return "".join([*tables.definitions, body, *tables.location_definitions]).rstrip("\n")

    def op(self, op: Operation) -> str:
        """One operation on lines of its own."""
        names = self.names
        results = f"{names.results(op)} = " if op.results else ""
        if op.isolated:
            self.names = Names()
        text = self._text(op)
        self.names = names
        location = f" loc({self.tables.location(op.loc)})" if self.locations else ""
        return f"{self.indent}{results}{text}{location}\n"

    def _text(self, op: Operation) -> str:
        syntax = None if self.generic else syntax_of(op.__class__)
        return self._generic(op) if syntax is None else op.name.removeprefix("builtin.") + syntax.text(op, self)

    def _generic(self, op: Operation) -> str:
        names, tables = self.names, self.tables
        properties, others = split_attributes(op)
        return "".join(
            [
                f'"{op.name}"({", ".join([names[operand] for operand in op.operands])})',
                f" <{{{tables.entries(properties)}}}>" if properties else "",
                f" ({', '.join([self.region(region, labelled=True) for region in op.regions])})" if op.regions else "",
                f" {{{tables.entries(others)}}}" if others else "",
                f" : ({tables.type_list([operand.type for operand in op.operands])})",
                f" -> {tables.results([result.type for result in op.results])}",
            ]
        )

    def region(self, region: Region, labelled: bool = False, elide: type[Operation] | None = None) -> str:
        """`{ ... }`.

        `labelled` writes the block's label where it has arguments; `elide` leaves out a final operation of that class
        that has neither operands nor attributes (nor, when those are written, a location).
        """
        outer = self.indent
        self.indent += "  "
        lines = ["{\n"]
        for index, block in enumerate(region.blocks):
            if index or (labelled and block.arguments):
                lines.append(f"{outer}^bb{index}{self._arguments(block)}:\n")
            elided = elide is not None and not self.locations and _is_bare(block, elide)
            ops = block.ops[:-1] if elided else block.ops
            lines.extend([self.op(op) for op in ops])
        self.indent = outer
        lines.append(f"{outer}}}")
        return "".join(lines)

    def _arguments(self, block: Block) -> str:
        arguments = ", ".join(f"{self.names[argument]}: {self.type(argument.type)}" for argument in block.arguments)
        return f"({arguments})" if arguments else ""


def split_attributes(op: Operation) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Attributes by text name: MLIR's properties (declared ones and the operand group sizes), and the others."""
    parts = parts_of(type(op))
    properties: dict[str, Attribute] = {}
    others: dict[str, Attribute] = {}
    for name, value in op.attributes.items():
        text = parts.text_names.get(name, name)
        is_property = name in parts.attributes and "." not in text
        (properties if is_property else others)[text] = value
    if parts.is_segmented:
        properties["operandSegmentSizes"] = DenseArrayAttr(segments_of(op), I32)
    return properties, others


def _is_bare(block: Block, cls: type[Operation]) -> bool:
    last = block.ops[-1] if block.ops else None
    return last is not None and type(last) is cls and not last.operands and not last.attributes


class _Watching(Printer):
    """A printer that keeps the text of one operation."""

    def __init__(self, wanted: Operation, generic: bool) -> None:
        super().__init__(generic)
        self.wanted = wanted
        self.found: str | None = None

    def op(self, op: Operation) -> str:
        text = super().op(op)
        if op is self.wanted:
            self.found = text
        return text


def text_within(op: Operation, root: Operation) -> str | None:
    """The first line of an operation's text, named as in `root`. None where `root` is too broken to be printed."""
    for generic in (False, True):
        printer = _Watching(op, generic)
        try:
            printer.op(root)
        except Exception:  # what cannot be printed is broken IR, which is about to be reported
            continue
        if printer.found is not None:
            return printer.found.strip().split("\n")[0]
    return None
