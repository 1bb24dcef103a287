"""How large a piece of a block is, from its encoding: all blocks with one encoding are cut alike (ML-Triton paper,
section 2.3).

Level: warp. Takes a function and the target's table; gives a piece shape for any block type, and the part of it that
one access takes. The result of a dot is cut into dot tiles, its operands into the largest 2D block loads, everything
else into stores of the largest legal size. A block pointer is cut into what is loaded or stored through it at a time.
Where lanes matter (`TargetSpec.has_lanes`) every encoding says its own tile (`Encoding.lane_tile`).
"""

from __future__ import annotations

from typing import cast

from mltriton.dialects import tt
from mltriton.errors import SourceLocation, TargetError
from mltriton.ir.attributes import Attribute
from mltriton.ir.types import MemDescType, PointerType, TensorType, Type, block_of, byte_width, pointee
from mltriton.layouts.encodings import (
    DotOperandEncoding,
    Encoding,
    MatrixEncoding,
    MessageEncoding,
    Shape,
    SliceEncoding,
)
from mltriton.targets.base import BlockIO, DotSize, TargetSpec

DEFAULT_BYTES = (
    4  # blocks that are no dot's are cut as if their elements had this many bytes, so that casts do not change the cut
)


class PieceSizes:
    """Piece shapes of one function's blocks."""

    def __init__(self, spec: TargetSpec, function: tt.Func) -> None:
        self.spec = spec
        self.has_lanes = spec.has_lanes
        self.io = spec.block_load or BlockIO(max_rows=8, max_row_bytes=64)
        self._tiles: dict[Attribute, Shape] = {}
        self._stored: set[Type] = set()  # types of block pointers through which something is stored
        for op in function.walk():
            if isinstance(op, tt.Dot):
                self._add_dot(op)
            elif isinstance(op, tt.Store):
                self._stored.add(op.ptr.type)

    def dot_size(self, dot: tt.Dot) -> DotSize:
        """The instruction that a dot is made of. Raises `TargetError` where the target has none for the elements."""
        assert isinstance(dot.a.type, TensorType | MemDescType)
        element, where = dot.a.type.element, dot.loc.innermost
        if element not in self.spec.dot:
            raise TargetError(
                f"the target {self.spec.name} has no dot of {element} elements",
                location=SourceLocation(where.file, where.line, where.column) if where is not None else None,
                expected=", ".join(map(str, self.spec.dot)),
                found=str(element),
            )
        result = cast(TensorType, dot.result.type).encoding
        return self.spec.dot[element].acting(result.together if isinstance(result, MatrixEncoding) else 1)

    def instruction(self, dot: tt.Dot, piece: Shape) -> tuple[int, int]:
        """Rows and columns of the instruction that gives a piece of a dot's result."""
        size, result = self.dot_size(dot), dot.result.type
        rows = min(count for count in (*size.fewer_rows, size.rows) if count >= piece[-2])
        return rows, self._tile(cast(TensorType, result).encoding, len(piece))[-1]

    def piece(self, type: TensorType) -> Shape:
        """The shape of one piece of a block: the tile of its encoding, no larger than the block."""
        tile = self._tile(type.encoding, type.rank)
        return tuple(min(size, extent) for size, extent in zip(tile, type.shape, strict=True))

    def encoding(self, block: TensorType, piece: Shape) -> Encoding | None:
        """The encoding of a piece of a block; None where lanes do not matter. Where a piece takes all that there is
        along a dimension of the tile, it has the tile's, so that blocks of different shapes agree.
        """
        if not self.has_lanes:
            return None
        encoding = _known(block)
        assert isinstance(encoding, Encoding)
        tile = encoding.lane_tile(block.rank)
        sizes = zip(piece, tile, block.shape, strict=True)
        return encoding.piece(tuple(t if p == min(t, extent) else p for p, t, extent in sizes))

    def piece_of(self, type: Type) -> Shape:
        """The shape of one piece of a value that is a block or points to one."""
        block = block_of(type)
        assert block is not None
        is_pointer = isinstance(type, PointerType)
        return self.block_access(block, stores=type in self._stored) if is_pointer else self.piece(block)

    def block_access(self, type: TensorType, *, stores: bool) -> Shape:
        """The part of a piece that one 2D access takes; of a vector, one access of so many bytes."""
        piece, width = self.piece(type), byte_width(type.element)
        if self.has_lanes:
            return piece
        if len(piece) == 1:
            return (min(piece[0], self.spec.vector_bytes // width),)
        *outer, rows, columns = piece
        most_rows = self.io.store_rows if stores else self.io.max_rows
        return (*[1] * len(outer), min(rows, most_rows), min(columns, self.io.max_row_bytes // width))

    def access(self, pointer: Type) -> Shape:
        """The part of a piece that one access through a block pointer or a block of pointers takes."""
        if not isinstance(pointer, TensorType):
            return self.piece_of(pointer)
        if self.has_lanes:
            return self.piece(pointer)
        room = self.spec.vector_bytes // byte_width(pointee(pointer))
        part: list[int] = []
        for extent in reversed(self.piece(pointer)):
            part.append(min(extent, room))
            room //= part[-1]
        return tuple(reversed(part))

    def _add_dot(self, dot: tt.Dot) -> None:
        size = self.dot_size(dot)
        c = cast(TensorType, dot.c.type)
        self._tiles[_known(c)] = (*[1] * (c.rank - 2), size.m, size.n)
        for operand in (dot.a.type, dot.b.type):
            if not isinstance(operand, TensorType):
                continue
            columns = self.io.max_row_bytes // byte_width(operand.element)
            self._tiles.setdefault(_known(operand), (*[1] * (c.rank - 2), self.io.max_rows, columns))

    def _tile(self, encoding: Attribute | None, rank: int) -> Shape:
        if self.has_lanes:
            assert isinstance(encoding, Encoding)
            return encoding.lane_tile(rank)
        if encoding in self._tiles:
            return self._tiles[encoding]
        if isinstance(encoding, SliceEncoding):
            parent = self._tile(encoding.parent, rank + 1)
            return (*parent[: encoding.dim], *parent[encoding.dim + 1 :])
        if isinstance(encoding, DotOperandEncoding):
            return self._tile(encoding.parent, rank)
        if isinstance(encoding, MessageEncoding):
            return encoding.tile
        if rank == 1:
            return (self.spec.vector_bytes // DEFAULT_BYTES,)
        return (*[1] * (rank - 2), self.io.store_rows, self.io.max_row_bytes // DEFAULT_BYTES)


def _known(type: TensorType) -> Attribute:
    assert type.encoding is not None
    return type.encoding
