"""LibCST, and the small questions that every module here asks of a syntax tree.

Level: source text. Importing this module without LibCST is a `MissingExtraError` that says what to install.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, cast

from mltriton.tools.migrate.result import MissingExtraError

try:
    import libcst as cst
except ImportError:
    raise MissingExtraError(
        "mltriton migrate needs LibCST", hint="Install it with the extra: pip install 'mltriton[migrate]'"
    ) from None

__all__ = [
    "children",
    "code_of",
    "constant_int",
    "cst",
    "dotted",
    "elements",
    "factor",
    "keyword_of",
    "names_in",
    "one_line",
    "operand",
    "walk",
]

_EMPTY = cst.Module([])


def code_of(node: cst.CSTNode) -> str:
    """The source text of a node."""
    return _EMPTY.code_for_node(node)


def one_line(node: cst.BaseExpression) -> str:
    """The text of an expression, in parentheses where it goes over several lines, so that it can stand anywhere."""
    text = code_of(node)
    return f"({text})" if "\n" in text and not node.lpar and not isinstance(node, cst.Call | cst.Subscript) else text


# LibCST's own `children` visits a node to find out; these questions are asked of every node several times.
_fields: dict[type, tuple[str, ...]] = {}


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes right under a node, in the order of the text, without white space, comments and parentheses."""
    kind = type(node)
    if kind not in _fields:
        _fields[kind] = tuple(
            field.name for field in fields(node) if "whitespace" not in field.name and field.name not in _SKIPPED
        )
    found: list[cst.CSTNode] = []
    for name in _fields[kind]:
        value: Any = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            found.append(value)
        elif type(value) in (list, tuple):
            found += [each for each in cast("list[Any]", value) if isinstance(each, cst.CSTNode)]
    if isinstance(node, cst.FunctionDef) and node.decorators:
        found.sort(key=lambda each: not isinstance(each, cst.Decorator))
    return found


_TRIVIA = (
    "lpar",
    "rpar",
    "comma",
    "semicolon",
    "leading_lines",
    "lines_after_decorators",
    "header",
    "footer",
    "indent",
)
_SKIPPED = frozenset(_TRIVIA)


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and everything under it, parents first, in the order of the text."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(reversed(children(each)))


def names_in(node: cst.CSTNode) -> set[str]:
    """Names that are read: neither attributes nor keywords of calls."""
    if isinstance(node, cst.Name):
        return {node.value}
    if isinstance(node, cst.Attribute):
        return names_in(node.value)
    if isinstance(node, cst.Arg):
        return names_in(node.value)
    found: set[str] = set()
    for child in children(node):
        found |= names_in(child)
    return found


def dotted(node: cst.CSTNode) -> str | None:
    """`a.b.c` for a chain of attributes on a name, None for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr.value}" if base is not None else None
    return None


def constant_int(node: cst.BaseExpression | None) -> int | None:
    """The value of an integer literal, perhaps with a minus."""
    if isinstance(node, cst.Integer):
        return node.evaluated_value
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        value = constant_int(node.expression)
        return -value if value is not None else None
    return None


def elements(node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """The elements of a tuple or list display without stars."""
    if not isinstance(node, cst.Tuple | cst.List):
        return None
    if any(isinstance(element, cst.StarredElement) for element in node.elements):
        return None
    return [element.value for element in node.elements]


def keyword_of(call: cst.Call, positional: Sequence[str]) -> dict[str, cst.Arg] | None:
    """The arguments of a call by name; None where stars or too many of them hide which is which."""
    found: dict[str, cst.Arg] = {}
    for index, arg in enumerate(call.args):
        if arg.star or (arg.keyword is None and index >= len(positional)):
            return None
        found[arg.keyword.value if arg.keyword is not None else positional[index]] = arg
    return found


_ATOMS = (cst.Name, cst.Integer, cst.Float, cst.Call, cst.Subscript, cst.Attribute)


def _is_closed(node: cst.BaseExpression) -> bool:
    return isinstance(node, _ATOMS) or bool(node.lpar)


def factor(node: cst.BaseExpression) -> str:
    """The text of an expression where it is multiplied, indexed or has an attribute taken."""
    text = code_of(node)
    return text if _is_closed(node) else f"({text})"


def operand(node: cst.BaseExpression) -> str:
    """The text of an expression where it is added to or compared."""
    if _is_closed(node):
        return code_of(node)
    if isinstance(node, cst.BinaryOperation) and isinstance(
        node.operator, cst.Add | cst.Subtract | cst.Multiply | cst.FloorDivide | cst.Modulo
    ):
        return one_line(node)
    return f"({code_of(node)})"
