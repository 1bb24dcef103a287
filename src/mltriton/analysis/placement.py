"""Where blocks of memory are put: those that are never needed at the same time may share bytes.

Level: data. Times are numbers that grow in the order of the program.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import accumulate

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


def place(blocks: Sequence[Placement]) -> int:
    """Give every block, in turn, the lowest offset at which nothing placed before is needed at the same time. Returns
    the bytes needed in all.
    """
    placed: list[tuple[int, Placement]] = []  # by offset, what some later block may be needed with
    latest: dict[tuple[int, ...], Placement] = {}  # of each kind: no other one fits before it
    ends: list[tuple[int, int, int]] = []  # of those placed: when, offset, number
    for number, (block, soonest) in enumerate(zip(blocks, _soonest(blocks), strict=True)):
        while ends and ends[0][0] < soonest:
            _, offset, over = heappop(ends)
            at = bisect_left(placed, offset, key=_offset)
            del placed[next(i for i in range(at, len(placed)) if placed[i][1] is blocks[over])]
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
        heappush(ends, (block.last, block.offset, number))
        latest[kind] = block
    return max((block.offset + block.bytes for block in blocks), default=0)


def _soonest(blocks: Sequence[Placement]) -> list[int]:
    """The first time at which each block, or one behind it, is needed."""
    return list(accumulate((block.first for block in reversed(blocks)), min))[::-1]


def _offset(placed: tuple[int, Placement]) -> int:
    return placed[0]
