"""Loop nests: members that share the loops over their outer dimensions, scheduled into loops over the chunks of a row.

Level: warp to intrinsic. A nest collects members in program order as long as each may run, row by row, together with
those before it (`accepts`), and says which loops over a row they share (`loops`); `loop_nest_writer.py` writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from mltriton.analysis.aliasing import may_alias, same_elements
from mltriton.ir.operation import Value
from mltriton.passes.intrinsic.tile_loops.footprints import Coordinates, Footprint, consumers
from mltriton.passes.intrinsic.tile_loops.members import Atomic, Fill, Member
from mltriton.records import record

STRAIGHT = 8  # rows of at most this many chunks are written without a loop
MOST_MEMBERS = 128  # of a nest: what they need of each other is compared pair by pair


@record()
class Loop:
    """One loop over the chunks of a row."""

    level: int
    inner: int
    members: list[Member]

    @property
    def lanes_one(self) -> bool:
        """Whether the loop takes single elements."""
        return any(member.scalars_only for member in self.members)


class OtherUses:
    """The uses of values that no member of a nest is, and that no tile serves which the nest fills."""

    def __init__(self, members: Sequence[Member]) -> None:
        fills = [member for member in members if isinstance(member, Fill)]
        self.defined = {value for fill in fills for value in fill.produces}
        self.served = {use for fill in fills for use in fill.served}
        self.inside = {member.whole for member in members if member.whole is not None}

    def are_none(self, value: Value) -> bool:
        """Whether nothing else uses a value."""
        uses = consumers(value, self.defined)
        return all(user in self.inside or (user, operand) in self.served for user, operand in uses)


@record()
class LoopNest:
    """Members of equal outer dimensions, in program order, with what each reads; `kept` are the values that the loop of
    a number keeps for later ones of a row.
    """

    members: list[Member] = field(default_factory=list[Member])
    prints: list[Footprint] = field(default_factory=list[Footprint])
    levels: list[int] = field(default_factory=list[int])  # of the loops of a row that the members run in
    produced: dict[Value, int] = field(default_factory=dict[Value, int])
    kept: list[tuple[Value, Coordinates, int]] = field(default_factory=list[tuple[Value, Coordinates, int]])
    dying: list[Value] = field(default_factory=list[Value])  # values whose tiles the nest overwrites

    @property
    def outer(self) -> tuple[int, ...]:
        """The shared dimensions."""
        return self.members[0].outer

    def add(self, member: Member, footprint: Footprint) -> None:
        """Append a member that is accepted, in the first loop of the row in which it may run."""
        self.levels.append(self.level(member, footprint))
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
        own = member.coordinates[:-1]
        return all(
            self._row_coordinates(value, coordinates) == own and not self._is_of_atomic(value)
            for value, coordinates in footprint.leaves
            if value in self.produced
        )

    def _is_of_atomic(self, value: Value) -> bool:
        """Whether a value is what an atomic update found: it is in its tile when the nest is written, and no loop that
        needs it at other coordinates can compute it again.
        """
        return isinstance(self.members[self.produced[value]], Atomic)

    def _row_coordinates(self, value: Value, coordinates: Coordinates) -> Coordinates:
        """The coordinates of a produced value along the outer dimensions."""
        return coordinates if self.members[self.produced[value]].in_rows else coordinates[: len(self.outer)]

    def _loads_are_untouched(self, footprint: Footprint) -> bool:
        """No member writes what the new member's loads read."""
        stores = [member.store for member in self.members if member.store is not None]
        return not any(may_alias(load, store) for store in stores for load, _ in footprint.loads)

    def _touches_own_row(self, member: Member) -> bool:
        """What the new member overwrites is read and written by those before it in the same row only."""
        store, own = member.store, member.coordinates[:-1]
        for other, footprint in zip(self.members, self.prints, strict=True):
            if store is not None:
                if any(may_alias(load, store) and not same_elements(load, store) for load, _ in footprint.loads):
                    return False
                if other.store is not None and may_alias(other.store, store) and not same_elements(other.store, store):
                    return False
            if any(coordinates[: len(own)] != own for coordinates in _overwritten(member, footprint)):
                return False
        return True

    # The loops of a row

    def is_of_one_row(self, value: Value, coordinates: Coordinates) -> bool:
        """Whether members that read a value do so in the row that `coordinates` say, as far as the loops' own dimension
        does not matter.
        """
        lane = coordinates.index(len(self.outer))
        row = coordinates[:lane] + coordinates[lane + 1 :]
        found = [at for footprint in self.prints for other, at in footprint.visited if other is value]
        return all(at[:lane] + at[lane + 1 :] == row for at in found)

    def loops(self) -> list[Loop]:
        """Members by the loop they run in, in order."""
        loops: list[Loop] = []
        for level, member in zip(self.levels, self.members, strict=True):
            for loop in loops:
                if loop.level == level and loop.inner == member.inner and loop.lanes_one == member.scalars_only:
                    loop.members.append(member)
                    break
            else:
                loops.append(Loop(level, member.inner, [member]))
        return sorted(loops, key=lambda loop: loop.level)

    def level(self, member: Member, footprint: Footprint) -> int:
        """The first loop of the row in which a member may run that comes after the others."""
        level = 0
        for value, coordinates in footprint.leaves:
            producer = self.produced.get(value)
            if producer is not None:
                forwarded = self._forwards(producer, member, coordinates)
                level = max(level, self.levels[producer] + (0 if forwarded else 1))
        for before, other, read in zip(self.levels, self.members, self.prints, strict=True):
            if self._must_follow(member, other, read):
                shared = self._same_loop(member, other) and self._reads_own_chunk(member, read)
                level = max(level, before + (0 if shared else 1))
        return level

    def _forwards(self, producer: int, member: Member, coordinates: Coordinates) -> bool:
        """Whether a member can use the chunk that another one has just computed in the same loop."""
        other = self.members[producer]
        same = self._same_loop(member, other) and not other.in_rows
        return same and coordinates == member.coordinates

    def _same_loop(self, a: Member, b: Member) -> bool:
        return a.inner == b.inner and a.scalars_only == b.scalars_only

    def _must_follow(self, member: Member, other: Member, footprint: Footprint) -> bool:
        """Whether a member must not run before another one, which reads `footprint`, on the same row."""
        if member.is_effect and other.is_effect:
            return True
        if member.store is not None and other.store is not None and may_alias(other.store, member.store):
            return True
        return bool(_overwritten(member, footprint))

    def _reads_own_chunk(self, member: Member, footprint: Footprint) -> bool:
        """Whether what a member overwrites at a chunk is read at no other one. A loop reads all of a chunk before it
        writes there, but it comes to other chunks later.
        """
        return all(coordinates == member.coordinates for coordinates in _overwritten(member, footprint))


def _overwritten(member: Member, footprint: Footprint) -> list[Coordinates]:
    """The elements that are read of what a member overwrites: of its tile, or of the memory that it stores to."""
    target, store = member.target, member.store
    found = [at for value, at in footprint.leaves if target is not None and value is target.owner]
    return found + [at for load, at in footprint.loads if store is not None and may_alias(load, store)]
