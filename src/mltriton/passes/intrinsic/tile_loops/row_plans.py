"""What the loops of a row do for later ones: keep values that both need, prefetch what those store.

Level: warp. Where a row takes several loops (softmax: maximum, sum, result), an expensive value that two of them need
is kept for the row by the first. The last one does little but store, and waits for the cache lines that it writes: the
loop before it, which computes, asks for them meanwhile.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from math import gcd
from typing import cast

from mltriton.dialects import tt
from mltriton.ir.operation import Value
from mltriton.ir.types import TensorType, byte_width
from mltriton.passes.intrinsic.tile_loops.footprints import EXPENSIVE, Coordinates, Costs, Footprint
from mltriton.passes.intrinsic.tile_loops.loop_nests import STRAIGHT, Loop, LoopNest
from mltriton.passes.intrinsic.tile_loops.members import Member, StoreBlock
from mltriton.records import NamedTuple

SHORTEST = 512  # bytes of a row from which prefetching pays


class Kept(NamedTuple):
    """A block that the loop of number `level` keeps for the later loops of a row; `user` is the first that reads it.
    `coordinates` say which dimensions of the loops those of the block follow.
    """

    value: Value
    coordinates: Coordinates
    level: int
    user: Member


def kept_values(
    loops: Sequence[Loop], nest: LoopNest, costs: Costs, aliases: Mapping[Value, Value], lanes: int
) -> Iterator[Kept]:
    """The expensive values that the first loop that computes them keeps for later loops of the row."""
    first: dict[Value, Loop] = {}
    kept: set[Value] = set()
    for loop in loops:
        straight = loop.inner // gcd(loop.inner, lanes) <= STRAIGHT
        mine: dict[Value, Coordinates] = {}
        users: dict[Value, Member] = {}
        for member in loop.members:
            footprint = _Expensive(costs, len(nest.outer), first, mine)
            footprint.aliases = aliases
            known = [value for value in nest.produced if value not in member.produces]  # A fill computes its own.
            for value, coordinates in member.inputs():
                footprint.visited = set()
                footprint.follow(value, coordinates, known)
            users |= {value: member for value in mine if value not in users}
        for value, coordinates in mine.items():
            owner = first.setdefault(value, loop)
            if owner is loop or value in kept or (straight and owner.inner == loop.inner):
                continue
            if nest.is_of_one_row(value, coordinates):
                kept.add(value)
                yield Kept(value, coordinates, owner.level, users[value])


class _Expensive(Footprint):
    """A walk that notes expensive values at lane coordinates."""

    def __init__(self, costs: Costs, lane: int, first: dict[Value, Loop], mine: dict[Value, Coordinates]) -> None:
        super().__init__()
        self.costs, self.lane, self.first, self.mine = costs, lane, first, mine

    def is_followed(self, value: Value, coordinates: Coordinates, known: Container[Value]) -> bool:
        if self.lane not in coordinates or self.costs.of(value) < EXPENSIVE:
            return False
        op = value.defining_op
        if (
            op is not None
            and not isinstance(op, tt.Reshape | tt.Join)
            and min(coordinates) >= -1
            and value not in known
        ):
            self.mine[value] = coordinates
            return value not in self.first
        return True


def prefetched(loops: Sequence[Loop], produced: Container[Value]) -> list[Member]:
    """The stores of the last loop of a row that the loop before it prefetches."""
    *_, before, last = loops
    if before.inner != last.inner or before.lanes_one or last.lanes_one:
        return []
    stores = [member for member in last.members if isinstance(member, StoreBlock)]
    return [store for store in stores if _is_long(store) and not _is_produced(store, produced)]


def _is_long(store: StoreBlock) -> bool:
    return store.inner * byte_width(cast(TensorType, store.op.value.type).element) >= SHORTEST


def _is_produced(store: StoreBlock, produced: Container[Value]) -> bool:
    """Whether the address depends on what the row computes."""
    footprint = Footprint()
    op = store.op
    pointers = op.operands[:1] if isinstance(op, tt.Store) else [v for v in op.operands if v is not op.value]
    for pointer in pointers:
        coordinates = store.coordinates if isinstance(pointer.type, TensorType) else ()
        footprint.follow(pointer, coordinates, produced)
    return bool(footprint.loads) or any(value in produced for value, _ in footprint.leaves)
