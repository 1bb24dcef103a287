"""What the evaluation of a value would read, without evaluating it.

Level: warp. `Footprints.of` follows virtual values from a root to what is really read - loads, tiles, results that an
open loop nest still has to compute - and says for each dimension which dimension of the root it follows. Also: which
operations use a value in the end, what evaluating a value costs, and which accesses may touch the same memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import field
from typing import cast

from mltriton.analysis.aliasing import may_alias, orders_memory, same_elements, writes_in
from mltriton.dialects import tile, tt, ttg
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.order import operands_first
from mltriton.ir.reaching import reached
from mltriton.ir.types import TensorType, shape_of
from mltriton.passes.intrinsic.tile_loops.operations import LOADS, cost_of, is_virtual
from mltriton.records import NamedTuple, record

FIRST = -1  # the coordinate 0
OTHER = -2  # a coordinate that follows no dimension of the root

Coordinates = tuple[int, ...]  # for each dimension of a value: the root's dimension it follows, FIRST or OTHER

EXPENSIVE = 12  # from here on storing a chunk and loading it again is cheaper than computing it twice
SMALL_PART = 8  # a part this many times smaller than the whole is computed for free


@record()
class Footprint:
    """What a root reads: (value, coordinates) of leaves by kind, and every block value on the way."""

    loads: list[tuple[Operation, Coordinates]] = field(default_factory=list[tuple[Operation, Coordinates]])
    leaves: list[tuple[Value, Coordinates]] = field(default_factory=list[tuple[Value, Coordinates]])
    visited: set[tuple[Value, Coordinates]] = field(default_factory=set[tuple[Value, Coordinates]])
    aliases: Mapping[Value, Value] = field(default_factory=dict[Value, Value])

    def follow(self, value: Value, coordinates: Coordinates, known: Container[Value]) -> None:
        """Add what `value` at `coordinates` reads; `known` values are leaves."""
        pending = [(value, coordinates)]
        while pending:
            value, coordinates = pending.pop()
            if not self.is_followed(value, coordinates, known):
                continue
            value = self.aliases.get(value, value)
            key = (value, coordinates)
            if key in self.visited:
                continue
            self.visited.add(key)
            op = value.defining_op
            if value in known or op is None or not is_virtual(op):
                self.leaves.append(key)
                continue
            if isinstance(op, LOADS):
                self.loads.append((op, coordinates))
            pending += reversed(list(operand_coordinates(op, coordinates)))

    def is_followed(self, value: Value, coordinates: Coordinates, known: Container[Value]) -> bool:
        """Whether `value` at `coordinates` belongs to the walk."""
        return True


def operand_coordinates(op: Operation, coordinates: Coordinates) -> Iterator[tuple[Value, Coordinates]]:
    """The operands of a virtual operation with the coordinates that are read of them."""
    if op.rearranges:
        yield from op.source_elements(coordinates, FIRST, OTHER)
        return
    for operand in op.operands:
        rank = operand.type.rank if isinstance(operand.type, TensorType) else 0
        yield operand, (FIRST,) * rank if isinstance(op, tt.Unsplat) else coordinates[:rank]


# Uses


def consumers(value: Value, stop: Container[Value] = ()) -> Iterator[tuple[Operation, Value]]:
    """The operations that are not virtual and use `value`, in the end, through virtual ones; each with the operand
    through which it does. Values in `stop` are not followed.
    """

    def following(found: Value) -> Iterable[Value]:
        return (result for op in found.users if passes_on(op) for result in op.results if result not in stop)

    return ((user, found) for found in reached([value], following) for user in found.users if not passes_on(user))


def whole_use(user: Operation, value: Value) -> set[tuple[Operation, Value]]:
    """The use of a value by an operation as `consumers` names it, where it is one operand only."""
    return {(user, value)} if user.operands.count(value) == 1 else set()


def passes_on(user: Operation) -> bool:
    """Whether who uses an operation's results uses its operands; that a block is stored is no use of it."""
    if isinstance(user, tile.Fill):
        return True
    return is_virtual(user) or (user.pure and not user.regions and not isinstance(user, tt.Dot))


