"""Left operands of dots that are computed together.

Level: warp to intrinsic. Operands of several dots are often made of the same expensive values (attention's gradients:
the probabilities, and their product with something else). They are filled in one nest when the first of them is needed,
so that what they share is computed once and stays in registers. An operand that is a transpose is filled as what it is
the transpose of, which other dots may need too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mltriton.dialects import tt, ttg
from mltriton.ir.operation import Operation, Value
from mltriton.passes.intrinsic.tile_loops.footprints import EXPENSIVE, Footprint, consumers

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering
    from mltriton.passes.intrinsic.tile_loops.tiles import Tile


def computed_value(value: Value) -> tuple[Value, bool]:
    """What a value is in another layout, or a transpose of in two dimensions, and whether it is transposed."""
    transposed = False
    op = value.defining_op
    while isinstance(op, ttg.ConvertLayout) or (isinstance(op, tt.Trans) and tuple(op.order) == (1, 0)):
        transposed ^= isinstance(op, tt.Trans)
        value = op.operands[0]
        op = value.defining_op
    return value, transposed


def fill_together(low: Lowering, op: tt.Dot, value: Value) -> Tile:
    """A tile for `value`, which the dot `op` needs; in the same nest, tiles for what later dots of the block take on
    the left, if it is made of expensive values that `value` is made of too, and of nothing that comes after `op`.
    """
    costs = low.costs()
    shared = {part for part, _ in low.reads(value).visited if costs.of(part) >= EXPENSIVE}
    filled = low.force(value)
    for dot in _later_dots(op, shared):
        other, _ = computed_value(dot.a)
        found = low.reads(other)
        if _is_made_of(found, shared) and _is_known_before(found, op):
            low.force(other)
    return filled


def _later_dots(op: tt.Dot, values: set[Value]) -> list[tt.Dot]:
    """The dots after `op` in its block that need one of `values`, in order."""
    block = op.block
    assert block is not None
    users = {user for value in values for user, _ in consumers(value)}
    dots = [user for user in users if isinstance(user, tt.Dot) and user.block is block and op.is_before(user)]
    return sorted(dots, key=block.position)


def _is_made_of(found: Footprint, values: set[Value]) -> bool:
    return any(value in values for value, _ in found.visited)


def _is_known_before(found: Footprint, op: Operation) -> bool:
    """Whether everything that is read comes before `op`."""
    sources = [*(load.results[0] for load, _ in found.loads), *(leaf for leaf, _ in found.leaves)]
    return all(_comes_before(value, op) for value in sources)


def _comes_before(value: Value, op: Operation) -> bool:
    definition = value.defining_op
    return definition is None or definition.block is not op.block or definition.is_before(op)
