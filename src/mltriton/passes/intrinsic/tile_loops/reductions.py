"""Members of nests that reduce: along the chunks of a row, or along another dimension for many columns at once.

Level: warp to intrinsic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import tt
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.operation import Region, Value
from mltriton.ir.types import I32, TensorType
from mltriton.passes.intrinsic.tile_loops import combining
from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator
from mltriton.passes.intrinsic.tile_loops.footprints import OTHER, Coordinates
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Form, Index, Vector, constant_index, is_uniform
from mltriton.passes.intrinsic.tile_loops.members import Accumulators, Member, save_chunk
from mltriton.passes.intrinsic.tile_loops.tiles import Tile

COLUMN_UNROLL = 4  # rows that a reduction along another dimension takes at a time


class ReduceRow(Member):
    """A reduction along the last dimension: one scalar for each row."""

    in_rows = True

    def __init__(self, op: tt.Reduce, saves: dict[Value, Tile]) -> None:
        super().__init__(cast(TensorType, op.sources[0].type).shape, op.loc)
        self.op = self.whole = op
        self.region: Region = op.combine
        self.produces = list(op.results)
        self.saves = saves

    def inputs(self) -> list[tuple[Value, Coordinates]]:
        return [(source, self.coordinates) for source in self.op.sources]

    @property
    def scalars_only(self) -> bool:
        return not combining.is_straight(self.region)

    def first(self, e: Evaluator, lanes: int) -> Accumulators | None:
        element = cast(TensorType, self.op.sources[0].type).element
        number = combining.neutral(self.region, element) if len(self.op.sources) == 1 else None
        if number is None:
            return None
        return [e.emitter.number(number, element if lanes == 1 else e.emitter.chunk_type(element, lanes))]

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        return [e.at(source, index, lanes) for source in self.op.sources]

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        uniform = all(is_uniform(coordinate) for coordinate in index)
        new = [e.arithmetic.scalar(f) if uniform else e.arithmetic.chunk(f, lanes) for f in forms]
        return new if old is None else combining.apply(e, self.region, old, new)

    def finish(self, e: Evaluator, index: Index, parts: Sequence[Accumulators]) -> None:
        totals = combining.tree(e, self.region, parts)
        if isinstance(totals[0].type, TensorType):
            totals = across_lanes(e, self.op, totals)
        for result, total in zip(self.op.results, totals, strict=True):
            if not isinstance(result.type, TensorType):
                e.scalars[result] = total
                continue
            e.define(result, index, 1, e.arithmetic.wrap(total))
            save_chunk(e, self.saves.get(result), index, e.arithmetic.wrap(total), 1)


def across_lanes(e: Evaluator, op: tt.Reduce, chunks: list[Value]) -> list[Value]:
    """The lanes of chunks combined to scalars."""
    region = Region([])
    op.combine.clone_into(region, {})
    types = [cast(TensorType, chunk.type).element for chunk in chunks]
    return list(e.emitter.insert(tt.Reduce(chunks, types, {"axis": IntegerAttr(0, I32)}, [region])).results)


class ReduceColumns(Member):
    """A reduction along another dimension than the last: at each chunk of the result a loop over that dimension."""

    def __init__(self, op: tt.Reduce, saves: dict[Value, Tile]) -> None:
        super().__init__(cast(TensorType, op.results[0].type).shape, op.loc)
        self.op = self.whole = op
        self.region: Region = op.combine
        self.axis = op.axis
        self.extent = cast(TensorType, op.sources[0].type).shape[op.axis]
        self.produces = list(op.results)
        self.saves = saves

    @property
    def scalars_only(self) -> bool:
        return not combining.is_straight(self.region)

    def inputs(self) -> list[tuple[Value, Coordinates]]:
        coordinates = (*self.coordinates[: self.axis], OTHER, *self.coordinates[self.axis :])
        return [(source, coordinates) for source in self.op.sources]

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        unroll = COLUMN_UNROLL if self.extent % COLUMN_UNROLL == 0 else 1
        parts = [self._at(e, index, lanes, constant_index(u)) for u in range(unroll)]
        if self.extent > unroll:
            flat = [value for part in parts for value in part]
            width = len(self.op.sources)
            with e.emitter.count(self.extent, unroll, unroll, flat) as loop:
                for u in range(unroll):
                    old = loop.carried[u * width : (u + 1) * width]
                    new = self._at(e, index, lanes, Affine(I32, loop.counter, u, 0))
                    loop.yields += combining.apply(e, self.region, old, new)
            parts = [loop.results[u * width : (u + 1) * width] for u in range(unroll)]
        totals = combining.tree(e, self.region, parts)
        forms = [Vector(v) if isinstance(v.type, TensorType) else e.arithmetic.wrap(v) for v in totals]
        for result, form in zip(self.op.results, forms, strict=True):
            e.define(result, index, lanes, form)
        return forms

    def _at(self, e: Evaluator, index: Index, lanes: int, coordinate: Form) -> list[Value]:
        where = (*index[: self.axis], coordinate, *index[self.axis :])
        forms = [e.at(source, where, lanes) for source in self.op.sources]
        uniform = all(is_uniform(coordinate) for coordinate in index)
        return [e.arithmetic.scalar(f) if uniform else e.arithmetic.chunk(f, lanes) for f in forms]

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        for result, form in zip(self.op.results, forms, strict=True):
            save_chunk(e, self.saves.get(result), index, form, lanes)
        return []


def member(op: tt.Reduce) -> Member:
    """Along the last dimension in rows, along another in columns."""
    last = len(cast(TensorType, op.sources[0].type).shape) - 1
    return ReduceRow(op, {}) if op.axis == last else ReduceColumns(op, {})
