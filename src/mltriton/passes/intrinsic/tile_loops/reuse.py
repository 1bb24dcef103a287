"""New tiles in the place of tiles that are read for the last time.

Level: warp to intrinsic. A nest that fills a tile from another one, element by element, may write over it when nothing
else needs what was there: half the memory to stream through (attention's probabilities take the place of its scores).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mltriton.ir.operation import Value
from mltriton.ir.types import shape_of
from mltriton.passes.intrinsic.tile_loops.footprints import consumers
from mltriton.passes.intrinsic.tile_loops.members import Fill, Member
from mltriton.passes.intrinsic.tile_loops.nests import Nest

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering


def reuse_tiles(low: Lowering, nest: Nest) -> None:
    """Give the new tiles of a nest the memory of tiles that nothing needs after it."""
    fills = [member for member in nest.members if isinstance(member, Fill) and member.is_new]
    if not fills:
        return
    order = {member: number for number, loop in enumerate(nest.loops()) for member in loop.members}
    for fill in fills:
        footprint = nest.prints[nest.members.index(fill)]
        for value, places in footprint.leaves:
            if places == fill.places and _is_free_after(low, nest, fill, value, order):
                old = low.e.tiles[value]
                fill.tile.pointer, fill.tile.region = old.pointer, old.region
                low.e.scratch.touch(fill.tile)
                nest.dying.append(value)
                break


def _is_free_after(low: Lowering, nest: Nest, fill: Fill, value: Value, order: dict[Member, int]) -> bool:
    e, tile = low.e, low.e.tiles.get(value)
    if (
        tile is None
        or tile.region.is_buffer
        or tile.owner is not value
        or value in nest.dying
        or tile in low.homes.values()
    ):
        return False
    if tile.element is not fill.tile.element or tile.strides != fill.tile.strides:
        return False
    if shape_of(value.type) != fill.shape or e.block_depth[value.defining_block] != e.emitter.level:
        return False
    for member, footprint in zip(nest.members, nest.prints, strict=True):
        for leaf, places in footprint.leaves:
            if leaf is not value:
                continue
            same = places == fill.places or (order[member] < order[fill] and places[:-1] == fill.places[:-1])
            if order[member] > order[fill] or not same:
                return False
    fills = [member for member in nest.members if isinstance(member, Fill)]
    filled = {member.value for member in fills if member.produces or not member.served}
    served = {use for member in fills for use in member.served}
    inside = {member.whole for member in nest.members if member.whole is not None}
    return all(user in inside or (user, operand) in served for user, operand in consumers(value, filled))
