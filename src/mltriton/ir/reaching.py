"""What is reached step by step: along operands, users or whatever a function says follows.

Level: all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from mltriton.ir.operation import Value

Item = TypeVar("Item", bound=Hashable)


def reached(start: Iterable[Item], following: Callable[[Item], Iterable[Item]]) -> Iterator[Item]:
    """The items of `start` and all that follows of them, each once; what was found last comes first."""
    pending, seen = list(start), set[Item]()
    while pending:
        item = pending.pop()
        if item not in seen:
            seen.add(item)
            yield item
            pending.extend(following(item))


def operands_behind(value: Value) -> Sequence[Value]:
    """What the operation takes that gives a value; nothing for the argument of a block."""
    op = value.defining_op
    return () if op is None else op.operands
