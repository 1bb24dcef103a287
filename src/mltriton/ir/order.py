"""The order in which recursion would finish a graph's nodes, without recursion.

Level: all. Chains of operands are as long as programs, and longer than Python lets functions call each other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def operands_first(root: Node, operands: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """`root` and all that `operands` reaches from it, each once and after its operands."""
    order: list[Node] = []
    seen = {root}
    stack = [(root, iter(operands(root)))]
    while stack:
        node, rest = stack[-1]
        following = next((operand for operand in rest if operand not in seen), None)
        if following is None:
            stack.pop()
            order.append(node)
        else:
            seen.add(following)
            stack.append((following, iter(operands(following))))
    return order
