"""Scans: running combinations along a dimension, in a loop nest of their own.

Level: warp to intrinsic. Along the last dimension each chunk is scanned by itself (`tt.scan` of a chunk) and combined
with the last lane before it; along another dimension a chunk of running values walks down. A combine region with
control flow takes single elements. Results are always in tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING, cast

from mltriton.dialects import tile, tt
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.operation import Region, Value
from mltriton.ir.types import I32, TensorType
from mltriton.passes.intrinsic.tile_loops import combining
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Form, Index, Vector, constant_index
from mltriton.passes.intrinsic.tile_loops.members import save_chunk
from mltriton.passes.intrinsic.tile_loops.tiles import Tile

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering


def lower_scan(low: Lowering, op: tt.Scan) -> None:
    """Scan into tiles."""
    low.flush()
    e = low.e
    types = [cast(TensorType, result.type) for result in op.results]
    writer = _Scan(
        low, op, [e.scratch.tile(type.shape, type.element, r) for type, r in zip(types, op.results, strict=True)]
    )
    others = [dim for dim in range(types[0].rank) if dim != op.axis]
    writer.rows(others, {})
    for result, made in zip(op.results, writer.tiles, strict=True):
        low.settle(result, made)


class _Scan:
    def __init__(self, low: Lowering, op: tt.Scan, tiles: list[Tile]) -> None:
        self.low, self.e, self.op, self.tiles = low, low.e, op, tiles
        self.shape = cast(TensorType, op.sources[0].type).shape
        self.straight = combining.is_straight(op.combine)
        self.last = len(self.shape) - 1

    def rows(self, dims: list[int], index: dict[int, Form]) -> None:
        """The loops over the other dimensions; the last dimension runs in chunks where it is one of them."""
        if not dims:
            self._line(index, 1)
            return
        dim, *rest = dims
        if dim == self.last and self.straight:
            lanes = gcd(self.shape[dim], self.e.emitter.lanes)
            with self.e.emitter.count(self.shape[dim], lanes) as loop:
                self._down({**index, dim: Affine(I32, loop.counter, 0, int(lanes > 1))}, lanes)
            return
        with self.e.emitter.count(self.shape[dim]) as loop:
            self.rows(rest, {**index, dim: Affine(I32, loop.counter, 0, 0)})

    def _line(self, index: dict[int, Form], lanes: int) -> None:
        if self.op.axis == self.last and self.straight:
            self._along(index)
        else:
            self._down(index, lanes)

    def _down(self, index: dict[int, Form], lanes: int) -> None:
        """Element by element along the axis, each a chunk of other coordinates."""
        extent = self.shape[self.op.axis]
        first = self._sources(index, constant_index(extent - 1 if self.op.reverse else 0), lanes)
        self._save(index, constant_index(extent - 1 if self.op.reverse else 0), first, lanes)
        with self.e.emitter.count(extent, 1, 1, first) as loop:
            at: Form = Affine(I32, loop.counter, 0, 0)
            if self.op.reverse:
                at = self.e.arithmetic.subtract(constant_index(extent - 1), Affine(I32, loop.counter, 0, 0))
            new = self._sources(index, at, lanes)
            loop.yields = combining.apply(self.e, self.op.combine, loop.carried, new)
            self._save(index, at, loop.yields, lanes)

    def _along(self, index: dict[int, Form]) -> None:
        """Chunk after chunk along the last dimension."""
        e, op = self.e, self.op
        extent = self.shape[self.last]
        lanes = gcd(extent, e.emitter.lanes)
        start = extent - lanes if op.reverse else 0
        chunks = self._scanned(index, constant_index(start), lanes)
        edge = e.emitter.integer(0 if op.reverse else lanes - 1)
        with e.emitter.count(extent, lanes, lanes, self._edges(chunks, edge)) as loop:
            at = Affine(I32, loop.counter, 0, 0)
            if op.reverse:
                at = e.arithmetic.subtract(constant_index(start), at)
            new = self._scanned(index, at, lanes, loop.carried)
            loop.yields = self._edges(new, edge)

    def _edges(self, chunks: list[Value], lane: Value) -> list[Value]:
        """The lane that the next chunk continues from."""
        if not isinstance(chunks[0].type, TensorType):
            return chunks
        return [self.e.emitter.pure(tile.Lane, (chunk, lane), cast(TensorType, chunk.type).element) for chunk in chunks]

    def _scanned(
        self, index: dict[int, Form], start: Affine, lanes: int, before: list[Value] | None = None
    ) -> list[Value]:
        """One chunk of the result, saved."""
        e, op = self.e, self.op
        coordinate = Affine(I32, start.base, start.const, int(lanes > 1))
        chunks: Sequence[Value] = self._sources(index, coordinate, lanes)
        if lanes > 1:
            region = Region([])
            op.combine.clone_into(region, {})
            attributes = {**op.attributes, "axis": IntegerAttr(0, I32)}
            chunks = e.emitter.insert(tt.Scan(chunks, [c.type for c in chunks], attributes, [region])).results
        if before is not None:
            old = [e.emitter.splat(value, lanes) for value in before] if lanes > 1 else before
            chunks = combining.apply(e, op.combine, old, chunks)
        self._save(index, coordinate, chunks, lanes)
        return list(chunks)

    def _index(self, index: dict[int, Form], at: Form) -> Index:
        return tuple(at if dim == self.op.axis else index[dim] for dim in range(len(self.shape)))

    def _sources(self, index: dict[int, Form], at: Form, lanes: int) -> list[Value]:
        where = self._index(index, at)
        forms = [self.e.at(source, where, lanes) for source in self.op.sources]
        return [self.e.arithmetic.chunk(f, lanes) if lanes > 1 else self.e.arithmetic.scalar(f) for f in forms]

    def _save(self, index: dict[int, Form], at: Form, values: Sequence[Value], lanes: int) -> None:
        where = self._index(index, at)
        for made, value in zip(self.tiles, values, strict=True):
            form = Vector(value) if isinstance(value.type, TensorType) else self.e.arithmetic.wrap(value)
            save_chunk(self.e, made, where, form, lanes)
