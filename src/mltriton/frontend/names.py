"""What statements assign, read and leave by: questions to the syntax tree alone.

Level: above `tt`. Takes nodes of Python's `ast`; gives names. Nothing is evaluated, so an answer holds for every way
the statements can run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import cast

Exit = type[ast.Return] | type[ast.Break] | type[ast.Continue]

_LOOPS = (ast.For, ast.While)
_WITHOUT_STATEMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.FunctionDef)  # that run where they stand
_LEAVES = (ast.Constant, ast.Name, ast.expr_context, ast.operator)


def assigned(nodes: Iterable[ast.AST]) -> dict[str, ast.AST]:
    """The names that the nodes may bind, in order, each with the first node that does."""
    found: dict[str, ast.AST] = {}
    for node in _walk(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.setdefault(node.id, node)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, node)
    return found


def exits(nodes: Iterable[ast.AST]) -> dict[Exit, ast.stmt]:
    """How the nodes may leave the statements they stand in.

    By return, or by a break or continue of a loop outside them.
    """
    found: dict[Exit, ast.stmt] = {}
    for node in nodes:
        if isinstance(node, ast.Return | ast.Break | ast.Continue):
            found.setdefault(type(node), node)
        elif isinstance(node, _LOOPS):
            inner = exits(node.body)
            found |= {kind: stmt for kind, stmt in inner.items() if kind is ast.Return}
        elif isinstance(node, ast.stmt) and not isinstance(node, _WITHOUT_STATEMENTS):
            found = exits(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)) | found
    return found


def dotted_name(node: ast.expr) -> tuple[str, ...]:
    """The dotted name that an expression is; () where it is something else."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute) and (inner := dotted_name(node.value)):
        return (*inner, node.attr)
    return ()


def _walk(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes and all below them in the order of the source, but not the names a comprehension binds for itself."""
    pending = [iter(nodes)]
    while pending:
        node = next(pending[-1], None)
        if node is None:
            pending.pop()
            continue
        yield node
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            own = {name for generator in node.generators for name in assigned([generator.target])}
            yield from (inner for inner in _walk(_children(node)) if not _stores(inner, own))
        elif not isinstance(node, _LEAVES):
            pending.append(_children(node))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes right below a node (what `ast.iter_child_nodes` gives, at a third of its time)."""
    for value in vars(node).values():
        if isinstance(value, ast.AST):
            yield value
        elif isinstance(value, list):
            yield from (item for item in cast("list[object]", value) if isinstance(item, ast.AST))


def _stores(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names
