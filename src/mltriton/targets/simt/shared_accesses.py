"""Which accesses to shared memory lanes of a warp must wait for each other between, where they need not run in step.

Level: intrinsic -> llvm. Guarantees: between two accesses of one warp, of which one writes and which may touch the same
element, all lanes meet.
"""

from __future__ import annotations

from typing import cast

from mltriton.dialects import ttg
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Value
from mltriton.ir.types import MemDescType
from mltriton.records import NamedTuple


class _Access(NamedTuple):
    memory: Value
    writes: bool


class SharedAccesses:
    """The accesses since lanes met; None: there may have been any."""

    def __init__(self) -> None:
        self._open: list[_Access] | None = []

    def forget(self, *, met: bool) -> None:
        """All lanes have met, or nothing is known of what came before."""
        self._open = [] if met else None

    def must_meet(self, memory: Value, *, writes: bool, under_way: bool = False) -> bool:
        """Whether all lanes must meet before they access a block; it is one of the accesses from here on, but for what
        is only `under_way`: nobody reads it before a wait, of which nothing is known.
        """
        before = self._open
        conflicts = before is None or any((writes or a.writes) and not _apart(memory, a.memory) for a in before)
        self._open = [
            *([] if conflicts or before is None else before),
            *([] if under_way else [_Access(memory, writes)]),
        ]
        return conflicts


def _apart(a: Value, b: Value) -> bool:
    """Whether two blocks have no element in common: in other allocations, or in other parts of one block."""
    x, y = a.defining_op, b.defining_op
    if isinstance(x, ttg.MemDescSubview) and isinstance(y, ttg.MemDescSubview) and x.memory is y.memory:
        parts = zip(_parts(x), _parts(y), strict=True)
        return any(p is not None and q is not None and (p[1] <= q[0] or q[1] <= p[0]) for p, q in parts)
    first, second = _allocation(a), _allocation(b)
    return first is not second and isinstance(first, ttg.LocalAlloc) and isinstance(second, ttg.LocalAlloc)


def _parts(op: ttg.MemDescSubview) -> list[tuple[int, int] | None]:
    """First and last index (exclusive) along each dimension; None where they are not known."""
    shape = cast(MemDescType, op.result.type).shape
    sizes = (1,) * (len(op.offsets) - len(shape)) + shape
    starts = [splat_of(offset) for offset in op.offsets]
    return [(s, s + size) if isinstance(s, int) else None for s, size in zip(starts, sizes, strict=True)]


def _allocation(memory: Value) -> object:
    """What a block is a part of."""
    op = memory.defining_op
    while isinstance(op, ttg.MemDescSubview | ttg.MemDescTrans):
        op = op.memory.defining_op
    return op
