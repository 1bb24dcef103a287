"""Loops and branches of the program: scalars are carried, blocks live in tiles.

Level: warp to intrinsic. A carried block has one tile for its initial value, the argument, the yielded value and the
result. What an iteration yields is written at its end, unless it was computed into the tile already (`Lowering.homes`
says where a value is going to live). Guarantees: a tile is overwritten only when nothing needs what it holds; values
that are yielded to each other's tiles go through a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mltriton.dialects import scf
from mltriton.ir.nesting import is_inside
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.types import TensorType, shape_of
from mltriton.passes.intrinsic.tile_loops.alternatives import Alternatives, optional_region
from mltriton.passes.intrinsic.tile_loops.first_sums import cleared_if_idle, condition, is_first_sum
from mltriton.passes.intrinsic.tile_loops.footprints import consumers, whole_use
from mltriton.passes.intrinsic.tile_loops.members import CopyTile, Fill
from mltriton.passes.intrinsic.tile_loops.reuse import may_overwrite
from mltriton.passes.intrinsic.tile_loops.slots import (
    PointerSlot,
    ScalarSlot,
    Slot,
    TileSlot,
    is_block_pointer,
    loop_slot,
)
from mltriton.passes.intrinsic.tile_loops.tiles import Tile

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering


def lower_for(low: Lowering, op: scf.For) -> None:
    """A counted loop."""
    low.flush()
    e, body = low.e, op.body.block
    ends = body.terminator.operands
    bounds = [e.scalar(bound) for bound in (op.lower, op.upper, op.step)]
    carried = list(zip(op.inits, op.carried, ends, strict=True))
    first_sums = {argument: init for init, argument, end in carried if is_first_sum(init, argument, end)}

    def tile_of(init: Value, argument: Value) -> Tile:
        return cleared_if_idle(low, init, bounds) if argument in first_sums else initial_tile(low, init, op)

    slots = [
        loop_slot(low, init, argument, end) or TileSlot(low, tile_of(init, argument)) for init, argument, end in carried
    ]
    low.flush()
    inits = [value for slot, init in zip(slots, op.inits, strict=True) for value in slot.inits(init)]
    with e.emitter.loop(*bounds, inits=inits) as loop, optional_region(e):
        e.scalars[op.counter] = loop.counter
        loop.counter.hint = op.counter.hint
        bind_all(slots, op.carried, loop.carried)
        _set_homes(low, slots, ends)
        if first_sums:
            later = condition(low, "ne", loop.counter, bounds[0])
            low.first_sums.update({argument: (later, init) for argument, init in first_sums.items()})
        low.block(body)
        loop.yields = write_yields(low, slots, body.terminator)
    bind_all(slots, op.results, loop.results)


def bind_all(slots: Sequence[Slot], values: Sequence[Value], carried: Sequence[Value]) -> None:
    """Let what was carried stand for the values."""
    first = 0
    for slot, value in zip(slots, values, strict=True):
        slot.bind(value, carried[first : first + slot.width])
        first += slot.width


def _set_homes(low: Lowering, slots: Sequence[Slot], ends: Sequence[Value]) -> None:
    for slot, end in zip(slots, ends, strict=True):
        if isinstance(slot, TileSlot):
            low.homes.setdefault(end, slot.tile)


def initial_tile(low: Lowering, init: Value, op: Operation) -> Tile:
    """The tile of a carried block, filled with its initial value: the value's own where nobody else needs it."""
    tile = low.e.tiles.get(init)
    type = cast(TensorType, init.type)
    if (
        tile is not None
        and not tile.is_buffer
        and tile.owner is init
        and tile.element is type.element
        and init.defining_block is op.block
        and op.operands.count(init) == 1
        and all((user is op and value is init) or _before(user, op) for user, value in consumers(init))
        and not any(is_inside(user, op) for user in init.users)
    ):
        tile.owner = None
        return tile
    tile = low.e.scratch.tile(type.shape, type.element)
    low.add(Fill(init, tile, low.e.emitter.loc, defines=False, served=whole_use(op, init)))
    return tile


def _before(user: Operation, op: Operation) -> bool:
    assert op.block is not None
    holder = user.ancestor_in(op.block)
    return holder is not None and holder is not op and holder.is_before(op)


# Overwriting


# The end of an iteration or branch


def write_yields(low: Lowering, slots: Sequence[Slot], terminator: Operation) -> list[Value]:
    """Bring every yielded block to its tile, readers of a tile before its writer; what is needed by those that it needs
    itself goes through a copy. Gives the yielded scalars, which may be read from tiles that are overwritten here.
    """
    low.flush()
    ends = terminator.operands[-len(slots) :] if slots else ()
    scalars = [value for slot, end in zip(slots, ends, strict=True) for value in slot.yields(end)]
    left = [
        (slot.tile, end)
        for slot, end in zip(slots, ends, strict=True)
        if isinstance(slot, TileSlot) and low.e.tiles.get(end) is not slot.tile
    ]
    copies: list[tuple[Tile, Tile, Value]] = []
    while left:
        number = next((i for i in range(len(left)) if not _is_needed(low, left, i)), None)
        tile, end = left.pop(number or 0)
        target = tile
        if number is None:
            target = low.e.scratch.tile(shape_of(end.type), tile.element)
            copies.append((target, tile, end))
        low.add(Fill(end, target, low.e.emitter.loc, defines=False, served=whole_use(terminator, end)))
    low.flush()
    for source, tile, end in copies:
        low.add(CopyTile(source, tile, shape_of(end.type), low.e.emitter.loc))
    low.flush()
    return scalars


