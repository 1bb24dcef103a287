"""Left operands of dots that are computed together.

Level: warp to intrinsic. Operands of several dots are often made of the same expensive values (attention's gradients:
the probabilities, and their product with something else). They are filled in one nest when the first of them is needed,
so that what they share is computed once and stays in registers. An operand that is a transpose is filled as what it is
the transpose of, which other dots may need too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mltriton.dialects import tt, ttg
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import TensorType
from mltriton.passes.intrinsic.tile_loops.footprints import EXPENSIVE, Footprint, consumers, whole_use
from mltriton.passes.intrinsic.tile_loops.indirect_dots import left_types
from mltriton.passes.intrinsic.tile_loops.members import Fill

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering
    from mltriton.passes.intrinsic.tile_loops.tiles import Tile
    from mltriton.targets.base import MicroKernel


def computed_value(value: Value) -> tuple[Value, bool]:
    """What a value is in another layout, or a transpose of in two dimensions, and whether it is transposed."""
    transposed = False
    op = value.defining_op
    while isinstance(op, ttg.ConvertLayout) or (isinstance(op, tt.Trans) and tuple(op.order) == (1, 0)):
        transposed ^= isinstance(op, tt.Trans)
        value = op.operands[0]
        op = value.defining_op
    return value, transposed


def fill_together(low: Lowering, op: tt.Dot, value: Value, kernel: MicroKernel) -> Tile:
    """A tile of the micro-kernel's type for `value`, which the dot `op` needs; in the same nest, tiles for what later
    dots of the block take on the left, if it is made of expensive values that `value` is made of too, and of nothing
    that comes after `op`.
    """
    costs = low.costs()
    shared = {part for part, _ in low.reads(value).visited if costs.of(part) >= EXPENSIVE}
    filled = _fill(low, op, value, kernel, whole_use(op, op.a))
    for dot in _later_dots(op, shared):
        other, _ = computed_value(dot.a)
        found = low.reads(other)
        if _is_made_of(found, shared) and _is_known_before(found, op) and _takes(low, dot, other, kernel):
            _fill(low, op, other, kernel, set())
    return filled


def filled_before(low: Lowering, value: Value, kernel: MicroKernel) -> Tile | None:
    """The tile with the converted elements of a value, if there is one."""
    made, scope = low.packed.get(("filled", value, kernel.operand), (None, None))
    return made if scope in low.e.emitter.scopes else None


def _fill(low: Lowering, op: tt.Dot, value: Value, kernel: MicroKernel, served: set[tuple[Operation, Value]]) -> Tile:
    """The tile of a value, or one with its elements converted, which later dots of the block find, too."""
    type = cast(TensorType, value.type)
    if type.element is kernel.operand:
        return low.force(value)
    made = filled_before(low, value, kernel)
    if made is None:
        made = low.e.scratch.tile(type.shape, kernel.operand)
        dots = [dot for dot in _later_dots(op, {value}) if _takes(low, dot, value, kernel)]
        later = {use for dot in dots for use in whole_use(dot, dot.a)}
        low.add(Fill(value, made, low.e.emitter.loc, defines=False, is_new=True, served=served | later))
        low.packed["filled", value, kernel.operand] = made, low.e.emitter.scopes[-1]
    return made


def _takes(low: Lowering, dot: tt.Dot, value: Value, kernel: MicroKernel) -> bool:
    """Whether a dot is going to read its left operand from a tile of `value` in the micro-kernel's type."""
    base, transposed = computed_value(dot.a)
    if base is not value or left_types(low, dot) != {kernel.operand}:
        return False
    return cast(TensorType, value.type).element is kernel.operand or not transposed or not kernel.needs_rows


def _later_dots(op: tt.Dot, values: set[Value]) -> list[tt.Dot]:
    """The dots after `op` in its block that multiply the same type and need one of `values`, in order."""
    block = op.block
    assert block is not None
    users = {user for value in values for user, _ in consumers(value)}
    dots = [user for user in users if isinstance(user, tt.Dot) and user.block is block and op.is_before(user)]
    element = cast(TensorType, op.a.type).element
    return sorted([dot for dot in dots if cast(TensorType, dot.a.type).element is element], key=block.position)


def _is_made_of(found: Footprint, values: set[Value]) -> bool:
    return any(value in values for value, _ in found.visited)


def _is_known_before(found: Footprint, op: Operation) -> bool:
    """Whether everything that is read comes before `op`."""
    sources = [*(load.results[0] for load, _ in found.loads), *(leaf for leaf, _ in found.leaves)]
    return all(_comes_before(value, op) for value in sources)


def _comes_before(value: Value, op: Operation) -> bool:
    definition = value.defining_op
    return definition is None or definition.block is not op.block or definition.is_before(op)
