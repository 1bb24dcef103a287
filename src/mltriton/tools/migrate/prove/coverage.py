"""Which of the calls that a migration changed were reached by the inputs of a proof.

Level: source text and runtime. A load or store is reached when it ran and its block met its tensor. The front end
leaves no trace of make_block_ptr and advance: one that the constants do not rule out is reached with an access after
it where no access of its own branch says otherwise, an advance in a loop only when an access of that loop ran twice in
one program.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from mltriton.executor import Visits
from mltriton.tools.migrate.result import Site

Position = tuple[int, int]


@dataclass(frozen=True)
class Call:
    """A call that was changed, the conditions under which it runs (with the value they must have), and its loop."""

    site: Site
    function: str
    guards: tuple[tuple[ast.expr, bool], ...] = ()
    loop: tuple[int, int] | None = None

    @property
    def is_access(self) -> bool:
        """Whether the call reads or writes memory."""
        return self.site.kind in ("load", "store")

    def may_run(self, constants: Mapping[str, Any]) -> bool:
        """Whether the constants do not rule the call out."""
        return all(truth(test, constants) in (wanted, None) for test, wanted in self.guards)

    def is_in_branch_of(self, other: Call) -> bool:
        """Whether the call stands in the innermost branch of another."""
        return self.function == other.function and self.guards[: len(other.guards)] == other.guards


@dataclass
class Coverage:
    """What was reached of the calls of a kernel and of the functions that it calls. `file` is how locations name it."""

    calls: Sequence[Call]
    file: str
    reached: set[Site] = field(default_factory=set[Site])

    def open_calls(self, constants: Mapping[str, Any]) -> int:
        """How many calls that were not reached may be with these constants."""
        return sum(call.site not in self.reached and call.may_run(constants) for call in self.calls)

    def add(self, visits: Visits, constants: Mapping[str, Any]) -> None:
        """Count what one run reached."""
        counts = _counts(visits, self.file)
        ran = [(call, most) for call in self.calls if call.is_access and (most := _most(counts, call.site))]
        self.reached |= {call.site for call, _ in ran}
        self.reached |= {
            call.site for call in self.calls if not call.is_access and call.may_run(constants) and self._used(call, ran)
        }

    def _used(self, call: Call, ran: Sequence[tuple[Call, int]]) -> bool:
        """Whether the accesses that ran show that a pointer was made or moved."""
        around = [other for other in self.calls if other.is_access and other.is_in_branch_of(call)]
        if around and not any(other in around for other, _ in ran):
            return False
        first, last = call.loop if call.site.kind == "advance" and call.loop else (call.site.line, None)
        after = (most for other, most in ran if _is_within(other, call, first, last))
        return max(after, default=0) >= (1 if last is None else 2)

    def missed(self, function: str) -> list[Site]:
        """The calls of a function that no input reached."""
        return sorted({call.site for call in self.calls if call.function == function} - self.reached)

    @property
    def conditions(self) -> set[str]:
        """The names in the conditions of the calls."""
        tests = (test for call in self.calls for test, _ in call.guards)
        return {node.id for test in tests for node in ast.walk(test) if isinstance(node, ast.Name)}


def _is_within(access: Call, call: Call, first: int, last: int | None) -> bool:
    return access.function == call.function and first <= access.site.line <= (last or access.site.line)


def _counts(visits: Visits, file: str) -> dict[Position, int]:
    """How often the accesses of each site ran in the program that ran them most."""
    programs: dict[Position, Counter[Any]] = {}
    for op, counts in visits.counts.items():
        found = op.loc.innermost
        if found is not None and found.file == file:
            programs.setdefault((found.line, found.column), Counter()).update(counts)
    return {site: max(counts.values()) for site, counts in programs.items()}


def _most(counts: Mapping[Position, int], site: Site) -> int:
    at = (count for (line, column), count in counts.items() if line == site.line and site.column in (column, -1))
    return max(at, default=0)


def calls_of(functions: Mapping[str, ast.FunctionDef], sites: Mapping[str, Sequence[Site]]) -> list[Call]:
    """The changed calls in some functions of the old text."""
    found: list[Call] = []
    for name, function in functions.items():
        known = {site for site in sites.get(name, ()) if site.kind in ("load", "store")}
        lines = {site.line for site in known if site.column < 0}
        for node, guards, loop in _guarded(function, (), None):
            kind = ast.unparse(node.func).rpartition(".")[2]
            site = Site(node.lineno, node.col_offset, kind)
            on_line = node.lineno in lines and Site(node.lineno, -1, kind) in known
            if site in known or on_line or kind in ("make_block_ptr", "advance"):
                found.append(Call(site, name, guards, loop))
    return found


Guards = tuple[tuple[ast.expr, bool], ...]


def _guarded(
    node: ast.AST, guards: Guards, loop: tuple[int, int] | None
) -> Iterator[tuple[ast.Call, Guards, tuple[int, int] | None]]:
    """Every call with the conditions and the innermost loop that it stands in."""
    if isinstance(node, ast.Call):
        yield node, guards, loop
    for name, value in ast.iter_fields(node):
        inner, around = guards, loop
        if isinstance(node, ast.If | ast.IfExp) and name in ("body", "orelse"):
            inner = (*guards, (node.test, name == "body"))
        elif isinstance(node, ast.For | ast.While) and name == "body":
            around = (node.lineno, node.end_lineno or node.lineno)
        children = cast(list[Any], value) if isinstance(value, list) else [value]
        for child in children:
            if isinstance(child, ast.AST):
                yield from _guarded(child, inner, around)


def truth(test: ast.expr, constants: Mapping[str, Any]) -> bool | None:
    """Whether a condition holds with some constants; None where that is not known before the kernel runs."""
    match test:
        case ast.BoolOp(op=op, values=values):
            found = [truth(value, constants) for value in values]
            decides = isinstance(op, ast.Or)
            if decides in found:
                return decides
            return None if None in found else not decides
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            found = truth(operand, constants)
            return None if found is None else not found
        case _ if any(isinstance(node, ast.Call | ast.Attribute) for node in ast.walk(test)):
            return None
        case _:
            try:
                return bool(eval(compile(ast.Expression(test), "<condition>", "eval"), {"__builtins__": {}}, constants))
            except Exception:  # a name that is no constant, or an operation on one
                return None
