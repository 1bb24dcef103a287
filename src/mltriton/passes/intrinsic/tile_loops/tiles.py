"""Blocks in scratch memory.

Level: intrinsic. A `Tile` is a block (or one row of it, or its packed form) in a part of the thread's scratch memory;
where the part lies is for `allocate-scratch` to say.
"""

from __future__ import annotations

from typing import cast

from mltriton.dialects import tile
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.operation import Value
from mltriton.ir.types import I32, PointerType, Type, byte_width
from mltriton.passes.intrinsic.tile_loops.emitter import Emitter
from mltriton.records import record

LINE = 64  # bytes of a cache line
LONG_ROW = 256  # bytes from which rows are padded, so that neighbouring rows do not fall on the same cache sets
SCRATCH_SPACE = 5


@record(eq=False)
class Tile:
    """Elements of `element` type at pointer + sum of index * strides, in scratch memory.

    `owner` is the block value that it holds now (None where the contents have another form than a value's). It was
    filled in the scope of `depth`: code that is written further out runs before that. The contents of a buffer are the
    program's to say, not those of one value.
    """

    pointer: Value
    element: Type
    strides: tuple[int, ...]
    owner: Value | None = None
    depth: int = 0
    is_buffer: bool = False


class ScratchMemory:
    """Hands out tiles."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter

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
        made.is_buffer = True
        cast(tile.Scratch, made.pointer.defining_op).kept = True
        return made

    def row(self, rank: int, dim: int, extent: int, element: Type, owner: Value) -> Tile:
        """Room for one row of a block: elements along `dim`, the same for every index along the others."""
        return self.raw(extent, element, tuple(int(d == dim) for d in range(rank)), owner)

    def raw(self, elements: int, element: Type, strides: tuple[int, ...], owner: Value | None = None) -> Tile:
        """`elements` elements with any strides."""
        size = -(-elements * byte_width(element) // LINE) * LINE
        depth = self.emitter.level
        with self.emitter.at(0):
            attributes = {"bytes": IntegerAttr(size, I32)}
            made = self.emitter.insert(tile.Scratch((), (PointerType(element, SCRATCH_SPACE),), attributes))
        return Tile(made.result, element, strides, owner, depth)
