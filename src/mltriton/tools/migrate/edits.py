"""Apply edits to a syntax tree: expressions replaced, statements put before others or taken away.

Level: source text. Only functions that have edits are walked; comments and blank lines stay where they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mltriton.tools.migrate.syntax import cst

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
    remove: set[cst.CSTNode] = field(default_factory=set[cst.CSTNode])
    functions: set[cst.CSTNode] = field(default_factory=set[cst.CSTNode])

    def insert(self, statement: cst.CSTNode, lines: Sequence[str]) -> None:
        """Put statements before one."""
        self.before.setdefault(statement, []).extend(lines)

    def apply(self, module: cst.Module) -> str:
        """The new text."""
        if not (self.replace or self.before or self.remove):
            return module.code
        return module.visit(_Apply(self)).code


class _Apply(cst.CSTTransformer):
    def __init__(self, edits: Edits) -> None:
        super().__init__()
        self.edits = edits
        self._depth = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        if node in self.edits.functions:
            self._depth += 1
            return True
        # A function without edits may have one with edits inside it.
        return self._depth > 0 or not isinstance(node, cst.SimpleStatementLine)

    def on_leave(self, original_node: cst.CSTNode, updated_node: Any) -> Any:
        if original_node in self.edits.functions:
            self._depth -= 1
        if not isinstance(original_node, cst.BaseSmallStatement) and original_node in self.edits.before:
            lines = [_statement(text) for text in self.edits.before[original_node]]
            lines[0] = lines[0].with_changes(leading_lines=updated_node.leading_lines)
            return cst.FlattenSentinel([*lines, updated_node.with_changes(leading_lines=[])])
        if isinstance(original_node, cst.SimpleStatementLine):
            return self._line(original_node, updated_node)
        if isinstance(original_node, cst.SimpleStatementSuite):
            return updated_node.with_changes(body=self._small(original_node.body, updated_node.body))
        replacement = self.edits.replace.get(original_node)
        return replacement(updated_node) if replacement is not None else updated_node

    def _line(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> Any:
        if not any(part in self.edits.before or part in self.edits.remove for part in original.body):
            return updated
        if len(original.body) > 1:
            return updated.with_changes(body=self._small(original.body, updated.body))
        part = original.body[0]
        lines = [_statement(text) for text in self.edits.before.get(part, ())]
        if part not in self.edits.remove:
            lines.append(updated)
        elif lines:
            lines[-1] = lines[-1].with_changes(trailing_whitespace=updated.trailing_whitespace)
        elif updated.trailing_whitespace.comment is not None or updated.leading_lines:
            return _comments(updated)
        else:
            return cst.RemoveFromParent()
        if len(lines) > 1 or part in self.edits.remove:
            lines[-1] = lines[-1].with_changes(leading_lines=[])
            lines[0] = lines[0].with_changes(leading_lines=updated.leading_lines)
        return cst.FlattenSentinel(lines)

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


def _statement(text: str) -> cst.SimpleStatementLine:
    parsed = cst.parse_statement(text)
    assert isinstance(parsed, cst.SimpleStatementLine)
    return parsed


def _comments(updated: cst.SimpleStatementLine) -> Any:
    """What is left of a removed line: its comments."""
    if not any(line.comment is not None for line in updated.leading_lines):
        comment = updated.trailing_whitespace.comment
        if comment is None:
            return cst.RemoveFromParent()
    return updated.with_changes(body=[cst.Pass()])
