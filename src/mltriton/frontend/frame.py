"""One function while it is compiled: its variables, its location in the file, the dispatch to what syntax means.

Level: Python syntax tree -> `tt`. A kernel is one frame; every call of a function written in the language is another,
which emits into the same builder (calls are inlined). Guarantees: each operation carries the user's line, as a
call-site location inside calls; an error without a location gets the one of the innermost expression that caused it.
What syntax means stands in the tables of `expressions.py` and `statements.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from mltriton.errors import CompilationError, TritonError
from mltriton.frontend import control_flow, expressions, names, statements
from mltriton.frontend.environment import Environment
from mltriton.frontend.flow import Body, Flow
from mltriton.frontend.scope import Scope
from mltriton.frontend.source import FunctionSource
from mltriton.ir.builder import Builder
from mltriton.ir.location import CallSiteLoc, Location
from mltriton.records import record

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    class Details(TypedDict, total=False):
        """What an error may say besides its message."""

        expected: str | None
        found: str | None
        hint: str | None
        upstream: str | None


@record()
class Unit:
    """What all frames of one kernel share."""

    builder: Builder
    frames: list[Frame] = field(default_factory=list["Frame"])


class Frame:
    """The state of one function: `scope`, the bodies it is in, and the value it returned."""

    def __init__(self, unit: Unit, source: FunctionSource, environment: Environment, call: Location | None) -> None:
        self.unit = unit
        self.builder = unit.builder
        self.source = source
        self.environment = environment
        self.call = call
        self.scope = Scope()
        self.declared: set[str] = set()  # Annotated `tl.constexpr` without a value so far.
        self.bodies: list[Body] = [Body.FUNCTION]
        self.returned: Any = None

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression."""
        handler = expressions.EXPRESSIONS.get(type(node))
        try:
            if handler is None:
                raise expressions.unsupported(node)
            return handler(self, node)
        except TritonError as error:
            self.placed(error, node)
            raise

    def evaluate_all(self, nodes: Iterable[ast.expr]) -> list[Any]:
        """The values of expressions; `*x` gives the parts of x."""
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values.extend(control_flow.static_items(self, node.value))
            else:
                values.append(self.evaluate(node))
        return values

    def execute(self, stmts: Sequence[ast.stmt]) -> Flow:
        """Compile statements. What follows a statement that always leaves is dead code, which is not looked at."""
        for index, stmt in enumerate(stmts):
            if isinstance(stmt, ast.If) and names.exits([stmt]):
                return control_flow.leave_early(self, stmt, stmts[index + 1 :])
            flow = self._execute_one(stmt)
            if flow is not Flow.NEXT:
                return flow
        return Flow.NEXT

    def _execute_one(self, stmt: ast.stmt) -> Flow:
        handler = statements.STATEMENTS.get(type(stmt))
        try:
            if handler is None:
                raise statements.unsupported(stmt)
            return handler(self, stmt) or Flow.NEXT
        except TritonError as error:
            self.placed(error, stmt)
            raise

    def mark(self, node: ast.AST) -> None:
        """Let the operations created next carry the location of `node`."""
        self.builder.loc = self.location(node)

    def location(self, node: ast.AST) -> Location:
        """The location of a node: inside a call, the location in the called function and the location of the call."""
        here = self.source.location(node)
        return here if self.call is None else CallSiteLoc(here, self.call)

    def placed(self, error: TritonError, node: ast.AST) -> None:
        """Set the location of an error to `node` unless it knows a more precise one."""
        location = self.source.in_source(node)
        error.at(location, self.source.line(location))

    def error(
        self, kind: type[CompilationError], node: ast.AST, message: str, **details: Unpack[Details]
    ) -> CompilationError:
        """An error of the class `kind` at `node`."""
        error = kind(message, **details)
        self.placed(error, node)
        return error
