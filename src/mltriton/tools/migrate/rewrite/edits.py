"""Apply edits to a syntax tree: expressions replaced, statements put before others or taken away.

Level: source text. Only functions that have edits are walked; blank lines stay where they were, and so do comments: one
inside what is replaced or removed stands on a line of its own above what took its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mltriton.tools.migrate.read.syntax import cst
from mltriton.tools.migrate.rewrite.aligning import realigned

Replacement = Callable[[Any], "cst.CSTNode | cst.FlattenSentinel[Any]"]


def constantly(text: str) -> Replacement:
    """The replacement of an expression by another, whatever is edited inside it."""

    def replace(updated: cst.BaseExpression) -> cst.CSTNode:
        return expression(text, updated)

    return replace


def expression(text: str, replaced: cst.BaseExpression) -> cst.BaseExpression:
    """An expression in the parentheses of the one that it takes the place of."""
    made = cst.parse_expression(text)
    return made.with_changes(lpar=[*replaced.lpar, *made.lpar], rpar=[*made.rpar, *replaced.rpar])


@dataclass
class Edits:
    """What to do, by node of the old tree. A replacement gets the node with the edits inside it already made."""

    replace: dict[cst.CSTNode, Replacement] = field(default_factory=dict[cst.CSTNode, Replacement])
    before: dict[cst.CSTNode, list[str]] = field(default_factory=dict[cst.CSTNode, list[str]])
    after: dict[cst.CSTNode, list[str]] = field(default_factory=dict[cst.CSTNode, list[str]])
    remove: set[cst.CSTNode] = field(default_factory=set[cst.CSTNode])
    unwrap: set[cst.CSTNode] = field(default_factory=set[cst.CSTNode])  # branches of which the first side is kept
    functions: set[cst.CSTNode] = field(default_factory=set[cst.CSTNode])

    def insert(self, statement: cst.CSTNode, lines: Sequence[str]) -> None:
        """Put statements before one."""
        self.before.setdefault(statement, []).extend(lines)

    def apply(self, module: cst.Module, *, everywhere: bool = False) -> str:
        """The new text; edits `everywhere` may stand outside the functions that were named."""
        if not (self.replace or self.before or self.after or self.remove or self.unwrap):
            return module.code
        return module.visit(_Apply(self, int(everywhere))).code

    def applied(self, function: cst.FunctionDef) -> cst.FunctionDef:
        """A function with its edits."""
        changed = function.visit(_Apply(self, 0))
        assert isinstance(changed, cst.FunctionDef)
        return changed


class _Apply(cst.CSTTransformer):
    def __init__(self, edits: Edits, depth: int) -> None:
        super().__init__()
        self.edits = edits
        self._depth = depth
        self._statements: list[cst.CSTNode] = []  # the statements around the node that is visited
        self._changed: set[cst.CSTNode] = set()  # those in which something was replaced
        self._alternatives: set[cst.CSTNode] = set()  # each `elif`
        self._removed: list[cst.CSTNode] = []  # what stands for removed statements until their suite is left

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            self._statements.append(node)
        if isinstance(node, cst.If) and isinstance(node.orelse, cst.If):
            self._alternatives.add(node.orelse)
        if node in self.edits.functions:
            self._depth += 1
            return True
        # A function without edits may have one with edits inside it.
        return self._depth > 0 or not isinstance(node, cst.SimpleStatementLine)

    def on_leave(self, original_node: cst.CSTNode, updated_node: Any) -> Any:
        if original_node in self.edits.functions:
            self._depth -= 1
        if isinstance(original_node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            self._statements.pop()
            if isinstance(original_node, cst.FunctionDef) and original_node in self.edits.replace:
                return self.edits.replace[original_node](updated_node)
            return self._statement(original_node, updated_node)
        if isinstance(original_node, cst.IndentedBlock | cst.Module):
            return self._suite(updated_node)
        if isinstance(original_node, cst.SimpleStatementSuite):
            return updated_node.with_changes(body=self._small(original_node.body, updated_node.body))
        return self._replaced(original_node, updated_node)

    def _replaced(self, original: cst.CSTNode, updated: Any) -> Any:
        replacement = self.edits.replace.get(original)
        if replacement is None:
            return updated
        self._changed.add(self._statements[-1])
        return replacement(updated)

    def _statement(self, original: cst.SimpleStatementLine | cst.BaseCompoundStatement, updated: Any) -> Any:
        if isinstance(original, cst.SimpleStatementLine) and original in self._changed:
            updated = realigned(original, updated)
        parts: list[Any] = [updated]
        if isinstance(original, cst.If) and original in self.edits.remove:
            return self._with_comments(original, [], deep=True)
        if original in self.edits.unwrap:
            return self._unwrapped(original, updated)
        if isinstance(original, cst.SimpleStatementLine):
            parts = self._line(original, updated)
        elif self.edits.before.get(original):
            parts = _after([_statement(text) for text in self.edits.before[original]], updated)
        if parts == [updated] and original not in self._changed:
            return updated
        return self._with_comments(original, parts)

    def _with_comments(self, original: cst.CSTNode, parts: list[Any], *, deep: bool = False) -> Any:
        """The statements that take the place of one, with every comment that it had."""
        every = [each.value for each in _every(original)] if deep else _comments(original)
        lines = _missing(every, [text for part in parts for text in _comments(part)])
        if parts:
            parts[0] = parts[0].with_changes(leading_lines=[*parts[0].leading_lines, *lines])
            return cst.FlattenSentinel(parts)
        above: Any = getattr(original, "leading_lines", ())
        if not lines:
            lines = [line for line in above if line.comment is None][:1]
        if not lines:
            return cst.RemoveFromParent()
        self._removed.append(cst.SimpleStatementLine([cst.Pass()], leading_lines=lines))
        return self._removed[-1]

    def _unwrapped(self, original: cst.CSTNode, updated: Any) -> Any:
        """The first side of a branch in its place; of an `elif`, as the `else`."""
        if original in self._alternatives:
            return cst.Else(body=updated.body, leading_lines=[*updated.leading_lines, *_lost(original, updated.body)])
        parts: list[Any] = list(updated.body.body)
        if isinstance(updated.body, cst.SimpleStatementSuite):
            parts = [cst.SimpleStatementLine(parts)]
        above = [*updated.leading_lines, *_lost(original, *parts)]
        parts[0] = parts[0].with_changes(leading_lines=[*above, *parts[0].leading_lines])
        return cst.FlattenSentinel(parts)

    def _suite(self, updated: Any) -> Any:
        """Give the comments of removed statements to the next one, or to the end of the suite."""
        if not any(part is removed for part in updated.body for removed in self._removed):
            return updated
        waiting: list[cst.EmptyLine] = []
        body: list[Any] = []
        for part in updated.body:
            lines = [*waiting, *part.leading_lines]
            if part.leading_lines or any(part is removed for removed in self._removed):
                lines = [*(line for line in waiting if line.comment is not None), *part.leading_lines]
            if any(part is removed for removed in self._removed):
                waiting = lines
            else:
                body.append(part.with_changes(leading_lines=lines) if waiting else part)
                waiting = []
        waiting = [line for line in waiting if line.comment is not None]
        return updated.with_changes(body=body, footer=[*waiting, *updated.footer])

    def _line(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> list[Any]:
        """The lines that a line of small statements becomes."""
        if not any(part in self.edits.before or part in self.edits.remove for part in original.body):
            return [updated, *(_statement(text) for part in original.body for text in self.edits.after.get(part, ()))]
        if len(original.body) > 1:
            return [updated.with_changes(body=self._small(original.body, updated.body))]
        part = original.body[0]
        lines = [_statement(text) for text in self.edits.before.get(part, ())]
        if part not in self.edits.remove:
            return [*_after(lines, updated), *(_statement(text) for text in self.edits.after.get(part, ()))]
        if lines:
            if isinstance(lines[-1], cst.SimpleStatementLine):
                lines[-1] = lines[-1].with_changes(trailing_whitespace=updated.trailing_whitespace)
            lines[0] = lines[0].with_changes(leading_lines=updated.leading_lines)
        return lines

    def _small(
        self, original: Sequence[cst.CSTNode], updated: Sequence[cst.BaseSmallStatement]
    ) -> list[cst.BaseSmallStatement]:
        found: list[cst.BaseSmallStatement] = []
        for old, new in zip(original, updated, strict=True):
            found += [part for text in self.edits.before.get(old, ()) for part in _statement(text).body]
            if old not in self.edits.remove:
                found.append(new)
        found = found or [cst.Pass()]
        separated = [
            part
            if isinstance(part.semicolon, cst.Semicolon)
            else part.with_changes(semicolon=cst.Semicolon(whitespace_after=cst.SimpleWhitespace(" ")))
            for part in found[:-1]
        ]
        return [*separated, found[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]


def _statement(text: str) -> Any:
    return cst.parse_statement(text)


def _after(lines: Sequence[Any], statement: Any) -> list[Any]:
    """A statement with others in front of it, which take over the comments and blank lines above it."""
    if not lines:
        return [statement]
    first = lines[0].with_changes(leading_lines=statement.leading_lines)
    return [first, *lines[1:], statement.with_changes(leading_lines=[])]


def _missing(before: Sequence[str], after: Sequence[str]) -> list[cst.EmptyLine]:
    """Comments that are no longer there, as lines."""
    kept = Counter(after)
    lost: list[str] = []
    for text in before:
        kept[text] -= 1
        lost += [text] if kept[text] < 0 else []
    return [cst.EmptyLine(comment=cst.Comment(text)) for text in lost]


def _lost(branch: cst.CSTNode, *kept: cst.CSTNode) -> list[cst.EmptyLine]:
    """The comments of a branch that are not in what is kept of it."""
    before = [each.value for line in _parts_of(branch) for each in _every(line)]
    return _missing(before, [each.value for part in kept for each in _every(part)])


def _parts_of(branch: cst.CSTNode) -> list[cst.CSTNode]:
    """A branch without the lines above it."""
    return [child for child in branch.children if not isinstance(child, cst.EmptyLine)]


def _every(node: cst.CSTNode) -> list[cst.Comment]:
    if isinstance(node, cst.Comment):
        return [node]
    return [each for child in node.children for each in _every(child)]


def _comments(node: cst.CSTNode) -> list[str]:
    """The comments of a statement in order, without those of statements inside it."""
    if isinstance(node, cst.Comment):
        return [node.value]
    return [text for child in node.children if not isinstance(child, cst.IndentedBlock) for text in _comments(child)]
