"""New tiles in the place of tiles that are read for the last time.

Level: warp to intrinsic. A nest that fills a tile from another one, element by element, may write over it when nothing
else needs what was there: half the memory to stream through (attention's probabilities take the place of its scores).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mltriton.dialects import scf
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.types import shape_of
from mltriton.passes.intrinsic.tile_loops.footprints import consumers
from mltriton.passes.intrinsic.tile_loops.loop_nests import LoopNest, OtherUses
from mltriton.passes.intrinsic.tile_loops.members import Fill, Member
from mltriton.passes.intrinsic.tile_loops.tiles import Tile

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering


def reuse_tiles(low: Lowering, nest: LoopNest) -> None:
    """Give the new tiles of a nest the memory of tiles that nothing needs after it."""
    fills = [member for member in nest.members if isinstance(member, Fill) and member.is_new]
    if not fills:
        return
    order = {member: number for number, loop in enumerate(nest.loops()) for member in loop.members}
    for fill in fills:
        footprint = nest.prints[nest.members.index(fill)]
        for value, coordinates in footprint.leaves:
            if coordinates == fill.coordinates and _is_free_after(low, nest, fill, value, order):
                old = low.e.tiles[value]
                fill.tile.pointer = old.pointer
                nest.dying.append(value)
                break


def _is_free_after(low: Lowering, nest: LoopNest, fill: Fill, value: Value, order: dict[Member, int]) -> bool:
    e, tile = low.e, low.e.tiles.get(value)
    if tile is None or tile.is_buffer or tile.owner is not value or value in nest.dying or tile in low.homes.values():
        return False
    if tile.element is not fill.tile.element or tile.strides != fill.tile.strides:
        return False
    if shape_of(value.type) != fill.shape or e.block_depth[value.defining_block] != e.emitter.level:
        return False
    for member, footprint in zip(nest.members, nest.prints, strict=True):
        for leaf, coordinates in footprint.leaves:
            if leaf is not value:
                continue
            same = coordinates == fill.coordinates or (
                order[member] < order[fill] and coordinates[:-1] == fill.coordinates[:-1]
            )
            if order[member] > order[fill] or not same:
                return False
    return OtherUses(nest.members).are_none(value)


def may_overwrite(low: Lowering, tile: Tile, writer: Operation, inputs: Sequence[Value]) -> bool:
    """Whether the operation `writer`, whose new value is computed from `inputs` element by element, may write to a
    tile: nothing needs the value that it holds after that.
    """
    owner = tile.owner
    if owner is None:
        return True
    if _loops_between(owner, writer):
        return False
    for user, _ in consumers(owner):
        if user is writer:
            continue
        if _comes_after(user, writer):
            return False
    return all(_reads_own_element(low, value, owner) for value in inputs)


def _loops_between(owner: Value, writer: Operation) -> bool:
    """Whether `writer` runs several times while `owner` is one value."""
    block, current = owner.defining_block, writer
    while current.block is not block:
        parent = current.parent_op
        if parent is None or isinstance(parent, scf.For | scf.While):
            return True
        current = parent
    return False


def _comes_after(user: Operation, writer: Operation) -> bool:
    """Whether `user` may run after `writer`."""
    current: Operation | None = writer
    while current is not None:
        block = current.block
        assert block is not None
        other = user.ancestor_in(block)
        if other is not None:
            return other is not current and current.is_before(other)
        current = block.parent_op
        if current is not None and user.ancestor_in(cast(Block, current.block)) is current:
            return not isinstance(current, scf.If)
    return True


def _reads_own_element(low: Lowering, value: Value, owner: Value) -> bool:
    own = tuple(range(len(shape_of(value.type))))
    return all(leaf is not owner or coordinates == own for leaf, coordinates in low.reads(value).leaves)
