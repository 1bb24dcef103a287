"""Buffers with a part for each warp, and which values may share one.

Level: warp. A buffer holds values one after the other, each from the position (`units.py`) where it is written to the
last one that needs it. Guarantees: the values of one buffer never live at the same time, but for those of one fork's
slot; at a position, reads come before writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mltriton.ir.types import Type


@dataclass(frozen=True)
class Lifetime:
    """From the position of the write to that of the last need, which may still grow."""

    start: int
    end: Callable[[], int]

    def meets(self, other: Lifetime) -> bool:
        """Whether both are needed at the same time. A value may be written where the one before is read last."""
        first, second = sorted((self, other), key=lambda life: life.start)
        return first.start == second.start or second.start < first.end()


class Buffer:
    """Memory for values of one type; `merge` makes two buffers one."""

    def __init__(self, type: Type) -> None:
        self.type = type
        self.lives: dict[object, Lifetime] = {}
        self._merged: Buffer | None = None

    @property
    def root(self) -> Buffer:
        """The buffer that this one has become."""
        return self if self._merged is None else self._merged.root

    def same(self, other: Buffer) -> bool:
        """Whether two are one."""
        return self.root is other.root

    def add(self, holder: object, life: Lifetime) -> None:
        """The buffer holds something else for a time."""
        self.root.lives[holder] = life

    def merge(self, other: Buffer) -> bool:
        """Become one with another buffer, if nothing in them lives at the same time."""
        a, b = self.root, other.root
        if a.type is not b.type or any(x.meets(y) for x in a.lives.values() for y in b.lives.values()):
            return False
        b.lives |= a.lives
        a._merged = b
        return True
