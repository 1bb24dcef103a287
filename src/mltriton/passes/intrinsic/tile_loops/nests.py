"""Nests: members that share the loops over their outer dimensions, scheduled into loops over the chunks of a row.

Level: warp to intrinsic. A nest collects members in program order as long as each may run, row by row, together with
those before it (`accepts`). When it is written, each member goes to the earliest loop of the row in which everything it
needs is there: members that need a finished reduction come after its loop, others share loops. A value that two loops
of a row need and that is expensive is kept for the row.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import cast

from mltriton.analysis.aliasing import may_alias, same_places
from mltriton.dialects import arith, tt
from mltriton.ir.operation import Value
from mltriton.ir.types import I32, TensorType
from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator
from mltriton.passes.intrinsic.tile_loops.footprints import EXPENSIVE, Costs, Footprint, Places
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Form, Index, constant_index
from mltriton.passes.intrinsic.tile_loops.mask_ends import Inside, inside_masks
from mltriton.passes.intrinsic.tile_loops.members import Accumulators, Atomic, Fill, Member
from mltriton.passes.intrinsic.tile_loops.prefetching import prefetch_stores

STRAIGHT = 8  # rows of at most this many chunks are written without a loop
UNROLL = 4
MOST_MEMBERS = 128  # of a nest: what they need of each other is compared pair by pair
ROWS = 2  # rows taken at a time where each is a chain of steps that wait for each other


@dataclass
class Loop:
    """One loop over the chunks of a row."""

    level: int
    inner: int
    members: list[Member]

    @property
    def lanes_one(self) -> bool:
        """Whether the loop takes single elements."""
        return any(member.scalars_only for member in self.members)


@dataclass
class Nest:
    """Members of equal outer dimensions, in program order, with what each reads."""

    members: list[Member] = field(default_factory=list[Member])
    prints: list[Footprint] = field(default_factory=list[Footprint])
    produced: dict[Value, int] = field(default_factory=dict[Value, int])
    dying: list[Value] = field(default_factory=list[Value])  # values whose tiles the nest overwrites

    @property
    def outer(self) -> tuple[int, ...]:
        """The shared dimensions."""
        return self.members[0].outer

    def add(self, member: Member, footprint: Footprint) -> None:
        """Append a member that is accepted."""
        for value in member.produces:
            self.produced[value] = len(self.members)
        self.members.append(member)
        self.prints.append(footprint)

    # What may run together

    def accepts(self, member: Member, footprint: Footprint) -> bool:
        """Whether `member` may run row by row with the members so far."""
        if not self.members:
            return True
        return (
            len(self.members) < MOST_MEMBERS
            and not member.alone
            and not self.members[0].alone
            and member.outer == self.outer
            and self._reads_own_row(member, footprint)
            and self._loads_are_untouched(footprint)
            and self._touches_own_row(member)
        )

    def _reads_own_row(self, member: Member, footprint: Footprint) -> bool:
        """What the nest produces is read in the same row only."""
        own = member.places[:-1]
        return all(
            self._row_places(value, places) == own and not self._is_of_atomic(value)
            for value, places in footprint.leaves
            if value in self.produced
        )

    def _is_of_atomic(self, value: Value) -> bool:
        """Whether a value is what an atomic update found: it is in its tile when the nest is written, and no loop that
        needs it at other places can compute it again.
        """
        return isinstance(self.members[self.produced[value]], Atomic)

    def _row_places(self, value: Value, places: Places) -> Places:
        """The places of a produced value along the outer dimensions."""
        return places if self.members[self.produced[value]].in_rows else places[: len(self.outer)]

    def _loads_are_untouched(self, footprint: Footprint) -> bool:
        """No member writes what the new member's loads read."""
        stores = [member.store for member in self.members if member.store is not None]
        return not any(may_alias(load, store) for store in stores for load, _ in footprint.loads)

    def _touches_own_row(self, member: Member) -> bool:
        """What the new member overwrites is not read in other rows by those before it."""
        store, own = member.store, member.places
        for other, footprint in zip(self.members, self.prints, strict=True):
            if store is not None:
                if any(may_alias(load, store) and not same_places(load, store) for load, _ in footprint.loads):
                    return False
                if other.store is not None and may_alias(other.store, store) and not same_places(other.store, store):
                    return False
            if member.target is not None and any(
                value is member.target.owner and places[: len(own) - 1] != own[:-1]
                for value, places in footprint.leaves
            ):
                return False
        return True

    # The loops of a row

    def loops(self) -> list[Loop]:
        """Members by the loop they run in, in order."""
        levels: list[int] = []
        loops: list[Loop] = []
        for number, member in enumerate(self.members):
            level = self._level(number, levels)
            levels.append(level)
            for loop in loops:
                if loop.level == level and loop.inner == member.inner and loop.lanes_one == member.scalars_only:
                    loop.members.append(member)
                    break
            else:
                loops.append(Loop(level, member.inner, [member]))
        return sorted(loops, key=lambda loop: loop.level)

    def _level(self, number: int, levels: list[int]) -> int:
        member, footprint = self.members[number], self.prints[number]
        level = 0
        for value, places in footprint.leaves:
            producer = self.produced.get(value)
            if producer is not None and producer < number:
                level = max(level, levels[producer] + (0 if self._forwards(producer, member, places) else 1))
        for before, other in enumerate(self.members[:number]):
            if self._must_follow(member, other, self.prints[before]):
                level = max(level, levels[before] + (0 if self._same_loop(member, other) else 1))
        return level

    def _forwards(self, producer: int, member: Member, places: Places) -> bool:
        """Whether a member can use the chunk that another one has just computed in the same loop."""
        other = self.members[producer]
        same = self._same_loop(member, other) and not other.in_rows
        return same and places == member.places

    def _same_loop(self, a: Member, b: Member) -> bool:
        return a.inner == b.inner and a.scalars_only == b.scalars_only

    def _must_follow(self, member: Member, other: Member, footprint: Footprint) -> bool:
        """Whether a member must not run before another one on the same row."""
        if member.is_effect and other.is_effect:
            return True
        if member.target is not None:
            return any(value is member.target.owner for value, _ in footprint.leaves)
        store = member.store
        if store is None:
            return False
        if other.store is not None and may_alias(other.store, store):
            return True
        return any(may_alias(load, store) for load, _ in footprint.loads)


