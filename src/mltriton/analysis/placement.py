"""Where blocks of memory are put: those that are never needed at the same time may share bytes.

Level: data. Times are numbers that grow in the order of the program.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from mltriton.records import record


@record(eq=False)
class Placement:
    """Memory that is needed from time `first` to time `last`, both included; `offset` is a multiple of `alignment`."""

    bytes: int
    first: int
    last: int
    alignment: int = 64
    offset: int = 0

    def next_offset(self, alignment: int) -> int:
        """The first offset behind it that a block of this alignment may have."""
        return -(-(self.offset + self.bytes) // alignment) * alignment

    def is_needed_with(self, other: Placement) -> bool:
        """Whether both are needed at the same time."""
        return self.first <= other.last and other.first <= self.last


def place(blocks: Iterable[Placement]) -> int:
    """Give every block, in turn, the lowest offset at which nothing placed before is needed at the same time. Returns
    the bytes needed in all.
    """
    placed: list[tuple[int, Placement]] = []  # by offset
    latest: dict[tuple[int, ...], Placement] = {}  # of each kind: no other one fits before it
    for block in blocks:
        kind = (block.bytes, block.first, block.last, block.alignment)
        before = latest.get(kind)
        block.offset = 0 if before is None else before.next_offset(block.alignment)
        start = 0 if before is None else bisect_left(placed, before.offset, key=_offset)
        for offset, other in placed[start:]:
            if offset >= block.offset + block.bytes:
                break
            if block.is_needed_with(other):
                block.offset = max(block.offset, other.next_offset(block.alignment))
        insort(placed, (block.offset, block), key=_offset)
        latest[kind] = block
    return max((block.offset + block.bytes for _, block in placed), default=0)


def _offset(placed: tuple[int, Placement]) -> int:
    return placed[0]