class LastUses:
    """Where in a block values are used last, by the numbers of its operations; -1 where no consumer is in the block."""

    def __init__(self, block: Block, numbers: Mapping[Operation, int]) -> None:
        self.block, self.numbers = block, numbers
        self.known: dict[Value, int] = {}

    def of(self, value: Value) -> int:
        """The number of the operation that is the value's last consumer, or in which that stands."""
        if value not in self.known:
            for each in operands_first(value, self._unknown_results):
                self.known[each] = max(map(self._of_user, each.users), default=-1)
        return self.known[value]

    def _of_user(self, user: Operation) -> int:
        if passes_on(user):
            return max((self.known[result] for result in user.results), default=-1)
        holder = user.ancestor_in(self.block)
        return -1 if holder is None else self.numbers[holder]

    def _unknown_results(self, value: Value) -> list[Value]:
        users = filter(passes_on, value.users)
        return [result for user in users for result in user.results if result not in self.known]


# Cost


class Costs:
    """What evaluating one chunk of a value costs, in vector operations; parts that are much smaller than the whole are
    free. Values in `free` are read from a tile.
    """

    def __init__(self, free: Container[Value]) -> None:
        self.free = free
        self.known: dict[Value, int] = {}

    def of(self, value: Value) -> int:
        """The cost of a block value."""
        if not isinstance(value.type, TensorType) or value in self.free:
            return 1 if isinstance(value.type, TensorType) else 0
        if value not in self.known:
            for each in operands_first(value, self._unknown_operands):
                op = each.defining_op
                own = 1 if op is None or not is_virtual(op) else cost_of(op)
                self.known[each] = own + sum(map(self.of, self._operands(each)))
        return self.known[value]

    def _operands(self, value: Value) -> list[Value]:
        """The operands whose cost is part of a block's."""
        op = value.defining_op
        if op is None or not is_virtual(op):
            return []
        least = cast(TensorType, value.type).size // SMALL_PART
        return [v for v in op.operands if isinstance(v.type, TensorType) and v.type.size > least]

    def _unknown_operands(self, value: Value) -> list[Value]:
        return [operand for operand in self._operands(value) if not (operand in self.known or operand in self.free)]


# Memory


def killed_loads(block: Block) -> set[Operation]:
    """The loads of a block that cannot be repeated where they are used: something may have written there before, of
    this program or of one that it signals to or waits for; and those that are asked to happen once.
    """
    numbers = {op: number for number, op in enumerate(block.ops)}
    found = (_Effect(number, op, tuple(writes_in(op)), orders_memory(op)) for op, number in numbers.items())
    effects = [effect for effect in found if effect.writes or effect.orders]
    positions = [effect.number for effect in effects]
    last_uses = LastUses(block, numbers)

    def is_killed(load: Operation) -> bool:
        if isinstance(load, tt.Load) and load.volatile:
            return True
        first = bisect_right(positions, numbers[load])
        if first == len(positions):
            return False
        last = last_uses.of(load.results[0])
        return any(_ends(effect, load, last) for effect in effects[first : bisect_right(positions, last)])

    return {op for op in block.ops if isinstance(op, LOADS) and is_virtual(op) and is_killed(op)}


class _Effect(NamedTuple):
    """An operation of a block, the writes in it, and whether what was accessed before must be done before it."""

    number: int
    holder: Operation
    writes: tuple[Operation, ...]
    orders: bool


def _ends(effect: _Effect, load: Operation, last: int) -> bool:
    """Whether a load before an effect cannot be repeated behind it or in it; its last use has the number `last`."""
    is_last_use = effect.number == last
    if effect.orders and not (isinstance(load, ttg.LocalLoad) or (is_last_use and not effect.holder.regions)):
        return True
    return any(_kills(load, write, is_last_use, effect.holder) for write in effect.writes)


def _kills(load: Operation, write: Operation, is_last_use: bool, holder: Operation) -> bool:
    if not may_alias(load, write):
        return False
    return not (is_last_use and holder is write and same_elements(load, write) and _reads_own_elements(load, write))


def _reads_own_elements(load: Operation, write: Operation) -> bool:
    """Whether an element that a write stores comes, of a load's block, from the same element only."""
    value = write.operands[0] if isinstance(write, ttg.LocalStore) else write.operands[-1]
    found = Footprint()
    for operand in write.operands:
        found.follow(operand, tuple(range(len(shape_of(operand.type)))), ())
    own = tuple(range(len(shape_of(value.type))))
    return all(coordinates == own for other, coordinates in found.loads if other is load)
