"""Expressions of machine code: variables, fields, elements, arithmetic, comparisons, conditions.

Level: runtime.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Mapping
from typing import Any

from . import calls
from .instructions import Instructions
from .names import F64, I1, I64, PTR, Type, Value, refused

ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("add", "fadd"),
    ast.Sub: ("sub", "fsub"),
    ast.Mult: ("mul", "fmul"),
    ast.Div: ("", "fdiv"),
    ast.FloorDiv: ("udiv", ""),
    ast.LShift: ("shl", ""),
    ast.RShift: ("lshr", ""),
    ast.BitAnd: ("and", ""),
    ast.BitOr: ("or", ""),
    ast.BitXor: ("xor", ""),
}
COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("icmp eq", "fcmp oeq"),
    ast.NotEq: ("icmp ne", "fcmp une"),
    ast.Lt: ("icmp slt", "fcmp olt"),
    ast.LtE: ("icmp sle", "fcmp ole"),
    ast.Gt: ("icmp sgt", "fcmp ogt"),
    ast.GtE: ("icmp sge", "fcmp oge"),
    ast.Is: ("icmp eq", ""),
    ast.IsNot: ("icmp ne", ""),
}


class Values(Instructions):
    """The expressions of one function."""

    def place(self, node: ast.expr) -> tuple[Type, str]:
        """The type and address of a variable, a field or an element."""
        match node:
            case ast.Name(id=name) if name in self.slots:
                return self.slots[name], f"%{name}.at"
            case ast.Name(id=name) if name in self.names.variables:
                return self.names.variables[name], f"@{name}"
            case ast.Attribute():
                base = self.value(node.value)
                type, number = self.field(base, node)
                at = f"getelementptr %{base.type.structure}, {base}, i32 0, i32 {number}"
                return type, self.emit(PTR, at).text
            case ast.Subscript():
                base, index = self.value(node.value), self.value(node.slice, I64)
                if base.type.element is None:
                    raise refused(node, "no array")
                at = f"getelementptr {self.names.inline(base.type.element)}, {base}, {index}"
                return base.type.element, self.emit(PTR, at).text
            case _:
                raise refused(node, "no place")

    def field(self, base: Value, node: ast.Attribute) -> tuple[Type, int]:
        fields = self.names.structures.get(base.type.structure, {})
        if node.attr not in fields:
            raise refused(node, "no such field")
        return fields[node.attr], list(fields).index(node.attr)

    def value(self, node: ast.expr, wanted: Type | None = None) -> Value:
        match node:
            case ast.Constant():
                return self.constant(node, wanted)
            case ast.Name(id=name) if name in self.names.constants:
                return Value(wanted or I64, str(self.names.constants[name]))
            case ast.Name(id=name) if name in self.names.symbols:
                return self.names.symbols[name]
            case ast.Name(id=name) if name in self.names.functions:
                return Value(self.names.functions[name], f"@{name}")
            case ast.Name() | ast.Attribute() | ast.Subscript():
                type, address = self.place(node)
                is_local = isinstance(node, ast.Name) and node.id in self.slots
                is_element = isinstance(node, ast.Subscript) and type.structure and not type.is_address
                is_address = not is_local and (type.in_place or is_element)
                return Value(type, address) if is_address else self.emit(type, f"load {type.text}, ptr {address}")
            case ast.BinOp():
                return self.binary(node.op, *self.operands(node.left, node.right))
            case ast.Compare(ops=[op], comparators=[right]):
                a, b = self.operands(node.left, right)
                return self.emit(I1, f"{_name(COMPARISONS, op, a)} {a}, {b.text}")
            case ast.UnaryOp(op=ast.Not()):
                return self.emit(I1, f"xor {self.value(node.operand, I1)}, true")
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=number)):
                return self.constant(ast.Constant(-number), wanted)  # type: ignore[operator]
            case ast.IfExp():
                if any(isinstance(each, ast.Call) for arm in (node.body, node.orelse) for each in ast.walk(arm)):
                    raise refused(node, "both sides of a choice are computed")
                condition, (first, other) = self.value(node.test, I1), self.operands(node.body, node.orelse, wanted)
                return self.emit(first.type, f"select {condition}, {first}, {other}")
            case ast.BoolOp():
                return self.both(node)
            case ast.Call():
                return calls.call(self, node)
            case _:
                raise refused(node, "no expression")

    def constant(self, node: ast.Constant, wanted: Type | None) -> Value:
        match node.value:
            case None:
                return Value(PTR, "null")
            case bool():
                return Value(I1, str(node.value).lower())
            case float():
                return Value(F64, f"0x{struct.unpack('>Q', struct.pack('>d', node.value))[0]:016X}")
            case int():
                return Value(wanted or I64, str(node.value))
            case _:
                raise refused(node, "no constant")

    def operands(self, left: ast.expr, right: ast.expr, wanted: Type | None = None) -> tuple[Value, Value]:
        """Two values of one type; a number without a type takes the other one's."""
        if self.is_number(left) and not self.is_number(right):
            second = self.value(right, wanted)
            return self.value(left, second.type), second
        first = self.value(left, wanted)
        return first, self.value(right, first.type)

    def is_number(self, node: ast.expr) -> bool:
        """Whether an expression is a number without a type."""
        if isinstance(node, ast.UnaryOp):
            node = node.operand
        return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in self.names.constants)

    def binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        """Arithmetic."""
        return self.emit(left.type, f"{_name(ARITHMETIC, op, left)} {left}, {right.text}")

    def both(self, node: ast.BoolOp) -> Value:
        """`and` or `or` as a value."""
        slot, behind = self.room("i1"), self.label()
        labels = self.label(), self.label()
        self.condition(node, *labels)
        for label, text in zip(labels, ("true", "false"), strict=True):
            self.lines += [f"{label}:", f"  store i1 {text}, ptr {slot}", f"  br label %{behind}"]
        self.open(behind)
        return self.emit(I1, f"load i1, ptr {slot}")

    def condition(self, node: ast.expr, then: str, other: str) -> None:
        """Go on where it says."""
        match node:
            case ast.BoolOp(values=[first, *rest]):
                following = self.label()
                is_and = isinstance(node.op, ast.And)
                self.condition(first, following if is_and else then, other if is_and else following)
                self.open(following)
                self.condition(ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0], then, other)
            case ast.UnaryOp(op=ast.Not()):
                self.condition(node.operand, other, then)
            case ast.Constant(value=True):
                self.end(f"br label %{then}")
            case _:
                self.end(f"br {self.value(node, I1)}, label %{then}, label %{other}")


def _name(table: Mapping[Any, tuple[str, str]], op: ast.AST, operand: Value) -> str:
    """The instruction for an operator: for integers and addresses, or for floats."""
    found = table.get(type(op), ("", ""))[operand.type == F64]
    if not found:
        raise refused(op, "no operator")
    return found
