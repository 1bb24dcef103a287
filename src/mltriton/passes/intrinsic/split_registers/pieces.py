"""The pieces of a block, and how to get pieces of another size from them.

Level: intrinsic. Pieces are numbered with the first dimension fastest (column-major), the order in which a
multi-block 2D load delivers registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from mltriton.dialects import arith, ttig
from mltriton.ir.attributes import Attribute
from mltriton.ir.builder import Builder
from mltriton.ir.constants import make_constant
from mltriton.ir.operation import Value
from mltriton.ir.types import TensorType
from mltriton.layouts.encodings import Shape

Encode = Callable[[Shape], Attribute | None]


@dataclass(frozen=True)
class Grid:
    """A block of `shape` cut into pieces of shape `piece`."""

    shape: Shape
    piece: Shape

    @property
    def counts(self) -> Shape:
        """Pieces along each dimension."""
        return tuple(extent // size for extent, size in zip(self.shape, self.piece, strict=True))

    def origins(self) -> list[Shape]:
        """The first element of each piece, in piece order."""
        reverse = product(
            *(range(0, extent, size) for extent, size in zip(self.shape[::-1], self.piece[::-1], strict=True))
        )
        return [origin[::-1] for origin in reverse]

    def index(self, origin: Shape) -> int:
        """The number of the piece that contains the element `origin`."""
        index, step = 0, 1
        for start, size, count in zip(origin, self.piece, self.counts, strict=True):
            index += start // size * step
            step *= count
        return index


@dataclass(frozen=True)
class Pieces:
    """A block as values, one for each piece of `grid`; `encode` gives the encoding of a piece by its shape."""

    grid: Grid
    values: Sequence[Value]
    encode: Encode

    def at(self, builder: Builder, origin: Shape, piece: Shape) -> Value:
        """The piece of shape `piece` that starts at `origin`: one of ours, part of one, or several glued."""
        if piece == self.grid.piece:
            return self.values[self.grid.index(origin)]
        if all(theirs <= ours for theirs, ours in zip(piece, self.grid.piece, strict=True)):
            return self._part(builder, origin, piece)
        window = tuple(max(theirs, ours) for theirs, ours in zip(piece, self.grid.piece, strict=True))
        corner = tuple(start // size * size for start, size in zip(origin, window, strict=True))
        inner = [_sum(corner, offset) for offset in Grid(window, self.grid.piece).origins()]
        glued = glue(builder, [self.values[self.grid.index(start)] for start in inner], window, self.encode(window))
        local = tuple(start - first for start, first in zip(origin, corner, strict=True))
        return extract(builder, glued, Grid(window, piece).index(local), piece, self.encode(piece))

    def _part(self, builder: Builder, origin: Shape, piece: Shape) -> Value:
        source = self.values[self.grid.index(origin)]
        local = tuple(start % size for start, size in zip(origin, self.grid.piece, strict=True))
        return extract(builder, source, Grid(self.grid.piece, piece).index(local), piece, self.encode(piece))

    def cut(self, builder: Builder, piece: Shape) -> Pieces:
        """The same block in pieces of shape `piece`."""
        if piece == self.grid.piece:
            return self
        grid = Grid(self.grid.shape, piece)
        return Pieces(grid, [self.at(builder, origin, piece) for origin in grid.origins()], self.encode)

    def whole(self, builder: Builder) -> Value:
        """The block as one value."""
        return glue(builder, self.values, self.grid.shape, self.encode(self.grid.shape))


def glue(builder: Builder, values: Sequence[Value], shape: Shape, encoding: Attribute | None) -> Value:
    """Equal pieces put together to a block of `shape`."""
    if len(values) == 1:
        return values[0]
    first = values[0].type
    assert isinstance(first, TensorType)
    return builder.emit(ttig.Glue, list(values), result_types=[TensorType(shape, first.element, encoding)])


def extract(builder: Builder, source: Value, index: int, piece: Shape, encoding: Attribute | None) -> Value:
    """Piece number `index` of a value."""
    assert isinstance(source.type, TensorType)
    if source.type.shape == piece:
        return source
    made = TensorType(piece, source.type.element, encoding)
    return builder.emit(ttig.Extract, source, result_types=[made], index=index)


def enlarge(builder: Builder, value: Value, shape: Shape, encoding: Attribute | None) -> Value:
    """The value as the first piece of a block of `shape`, zeros elsewhere."""
    type = value.type
    assert isinstance(type, TensorType)
    count = TensorType(shape, type.element).size // type.size
    if count == 1:
        return value
    zeros = builder.emit(arith.Constant, value=make_constant(type, (0,)))
    return glue(builder, [value, *[zeros] * (count - 1)], shape, encoding)


def _sum(a: Shape, b: Shape) -> Shape:
    return tuple(x + y for x, y in zip(a, b, strict=True))