def _is_needed(low: Lowering, left: list[tuple[Tile, Value]], number: int) -> bool:
    """Whether a yielded value that is still to be written needs what the tile of entry `number` holds: another one
    anywhere, its own at another element.
    """
    tile = left[number][0]
    for other, (_, end) in enumerate(left):
        own = tuple(range(len(shape_of(end.type))))
        for leaf, coordinates in low.reads(end).leaves:
            if low.e.tiles.get(leaf) is tile and (other != number or coordinates != own):
                return True
    return False


# Branches and loops with a condition


def lower_if(low: Lowering, op: scf.If) -> None:
    """A branch; blocks that it gives are written to tiles by both sides."""
    low.flush()
    e = low.e
    slots: list[Slot] = []
    for number in range(len(op.results)):
        slots.append(_kept_slot(low, op, number, slots) or _branch_slot(low, op, number, slots))
    condition = e.scalar(op.condition)
    sides: list[Block] = []
    alternatives = Alternatives(e)
    for region in op.regions:
        side = Block()
        with e.emitter.inside(side), alternatives.side():
            values = _side(low, slots, region.block) if region.blocks and region.block.ops else []
            e.emitter.insert(scf.Yield(values))
        sides.append(side)
    alternatives.join()
    types = [value.type for value in sides[0].terminator.operands]
    made = e.emitter.effect(scf.If, [condition], types, {}, [Region([side]) for side in sides])
    bind_all(slots, op.results, made.results)


def _side(low: Lowering, slots: Sequence[Slot], side: Block) -> list[Value]:
    ends = side.terminator.operands
    _set_homes(low, slots, ends)
    low.block(side)
    return write_yields(low, slots, side.terminator)


def _kept_slot(low: Lowering, op: scf.If, number: int, others: Sequence[Slot]) -> Slot | None:
    """A block that a side hands on as it is, and nothing needs behind the branch, stays in its tile, unless another
    result has it.
    """
    result = op.results[number]
    for region in op.regions:
        end = region.block.terminator.operands[number]
        tile = low.e.tiles.get(end)
        if (
            tile is not None
            and not tile.is_buffer
            and tile.owner is end
            and end.defining_block is op.block
            and end.type == result.type
            and not _has_tile(others, tile)
            and may_overwrite(low, tile, op, [])
        ):
            return TileSlot(low, tile)
    return None


def _has_tile(slots: Sequence[Slot], tile: Tile) -> bool:
    return any(isinstance(slot, TileSlot) and slot.tile is tile for slot in slots)


def _branch_slot(low: Lowering, op: Operation, number: int, others: Sequence[Slot]) -> Slot:
    result = op.results[number]
    if is_block_pointer(result):
        return PointerSlot(low)
    if not isinstance(result.type, TensorType):
        return ScalarSlot(low)
    home = low.homes.get(result)
    is_free = home is not None and home.element is result.type.element and not _has_tile(others, home)
    if home is not None and is_free and may_overwrite(low, home, op, []):
        return TileSlot(low, home)
    return TileSlot(low, low.e.scratch.tile(result.type.shape, result.type.element))


def lower_while(low: Lowering, op: scf.While) -> None:
    """A loop with a condition: the blocks of `before` and of `after` have tiles, shared where a block is passed on."""
    low.flush()
    e, before, after = low.e, op.before.block, op.after.block
    slots = [_while_slot(low, op, init, argument) for init, argument in zip(op.inits, before.arguments, strict=True)]
    low.flush()
    inits = [value for slot, init in zip(slots, op.inits, strict=True) for value in slot.yields(init)]
    new_before, outside = Block([value.type for value in inits]), e.emitter.level
    condition, *passed = before.terminator.operands
    with e.emitter.inside(new_before), optional_region(e):
        bind_all(slots, before.arguments, new_before.arguments)
        low.block(before)
        low.flush()
        next_slots: list[Slot] = []
        with e.emitter.at(outside):  # Tiles of results are there behind the loop, too.
            for number, value in enumerate(passed):
                next_slots.append(_passed_slot(low, op, number, value, slots, next_slots))
        decision = e.scalar(condition)
        values = write_yields(low, next_slots, before.terminator)
        e.emitter.insert(scf.Condition([decision, *values]))
    types = [value.type for value in values]
    new_after = Block(types)
    with e.emitter.inside(new_after), optional_region(e):
        bind_all(next_slots, after.arguments, new_after.arguments)
        ends = after.terminator.operands
        _set_homes(low, slots, ends)
        low.block(after)
        e.emitter.insert(scf.Yield(write_yields(low, slots, after.terminator)))
    made = e.emitter.effect(scf.While, [], types, {}, [Region([new_before]), Region([new_after])])
    made.set_operands(inits)
    made.segments = (len(inits),)
    bind_all(next_slots, op.results, made.results)


def _while_slot(low: Lowering, op: scf.While, init: Value, argument: Value) -> Slot:
    if is_block_pointer(argument):
        return PointerSlot(low)
    if not isinstance(argument.type, TensorType):
        return ScalarSlot(low)
    return TileSlot(low, initial_tile(low, init, op))


def _passed_slot(
    low: Lowering, op: scf.While, number: int, value: Value, slots: Sequence[Slot], others: Sequence[Slot]
) -> Slot:
    """A block that is passed on unchanged stays in its tile, the first time if it is passed on twice."""
    tile = low.e.tiles.get(value)
    if tile is not None and _has_tile(slots, tile) and not _has_tile(others, tile):
        return TileSlot(low, tile)
    return _branch_slot(low, op, number, [*slots, *others])
