"""Blocks in scratch memory, and how they share it.

Level: intrinsic. A `Tile` is a block (or one row of it, or its packed form) in a `Region` of the thread's scratch
memory. Regions that are never needed at the same time get the same bytes. Guarantees: regions start at multiples of 64
bytes; a region that a loop reads and that was written before it stays untouched until the loop ends.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import field

from mltriton.dialects import tile
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.operation import Value
from mltriton.ir.types import I32, PointerType, Type, byte_width
from mltriton.passes.intrinsic.tile_loops.emitter import Emitter
from mltriton.records import record

LINE = 64  # bytes of a cache line
LONG_ROW = 256  # bytes from which rows are padded, so that neighbouring rows do not fall on the same cache sets
SCRATCH_SPACE = 5
NEVER = 1 << 62  # later than any time


@record(eq=False)
class Region:
    """A range of scratch memory: the operation that makes its address, and when it is first and last needed.

    `is_buffer`: its contents are the program's to say, not those of one value: a loop that touches it may find there
    what the iteration before left.
    """

    op: tile.Scratch
    bytes: int
    first: int
    last: int
    is_buffer: bool = False


@record(eq=False)
class Tile:
    """Elements of `element` type at pointer + sum of index * strides, in a region of scratch memory.

    `owner` is the block value that it holds now (None where the contents have another form than a value's). It was
    filled in the scope of `depth`: code that is written further out runs before that.
    """

    pointer: Value
    element: Type
    strides: tuple[int, ...]
    region: Region
    owner: Value | None = None
    depth: int = 0


@record()
class _OpenLoop:
    start: int
    touched: set[Region] = field(default_factory=set[Region])


class ScratchMemory:
    """Hands out tiles; `assign_offsets` says at the end where each lies."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.regions: list[Region] = []
        self.clock = 0
        self._loops: list[_OpenLoop] = []

    def tile(self, shape: tuple[int, ...], element: Type, owner: Value | None = None) -> Tile:
        """A row-major block."""
        strides: list[int] = []
        step = 1
        for dim in reversed(range(len(shape))):
            strides.append(step)
            step *= shape[dim]
            if dim == len(shape) - 1 and len(shape) > 1 and step * byte_width(element) >= LONG_ROW:
                step += LINE // byte_width(element)
        return self.raw(step, element, tuple(reversed(strides)), owner)

    def buffer(self, shape: tuple[int, ...], element: Type) -> Tile:
        """A row-major block of shared memory."""
        made = self.tile(shape, element)
        made.region.is_buffer, made.region.first = True, NEVER
        return made

    def row(self, rank: int, dim: int, extent: int, element: Type, owner: Value) -> Tile:
        """Room for one row of a block: elements along `dim`, the same for every index along the others."""
        return self.raw(extent, element, tuple(int(d == dim) for d in range(rank)), owner)

    def raw(self, elements: int, element: Type, strides: tuple[int, ...], owner: Value | None = None) -> Tile:
        """`elements` elements with any strides."""
        size = -(-elements * byte_width(element) // LINE) * LINE
        depth = self.emitter.level
        with self.emitter.at(0):
            attributes = {"offset": IntegerAttr(0, I32), "bytes": IntegerAttr(size, I32)}
            made = self.emitter.insert(tile.Scratch((), (PointerType(element, SCRATCH_SPACE),), attributes))
        assert isinstance(made, tile.Scratch)
        region = Region(made, size, self.clock, self.clock)
        self.regions.append(region)
        return Tile(made.result, element, strides, region, owner, depth)

    # Time

    def tick(self) -> None:
        """What follows happens after what was written so far."""
        self.clock += 1

    def touch(self, needed: Tile) -> None:
        """A tile is read or written now."""
        region = needed.region
        region.last = max(region.last, self.clock)
        if region.is_buffer:
            region.first = min(region.first, self._loops[0].start if self._loops else self.clock)
        for loop in self._loops:
            if region.first <= loop.start:
                loop.touched.add(region)

    def begin_loop(self) -> None:
        """A loop of the program starts: what it reads from before must last until its end."""
        self._loops.append(_OpenLoop(self.clock))
        self.tick()

    def end_loop(self) -> None:
        """The innermost open loop ends."""
        loop = self._loops.pop()
        for region in loop.touched:
            region.last = max(region.last, self.clock)
        self.tick()

    # Offsets

    def assign_offsets(self) -> int:
        """Give every region its offset, largest first; returns the bytes needed in all."""
        placed: list[tuple[int, Region]] = []  # by offset
        ends: dict[tuple[int, int, int], int] = {}  # of the last region of this size and life: none fits before
        total = 0
        for region in sorted(self.regions, key=lambda r: -r.bytes):
            kind = (region.bytes, region.first, region.last)
            offset = ends.get(kind, 0)
            at = bisect_left(placed, offset - region.bytes, key=_offset) if kind in ends else 0
            for start, other in placed[at:]:
                if start >= offset + region.bytes:
                    break
                if region.first <= other.last and other.first <= region.last:
                    offset = max(offset, start + other.bytes)
            region.op.offset = offset
            insort(placed, (offset, region), key=_offset)
            ends[kind] = offset + region.bytes
            total = max(total, ends[kind])
        return total


def _offset(placed: tuple[int, Region]) -> int:
    return placed[0]
