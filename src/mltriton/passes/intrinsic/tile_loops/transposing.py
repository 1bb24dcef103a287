"""Stores whose memory does not run along the last dimension.

Level: warp to intrinsic. Where the memory of the stored value runs along the same dimension as that of the store, lanes
go along that one. Where it runs along the last and the store along another, squares of chunks are transposed in
registers. Everything else is left to a nest over rows, with scatters. `directions.py` says which of it a store is.
"""

from __future__ import annotations

from mltriton.dialects import tile, tt
from mltriton.ir.operation import Value
from mltriton.ir.types import I32
from mltriton.passes.intrinsic.tile_loops import accesses
from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator
from mltriton.passes.intrinsic.tile_loops.footprints import Coordinates
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Form, Index, Vector, constant_index
from mltriton.passes.intrinsic.tile_loops.members import Accumulators, StoreBlock


class StoreAlong(StoreBlock):
    """A store with its lanes along another dimension than the last; in a loop nest of its own."""

    alone = True

    def __init__(self, op: tt.Store | tt.DescriptorStore, along: int) -> None:
        super().__init__(op)
        block = self.shape
        self.order = (*(dim for dim in range(len(block)) if dim != along), along)
        self.shape = tuple(block[dim] for dim in self.order)

    @property
    def coordinates(self) -> Coordinates:
        """For each dimension of the block, the loop that walks along it."""
        return tuple(self.order.index(dim) for dim in range(len(self.order)))

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        return super().evaluate(e, tuple(index[coordinate] for coordinate in self.coordinates), lanes)


class StoreTransposed(StoreBlock):
    """A store in squares: chunks along the last dimension become chunks along another; in a loop nest of its own.

    Its iteration runs over squares: the dimension `along` and the last one count squares' rows and columns.
    """

    alone = True

    def __init__(self, op: tt.Store | tt.DescriptorStore, along: int, lanes: int) -> None:
        super().__init__(op)
        self.along, self.lanes, self.block = along, lanes, self.shape
        last = len(self.block) - 1
        squares = [extent // lanes if dim in (along, last) else extent for dim, extent in enumerate(self.block)]
        self.shape = (*squares, 1)

    @property
    def coordinates(self) -> Coordinates:
        """The block's dimensions are the loops but the last, which does one square."""
        return tuple(range(len(self.block)))

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        return []

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        last, size = len(self.block) - 1, self.lanes
        start = [self._scaled(e, coordinate, dim in (self.along, last)) for dim, coordinate in enumerate(index[:-1])]
        rows: list[Value] = []
        for number in range(size):
            rows.append(e.chunk(self.op.value, self._at(e, start, self.along, number, last), size))
        columns = e.emitter.insert(tile.Transpose(rows, [row.type for row in rows])).results
        for number, column in enumerate(columns):
            where = self._at(e, start, last, number, self.along)
            access = accesses.access_at(e, self.op, where, size)
            accesses.write(e, access.address, access.mask, Vector(column), size)
        return []

    def _scaled(self, e: Evaluator, coordinate: Form, in_square: bool) -> Affine:
        assert isinstance(coordinate, Affine)
        return e.arithmetic.times(coordinate, constant_index(self.lanes)) if in_square else coordinate

    def _at(self, e: Evaluator, start: list[Affine], fixed: int, number: int, lanes: int) -> Index:
        """The chunk along dimension `lanes` that is `number` further along dimension `fixed`."""
        coordinates = list(start)
        coordinates[fixed] = e.arithmetic.add(coordinates[fixed], constant_index(number))
        coordinates[lanes] = Affine(I32, coordinates[lanes].base, coordinates[lanes].const, 1)
        return tuple(coordinates)
