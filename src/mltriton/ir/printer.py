"""IR as MLIR text.

Level: all. `print_op` writes an operation with everything in it: in the custom syntax of each operation
(`ir/syntax.py`), or in the generic syntax that every MLIR tool reads. A module gets aliases for encodings and
locations. Guarantees: for what the verifier accepts, parsing the text and printing it again gives the same text.
Values print by their hint made unique (`%acc`, `%acc_0`), otherwise by number; names start again in each isolated
operation (a function).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mltriton.ir.attribute_text import TextTables, attribute_text, location_text, type_text
from mltriton.ir.attributes import Attribute, DenseArrayAttr
from mltriton.ir.definition import parts_of, segments_of
from mltriton.ir.operation import Block, Operation, OpResult, Region, Value
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
        name = (
            self._numbered("", "")
            if base is None
            else self._numbered("arg", "")
            if base == "arg"
            else self._unique(base)
        )
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
    """State of one print: the names in scope, the tables of texts, the indentation and the text so far."""

    def __init__(self, generic: bool = False, locations: bool = False, aliases: bool = False) -> None:
        self.generic = generic
        self.locations = locations
        self.tables = TextTables(aliases)
        self.type = self.tables.type
        self.names = Names()
        self.indent = ""
        self.out: list[str] = []

    def print(self, op: Operation) -> str:
        """The text of `op` and of the aliases it uses."""
        self.op(op)
        tables = self.tables
        body = "".join(self.out).rstrip("\n")
        return "".join(
            [*tables.definitions, body, "\n" if tables.location_definitions else "", *tables.location_definitions]
        ).rstrip("\n")

    def op(self, op: Operation) -> None:
        """Write one operation on lines of its own."""
        write = self.out.append
        write(self.indent)
        if op.results:
            write(f"{self.names.results(op)} = ")
        if op.isolated:
            saved, self.names = self.names, Names()
            self._op_text(op)
            self.names = saved
        else:
            self._op_text(op)
        write(f" loc({self.tables.location(op.loc)})\n" if self.locations else "\n")

    def _op_text(self, op: Operation) -> None:
        self._generic(op)

    def _generic(self, op: Operation) -> None:
        write = self.out.append
        names = self.names
        write(f'"{op.name}"({", ".join([names[operand] for operand in op.operands])})')
        properties, others = self.split_attributes(op)
        if properties:
            write(f" <{{{self.tables.entries(properties)}}}>")
        if op.regions:
            write(" (")
            for index, region in enumerate(op.regions):
                write(", " if index else "")
                self.region(region, labelled=True)
            write(")")
        if others:
            write(f" {{{self.tables.entries(others)}}}")
        operand_types = self.tables.type_list([operand.type for operand in op.operands])
        write(f" : ({operand_types}) -> {self.tables.results([result.type for result in op.results])}")

    def split_attributes(self, op: Operation) -> tuple[dict[str, Attribute], Mapping[str, Attribute]]:
        """The declared attributes by text name with the operand group sizes (MLIR's properties), and the others."""
        parts = parts_of(type(op))
        spelled = type(op).spelled
        properties = {
            spelled.get(name, name): op.attributes[name] for name in parts.attributes if name in op.attributes
        }
        others = {name: value for name, value in op.attributes.items() if name not in parts.attributes}
        if parts.is_segmented:
            properties["operandSegmentSizes"] = DenseArrayAttr(segments_of(op), I32)
        return properties, others

    def region(self, region: Region, labelled: bool = False) -> None:
        """Write `{ ... }`; `labelled` writes the first block's label where it has arguments."""
        if not region.blocks:
            self.out.append("{\n" + self.indent + "}")
            return
        self.out.append("{\n")
        saved, self.indent = self.indent, self.indent + "  "
        for index, block in enumerate(region.blocks):
            if index or (labelled and block.arguments):
                self.out.append(f"{saved}^bb{index}{self._arguments(block)}:\n")
            self.ops(block.ops)
        self.indent = saved
        self.out.append(f"{saved}}}")

    def ops(self, ops: list[Operation]) -> None:
        """Write operations, each on its lines."""
        for op in ops:
            self.op(op)

    def _arguments(self, block: Block) -> str:
        arguments = ", ".join(f"{self.names[argument]}: {self.type(argument.type)}" for argument in block.arguments)
        return f"({arguments})" if arguments else ""