class NestWriter:
    """Writes a nest."""

    def __init__(self, e: Evaluator, nest: Nest) -> None:
        self.e = e
        self.nest = nest
        self.costs = Costs(e.tiles)

    @property
    def splits_loops(self) -> bool:
        """Whether every row is a loop that is split where its masks end."""
        return all(self._lanes(loop) > 1 and not self._is_straight(loop) for loop in self.nest.loops())

    def write(self) -> None:
        """The loops over the outer dimensions, and in them those of each row."""
        e, loops = self.e, self.nest.loops()
        kept = self._keep_expensive(loops)
        prefetch_stores(loops, self.nest.produced)
        self._rows(self.nest.outer, (), loops)
        for value in kept:
            del e.tiles[value]
        for value in self.nest.dying:
            del e.tiles[value]
        for member in self.nest.members:
            e.tiles.update(member.saves)
        e.scratch.tick()

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
                place = Affine(I32, counted.counter, u * lanes, 1 if lanes > 1 else 0)
                inside[u] = self._chunk(loop, (*index, place), lanes, inside[u])
            counted.yields = [value for part in inside for accumulators in part for value in accumulators]
        results = iter(counted.results)
        return [[[next(results) for _ in accumulators] for accumulators in part] for part in parts]

    def _chunks(
        self, loop: Loop, index: Index, lanes: int, places: Sequence[Form], width: int
    ) -> list[list[Accumulators]]:
        """Chunks one after the other, with up to `width` sets of accumulators."""
        parts: list[list[Accumulators]] = []
        for number, place in enumerate(places):
            if number < width:
                parts.append(self._chunk(loop, (*index, place), lanes, None))
            else:
                parts[number % width] = self._chunk(loop, (*index, place), lanes, parts[number % width])
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

    def _keep_expensive(self, loops: list[Loop]) -> list[Value]:
        """Let the first loop that computes an expensive value keep it for later loops of the row."""
        e, nest = self.e, self.nest
        if len(loops) < 2:
            return []
        lane = len(nest.outer)
        first: dict[Value, Loop] = {}
        kept: list[Value] = []
        for loop in loops:
            straight = loop.inner // gcd(loop.inner, e.emitter.lanes) <= STRAIGHT
            mine: dict[Value, Places] = {}
            for member in loop.members:
                for value, places in member.inputs():
                    self._collect(value, places, lane, first, mine)
            for value, places in mine.items():
                owner = first.setdefault(value, loop)
                if owner is loop or value in kept or (straight and owner.inner == loop.inner):
                    continue
                type = cast(TensorType, value.type)
                tile = e.scratch.row(type.rank, places.index(lane), loop.inner, type.element, value)
                owner.members.append(KeptForRow(value, tile, nest, places))
                kept.append(value)
        return kept

    def _collect(
        self, value: Value, places: Places, lane: int, first: dict[Value, Loop], mine: dict[Value, Places]
    ) -> None:
        """The expensive values that are evaluated along the lanes; not beyond one that an earlier loop computed."""
        footprint = _Expensive(self.costs, lane, first, mine)
        footprint.aliases = self.e.aliases
        footprint.follow(value, places, self.nest.produced)


class _Expensive(Footprint):
    """A walk that notes expensive values at lane places."""

    def __init__(self, costs: Costs, lane: int, first: dict[Value, Loop], mine: dict[Value, Places]) -> None:
        super().__init__()
        self.costs, self.lane, self.first, self.mine = costs, lane, first, mine

    def is_followed(self, value: Value, places: Places, known: Container[Value]) -> bool:
        if self.lane not in places or self.costs.of(value) < EXPENSIVE:
            return False
        op = value.defining_op
        if op is not None and not isinstance(op, tt.Reshape | tt.Join) and min(places) >= -1 and value not in known:
            self.mine[value] = places
            return value not in self.first
        return True


class KeptForRow(Fill):
    """A value kept for the later loops of a row."""

    def __init__(self, value: Value, tile: object, nest: Nest, places: Places) -> None:
        super().__init__(value, tile, nest.members[0].loc)  # type: ignore[arg-type]
        self.at = places
        self.shape = (*nest.outer, cast(TensorType, value.type).shape[places.index(len(nest.outer))])

    def _index(self, index: Index) -> Index:
        return tuple(constant_index(0) if place < 0 else index[place] for place in self.at)

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        return super().evaluate(e, self._index(index), lanes)

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        return super().commit(e, self._index(index), lanes, forms, old)
