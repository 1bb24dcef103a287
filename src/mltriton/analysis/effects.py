"""What an operation does besides giving its results, the operations in its regions included.

Level: all. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator

from mltriton.dialects import scf, ttg
from mltriton.ir.operation import Operation


def inner_ops(op: Operation) -> Iterator[Operation]:
    """The operations directly in the regions of `op`."""
    return (inner for block in op.blocks for inner in block.ops)


def writes_memory(op: Operation) -> bool:
    """Whether the operation may write memory, wait, print or stop the program."""
    return op.writes or any(writes_memory(inner) for inner in inner_ops(op))


def is_pure(op: Operation) -> bool:
    """Whether the operation has no effect but its results and reads nothing that may change: it may be moved or
    repeated anywhere.
    """
    return op.pure and all(inner.terminator or is_pure(inner) for inner in inner_ops(op))


def is_needed(op: Operation) -> bool:
    """Whether the operation must stay although nobody may use its results: it has an effect, or may never end."""
    if isinstance(op, ttg.LocalAlloc):  # It writes, if anything, what only users of the buffer see.
        return False
    if op.writes or isinstance(op, scf.While):
        return True
    if op.regions:
        return any(not inner.terminator and is_needed(inner) for inner in inner_ops(op))
    return not (op.pure or op.reads)
