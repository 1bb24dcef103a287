"""Branches: `if`, the ternary, and ways out of a body (`return`, `break`, `continue`) under a condition.

Level: Python syntax tree -> `tt`. A condition known when compiling keeps one branch; one known when the kernel runs
becomes an `scf.if` whose results are the values that differ between the branches. Guarantees: both branches give each
result the same type, by `LoopCarriedTypeError` where the value is needed; a branch that leaves early takes the rest of
the body into the other one, so that control flow stays structured.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from mltriton.dialects import scf
from mltriton.errors import ConstexprError, SyntaxNotSupportedError, TypeMismatchError
from mltriton.frontend import assignment, names, python_functions
from mltriton.frontend.flow import Body, Flow
from mltriton.frontend.scope import Scope
from mltriton.frontend.values import (
    describe,
    is_number,
    is_runtime,
    is_same_constant,
    is_same_type,
    is_tuple,
    known_truth,
    rebuilt,
    wrap,
)
from mltriton.ir.operation import Block, Region, Value
from mltriton.language.casting import cast as cast_to
from mltriton.language.creation import full
from mltriton.language.tensor import flatten, tensor, unflatten
from mltriton.language.types import int1, int64

if TYPE_CHECKING:
    from mltriton.frontend.frame import Frame


def if_(frame: Frame, stmt: ast.If) -> Flow:
    """`if`, `elif`, `else` whose branches go on after it (those that leave are `leave_early`'s)."""
    condition = frame.evaluate(stmt.test)
    if (known := known_truth(condition)) is not None:
        return frame.execute(stmt.body if known else stmt.orelse)
    before = frame.scope
    branches = Branches(frame, stmt, truth(frame, stmt.test, condition))
    scopes = [branches.run(lambda body=body: _scope_after(frame, body)) for body in (stmt.body, stmt.orelse)]
    frame.scope = before
    _join_scopes(frame, branches, scopes)
    return Flow.NEXT


def _scope_after(frame: Frame, stmts: Sequence[ast.stmt]) -> Scope:
    frame.execute(stmts)
    return frame.scope


def leave_early(frame: Frame, stmt: ast.If, rest: Sequence[ast.stmt]) -> Flow:
    """An `if` with a way out in it: each branch is compiled together with `rest`, all that follows in the body."""
    condition = frame.evaluate(stmt.test)
    bodies = ([*stmt.body, *rest], [*stmt.orelse, *rest])
    if (known := known_truth(condition)) is not None:
        return frame.execute(bodies[0] if known else bodies[1])
    if frame.bodies[-1] is Body.UNROLLED:
        way_out = next(iter(names.exits([stmt]).values()))
        raise frame.error(
            SyntaxNotSupportedError,
            way_out,
            f"{type(way_out).__name__.lower()} in {Body.UNROLLED.value}, whose condition is known only at run time",
            hint="Use tl.range, or tl.where on the values.",
        )
    before = frame.scope
    branches = Branches(frame, stmt, truth(frame, stmt.test, condition))
    if frame.bodies[-1] is Body.LOOP:
        scopes = [branches.run(lambda body=body: _scope_after(frame, body)) for body in bodies]
        frame.scope = before
        _join_scopes(frame, branches, scopes)
        return Flow.CONTINUE
    values = [branches.run(lambda body=body: _value_after(frame, body)) for body in bodies]
    frame.scope = before
    values = [
        branches.any_like(values[1 - side], side) if value is NOTHING else value for side, value in enumerate(values)
    ]
    joined = branches.join({"": values})
    if "" not in joined:
        raise frame.error(
            TypeMismatchError,
            stmt,
            f"Return type mismatch: {frame.source.name} returns different types when this condition is true and "
            "when it is false",
            found=" and ".join(describe(value) for value in values),
            upstream=f"Inconsistent return types: {' and '.join(describe(value) for value in values)}",
        )
    frame.returned = joined[""]
    return Flow.RETURN


def _value_after(frame: Frame, stmts: Sequence[ast.stmt]) -> Any:
    """What a function returns that ends with these statements; `NOTHING` where control may run off the end."""
    frame.returned = NOTHING
    frame.execute(stmts)
    return frame.returned


class _Nothing:
    """What a function returns whose end is reached: as upstream any value of the type that it returns elsewhere."""


NOTHING = _Nothing()


def ternary(frame: Frame, node: ast.IfExp) -> Any:
    """`a if condition else b`."""
    condition = frame.evaluate(node.test)
    if (known := known_truth(condition)) is not None:
        return frame.evaluate(node.body if known else node.orelse)
    branches = Branches(frame, node, truth(frame, node.test, condition))
    before = frame.scope
    values = [branches.run(lambda arm=arm: frame.evaluate(arm)) for arm in (node.body, node.orelse)]
    frame.scope = before
    joined = branches.join({"": values})
    if "" not in joined:
        raise frame.error(
            TypeMismatchError,
            node,
            "the two values of a ternary have different types",
            expected="one type, since the condition is known only when the kernel runs",
            found=" and ".join(describe(value) for value in values),
            upstream="Ternary expression with dynamic condition has inconsistent types "
            + " and ".join(describe(value) for value in values),
        )
    return joined[""]


def truth(frame: Frame, node: ast.expr, condition: Any) -> tensor:
    """A condition of one element as an i1; a number is true if it is not 0. Raises `ConstexprError` for more."""
    if not isinstance(condition, tensor):
        raise frame.error(TypeMismatchError, node, "a condition must be a scalar", found=describe(condition))
    if condition.numel.value > 1:
        raise frame.error(
            ConstexprError,
            node,
            "a condition must be a scalar, and this is a block: "
            "Boolean value of Tensor with more than one value is ambiguous",
            found=describe(condition),
            hint="tl.where(condition, a, b) chooses for each element; a mask leaves elements out of loads and stores.",
        )
    frame.mark(node)
    if condition.type.is_block():
        from mltriton.language.shapes import item  # Few conditions are blocks of one element.

        condition = item(condition)
    return cast_to(condition, int1)


def static_truth(frame: Frame, node: ast.expr) -> bool:
    """A condition that must be known when compiling."""
    condition = frame.evaluate(node)
    if (known := known_truth(condition)) is None:
        raise frame.error(ConstexprError, node, "the condition must be known when compiling", found=describe(condition))
    return known


def static_items(frame: Frame, node: ast.expr) -> list[Any]:
    """The values that an expression iterates over when compiling: the elements of a tuple, the numbers of a range."""
    found = frame.evaluate(node)
    frame.mark(node)
    return [wrap(item) for item in python_functions.static_items(found)]


class Branches:
    """An `scf.if` being made.

    `run` compiles a branch, `join` finds what differs, creates the operation and gives the joined values.
    """

    def __init__(self, frame: Frame, node: ast.AST, condition: tensor) -> None:
        self.frame = frame
        self.node = node
        self.condition = condition
        self._before = frame.scope
        self._blocks: list[Block] = []

    def run(self, compile_branch: Callable[[], Any]) -> Any:
        """Compile one branch, with the variables as they were before the `if`."""
        self.frame.scope = self._before.copy()
        block = Block()
        self._blocks.append(block)
        with self.frame.builder.inside(block):
            return compile_branch()

    def any_like(self, value: Any, side: int) -> Any:
        """Some value of the type of `value` in one of the branches: 0."""
        self.frame.mark(self.node)
        with self.frame.builder.inside(self._blocks[side]):
            return _zero_like(value)

    def join(self, values: dict[str, list[Any]]) -> dict[str, Any]:
        """Create the operation.

        `values` has for each name what the branches give; names whose types differ are left out of the result.
        """
        agreed = {name: pair for name, (a, b) in values.items() if (pair := self._agree(a, b)) is not None}
        handles = {name: list(zip(flatten(a), flatten(b), strict=True)) for name, (a, b) in agreed.items()}
        differing = list(dict.fromkeys((a, b) for pairs in handles.values() for a, b in pairs if a is not b))
        results = dict(zip(differing, self._create(differing), strict=True))
        return {
            name: unflatten(agreed[name][0], [results.get((a, b), a) for a, b in pairs])
            for name, pairs in handles.items()
        }

    def _create(self, pairs: Sequence[tuple[Value, Value]]) -> Sequence[Value]:
        builder = self.frame.builder
        self.frame.mark(self.node)
        for side, block in enumerate(self._blocks):
            with builder.inside(block):
                builder.create(scf.Yield, [pair[side] for pair in pairs], result_types=[])
        then, otherwise = self._blocks
        is_needed = bool(pairs) or len(otherwise.ops) > 1
        regions = [Region([then]), Region([otherwise] if is_needed else [])]
        return builder.create(
            scf.If, self.condition.handle, result_types=[a.type for a, _ in pairs], regions=regions
        ).results

    def _agree(self, a: Any, b: Any) -> tuple[Any, Any] | None:
        """The values of the branches with numbers made tensors where they differ.

        None if their types do not go together.
        """
        if is_same_constant(a, b):
            return a, b
        if is_tuple(a) and is_tuple(b):
            return self._agree_all(a, b)
        a, b = (self._as_tensor(value, block) for value, block in zip((a, b), self._blocks, strict=True))
        if is_same_type(a, b):
            return a, b
        return None

    def _agree_all(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, Any] | None:
        if len(a) != len(b):
            return None
        pairs = [self._agree(x, y) for x, y in zip(a, b, strict=True)]
        if None in pairs:
            return None
        left, right = zip(*cast("list[tuple[Any, Any]]", pairs), strict=True)
        return rebuilt(a, left), rebuilt(b, right)

    def _as_tensor(self, value: Any, block: Block) -> Any:
        if not is_number(value):
            return value
        self.frame.mark(self.node)
        with self.frame.builder.inside(block):
            return assignment.stored(value)


def _zero_like(value: Any) -> Any:
    if value is NOTHING:
        return value
    if is_tuple(value):
        return rebuilt(value, [_zero_like(item) for item in value])
    if not isinstance(value, tensor) or value.is_block_pointer:
        return value if not is_runtime(value) else wrap(None)
    is_pointer = value.dtype.is_ptr()
    zero = full(value.type.shape, 0, int64 if is_pointer else value.dtype)
    return cast_to(zero, value.dtype) if is_pointer else zero


def _join_scopes(frame: Frame, branches: Branches, scopes: Sequence[Scope]) -> None:
    """Make the variables after an `if` of those after its branches.

    What one branch lacks, or has in another type, is lost.
    """
    then, otherwise = scopes
    line = getattr(branches.node, "lineno", 0)
    joined = branches.join({name: [then[name], otherwise[name]] for name in then if name in otherwise})
    for name in dict.fromkeys([*then, *otherwise, *then.lost, *otherwise.lost]):
        if name in joined:
            assigned_in = then if then.locations.get(name) != frame.scope.locations.get(name) else otherwise
            assignment.set_hinted(frame, name, joined[name], assigned_in.locations.get(name))
        elif name in then and name in otherwise:
            types = f"{describe(then[name])}{then.where(name)} and {describe(otherwise[name])}{otherwise.where(name)}"
            why = f"has different types after the branches of the if in line {line}: {types}"
            blocks = f"then block ({describe(then[name])}) and else block ({describe(otherwise[name])})"
            frame.scope.lose(name, f"{why}\nMismatched type for {name} between {blocks}")
        elif name in then or name in otherwise:
            holder, branch = (then, "true") if name in then else (otherwise, "false")
            why = f"has a value only if the condition in line {line} is {branch}{holder.where(name)}"
            frame.scope.lose(name, (otherwise if name in then else then).lost.get(name, why))
        else:
            frame.scope.lose(name, {**otherwise.lost, **then.lost}[name])
