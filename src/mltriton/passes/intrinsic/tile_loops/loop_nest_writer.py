"""Writes a loop nest: loops over its outer dimensions, and in them loops over the chunks of a row.

Level: warp to intrinsic. The program says in which loop of a row each member runs, what loops keep for the later ones
and which stores the loop before theirs prefetches (`row_plans.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import cast

from mltriton.dialects import arith
from mltriton.ir.operation import Value
from mltriton.ir.types import I32, TensorType
from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator
from mltriton.passes.intrinsic.tile_loops.footprints import Coordinates
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Form, Index, constant_index
from mltriton.passes.intrinsic.tile_loops.loop_nests import STRAIGHT, Loop, LoopNest
from mltriton.passes.intrinsic.tile_loops.mask_ends import Inside, inside_masks
from mltriton.passes.intrinsic.tile_loops.members import Accumulators, Fill

UNROLL = 4
ROWS = 2  # rows taken at a time where each is a chain of steps that wait for each other


class LoopNestWriter:
    """Writes a loop nest."""

    def __init__(self, e: Evaluator, nest: LoopNest) -> None:
        self.e = e
        self.nest = nest

    @property
    def splits_loops(self) -> bool:
        """Whether every row is a loop that is split where its masks end."""
        return all(self._lanes(loop) > 1 and not self._is_straight(loop) for loop in self.nest.loops())

    def write(self) -> None:
        """The loops over the outer dimensions, and in them those of each row."""
        e, loops = self.e, self.nest.loops()
        kept = self._kept(loops)
        if len(loops) > 1:
            from mltriton.passes.intrinsic.tile_loops.prefetching import prefetch_stores  # From one loop to the next.

            prefetch_stores(loops)
        self._rows(self.nest.outer, (), loops)
        for value in kept:
            del e.tiles[value]
        for value in self.nest.dying:
            del e.tiles[value]
        for member in self.nest.members:
            e.tiles.update(member.saves)

    def _rows(self, outer: tuple[int, ...], index: Index, loops: list[Loop]) -> None:
        if not outer:
            for loop in loops:
                self._loop(loop, index)
                self._keep(loop)
            return
        extent, *rest = outer
        if extent == 1:
            self._rows(tuple(rest), (*index, constant_index(0)), loops)
            return
        together = ROWS if not rest and extent % ROWS == 0 and self._waits(loops) else 1
        with self.e.emitter.count(extent, together) as row:
            if rest:
                self._rows(tuple(rest), (*index, Affine(I32, row.counter, 0, 0)), loops)
                return
            for loop in loops:
                for number in range(together):
                    self._loop(loop, (*index, Affine(I32, row.counter, number, 0)))
                self._keep(loop)

    def _waits(self, loops: list[Loop]) -> bool:
        """Whether a row is a short chain of steps that wait for each other: two rows at a time fill the gaps."""
        short = all(loop.inner <= STRAIGHT * self.e.emitter.lanes for loop in loops)
        return short and self._is_reducing()

    def _is_reducing(self) -> bool:
        return any(member.in_rows for member in self.nest.members)

    def _loop(self, loop: Loop, index: Index) -> None:
        e = self.e
        lanes = self._lanes(loop)
        chunks = loop.inner // lanes
        if self._is_straight(loop):
            parts = self._chunks(loop, index, lanes, self._straight(range(chunks), lanes), UNROLL)
        else:
            unroll = gcd(chunks, UNROLL)
            parts = self._counted(loop, index, lanes, chunks, unroll)
        for number, member in enumerate(loop.members):
            with e.located(member.loc):
                member.finish(e, index, [part[number] for part in parts])

    def _lanes(self, loop: Loop) -> int:
        return 1 if loop.lanes_one else gcd(loop.inner, self.e.emitter.lanes)

    def _is_straight(self, loop: Loop) -> bool:
        """Whether the chunks of a row are written one after the other."""
        most = STRAIGHT if self.nest.outer or self._is_reducing() else UNROLL
        return loop.inner // self._lanes(loop) <= most

    def _keep(self, loop: Loop) -> None:
        """From here on the row's later loops read what this one has written to tiles."""
        for member in loop.members:
            if not member.in_rows:
                self.e.tiles.update(member.saves)

    def _straight(self, chunks: range, lanes: int) -> list[Form]:
        return [Affine(I32, None, chunk * lanes, 1 if lanes > 1 else 0) for chunk in chunks]

    def _counted(self, loop: Loop, index: Index, lanes: int, chunks: int, unroll: int) -> list[list[Accumulators]]:
        """A loop that takes `unroll` chunks at a time."""
        e = self.e
        starts = [member.first(e, lanes) for member in loop.members]
        peeled = 0
        if any(start is None for start in starts):
            parts = self._chunks(loop, index, lanes, self._straight(range(unroll), lanes), unroll)
            peeled = unroll
        else:
            parts = [[list(start or ()) for start in starts] for _ in range(unroll)]
        first, end = e.emitter.integer(peeled * lanes), e.emitter.integer(loop.inner)
        inside = self._inside_masks(loop, index) if lanes > 1 else None
        if inside is None:
            return self._range(loop, index, lanes, parts, first, end)
        whole = self._whole_steps(inside.end, unroll * lanes, first)
        with e.unmasking(inside.operations):
            parts = self._range(loop, index, lanes, parts, first, whole)
        return [*self._range(loop, index, lanes, parts[:1], whole, end), *parts[1:]]

    def _inside_masks(self, loop: Loop, index: Index) -> Inside | None:
        """What needs no mask in the first part of a loop."""
        nest = self.nest
        numbers = [number for number, member in enumerate(nest.members) if member in loop.members]
        members = [(nest.members[number], nest.prints[number]) for number in numbers]
        return inside_masks(self.e, members, nest.produced, index, loop.inner)

    def _whole_steps(self, end: Value, step: int, first: Value) -> Value:
        """The end of the last whole step from `first` on, which is a multiple of the step."""
        pure, multiples = self.e.emitter.pure, self.e.emitter.multiples
        rest = pure(arith.RemUI, (end, self.e.emitter.integer(step)), I32)
        whole = pure(arith.MaxSI, (pure(arith.SubI, (end, rest), I32), first), I32)
        multiples[whole] = step
        return whole

    def _range(
        self, loop: Loop, index: Index, lanes: int, parts: list[list[Accumulators]], first: Value, end: Value
    ) -> list[list[Accumulators]]:
        """A loop over [first, end), as many chunks at a time as there are sets of accumulators."""
        emitter = self.e.emitter
        flat = [value for part in parts for accumulators in part for value in accumulators]
        with emitter.loop(first, end, emitter.integer(len(parts) * lanes), flat) as counted:
            carried = iter(counted.carried)
            inside = [[[next(carried) for _ in accumulators] for accumulators in part] for part in parts]
            for u in range(len(parts)):
                coordinate = Affine(I32, counted.counter, u * lanes, 1 if lanes > 1 else 0)
                inside[u] = self._chunk(loop, (*index, coordinate), lanes, inside[u])
            counted.yields = [value for part in inside for accumulators in part for value in accumulators]
        results = iter(counted.results)
        return [[[next(results) for _ in accumulators] for accumulators in part] for part in parts]

    def _chunks(
        self, loop: Loop, index: Index, lanes: int, coordinates: Sequence[Form], width: int
    ) -> list[list[Accumulators]]:
        """Chunks one after the other, with up to `width` sets of accumulators."""
        parts: list[list[Accumulators]] = []
        for number, coordinate in enumerate(coordinates):
            if number < width:
                parts.append(self._chunk(loop, (*index, coordinate), lanes, None))
            else:
                parts[number % width] = self._chunk(loop, (*index, coordinate), lanes, parts[number % width])
        return parts

    def _chunk(self, loop: Loop, index: Index, lanes: int, old: list[Accumulators] | None) -> list[Accumulators]:
        e = self.e
        emitter, saved = e.emitter, e.emitter.loc
        forms: list[list[Form]] = []
        for member in loop.members:
            emitter.loc = member.loc
            forms.append(member.evaluate(e, index, lanes))
        made: list[Accumulators] = []
        for number, member in enumerate(loop.members):
            emitter.loc = member.loc
            made.append(member.commit(e, index, lanes, forms[number], None if old is None else old[number]))
        emitter.loc = saved
        return made

    # What is kept for a row

    def _kept(self, loops: list[Loop]) -> list[Value]:
        """Let loops keep what the program says for the later loops of a row, if all that joined the nest agrees."""
        nest = self.nest
        kept: list[Value] = []
        for value, coordinates, level in nest.kept:
            type = cast(TensorType, value.type)
            lane = coordinates.index(len(nest.outer))
            owners = [loop for loop in loops if loop.level == level and loop.inner == type.shape[lane]]
            if owners and nest.is_of_one_row(value, coordinates):
                tile = self.e.scratch.row(type.rank, lane, type.shape[lane], type.element, value)
                owners[0].members.append(KeptForRow(value, tile, nest, coordinates))
                kept.append(value)
        return kept


class KeptForRow(Fill):
    """A value kept for the later loops of a row."""

    def __init__(self, value: Value, tile: object, nest: LoopNest, coordinates: Coordinates) -> None:
        super().__init__(value, tile, nest.members[0].loc)  # type: ignore[arg-type]
        self.at = coordinates
        self.shape = (*nest.outer, cast(TensorType, value.type).shape[coordinates.index(len(nest.outer))])

    def _index(self, index: Index) -> Index:
        return tuple(constant_index(0) if coordinate < 0 else index[coordinate] for coordinate in self.at)

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        return super().evaluate(e, self._index(index), lanes)

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        return super().commit(e, self._index(index), lanes, forms, old)
