"""Statements of machine code: assignments, branches, loops.

Level: runtime.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from . import calls
from .names import I64, VOID, Names, Type, Value, refused
from .values import Values


class Body(Values):
    """All of one function."""

    def __init__(self, names: Names, result: Type, intrinsics: dict[str, str]) -> None:
        super().__init__(names, result, intrinsics)
        self.loops: list[tuple[str, str]] = []  # where `continue` and `break` go

    def text(self, node: ast.FunctionDef, signature: Type) -> str:
        """All of it."""
        for argument, type in zip(node.args.args, signature.parameters, strict=True):
            self.set(argument.arg, Value(type, f"%{argument.arg}"))
        self.block(node.body)
        if self.is_open:
            self.end("ret void" if self.result is VOID else "unreachable")
        return "\n".join(["entry:", *self.rooms, *self.lines])

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.is_open:
                self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Global() | ast.Pass():
                pass
            case ast.Expr():
                self.value(node.value)
            case ast.AnnAssign(target=ast.Name(id=name)) if node.value is not None:
                type = self.names.type(node.annotation)
                self.set(name, Value(type, self.value(node.value, type).text))
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Call() as called):
                for target, value in zip(targets, calls.pair(self, called), strict=True):
                    self.change(target, lambda _, value=value: value)
            case ast.Assign(targets=[target]):
                self.change(target, lambda type: self.value(node.value, type))
            case ast.AugAssign():
                self.change(node.target, lambda _: self.binary(node.op, *self.operands(node.target, node.value)))
            case ast.Return():
                self.give_back(node)
            case ast.If():
                self.branch(node)
            case ast.While():
                self.loop(node.test, node.body)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(args=[end])):
                self.count_up(name, end, node.body)
            case ast.Break():
                self.end(f"br label %{self.loops[-1][1]}")
            case ast.Continue():
                self.end(f"br label %{self.loops[-1][0]}")
            case _:
                raise refused(node, "no statement")

    def give_back(self, node: ast.Return) -> None:
        value = Value(VOID, "") if node.value is None else self.value(node.value, self.result)
        if value.type.text != self.result.text:
            raise refused(node, f"{value.type.text} is not {self.result.text}")
        self.end(f"ret {value}".strip())

    def branch(self, node: ast.If) -> None:
        then, other, behind = self.label(), self.label(), self.label()
        self.condition(node.test, then, other)
        for label, statements in ((then, node.body), (other, node.orelse)):
            self.open(label)
            self.block(statements)
            self.end(f"br label %{behind}")
        self.open(behind)

    def loop(self, test: ast.expr, body: Sequence[ast.stmt], step: Callable[[], None] = lambda: None) -> None:
        head, inside, following, behind = (self.label() for _ in range(4))
        self.start(head)
        self.condition(test, inside, behind)
        self.loops.append((following, behind))
        self.open(inside)
        self.block(body)
        self.loops.pop()
        self.start(following)
        step()
        self.end(f"br label %{head}")
        self.open(behind)

    def count_up(self, name: str, end: ast.expr, body: Sequence[ast.stmt]) -> None:
        """`for name in up_to(end)`."""
        self.set(name, Value(I64, "0"))
        counter = ast.Name(name, ast.Load())

        def step() -> None:
            self.set(name, self.binary(ast.Add(), self.value(counter), Value(I64, "1")))

        self.loop(ast.Call(ast.Name("below", ast.Load()), [counter, end], []), body, step)

    def change(self, target: ast.expr, value: Callable[[Type | None], Value]) -> None:
        """Give a variable, field or element a value, which is asked for with the type that it must have, if known."""
        if isinstance(target, ast.Name) and target.id not in self.names.variables:
            made = value(self.slots.get(target.id))
            if made.type.text != self.slots.get(target.id, made.type).text:
                raise refused(target, f"another type than before, {made.type.text}")
            self.set(target.id, made)
        else:
            type, address = self.place(target)
            self.lines.append(f"  store {type.text} {value(type).text}, ptr {address}")
