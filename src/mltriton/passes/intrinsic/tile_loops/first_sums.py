"""Accumulators that a loop carries from zero: its first dot writes them, so that nothing clears them before.

Level: warp to intrinsic. Saves one pass over the tile, which is much of the work where the sum over k is short. Only a
loop that does not run at all clears its accumulator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mltriton.dialects import arith, scf, tt
from mltriton.ir.attributes import DenseAttr
from mltriton.ir.operation import Block, Region, Value
from mltriton.ir.types import I1, TensorType
from mltriton.passes.intrinsic.tile_loops.accesses import compare
from mltriton.passes.intrinsic.tile_loops.members import Fill
from mltriton.passes.intrinsic.tile_loops.tiles import Tile

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering


def is_zero(value: Value) -> bool:
    """Whether a block is the constant 0."""
    op = value.defining_op
    return (
        isinstance(op, arith.Constant) and isinstance(op.value, DenseAttr) and op.value.is_splat and not op.value.splat
    )


def is_first_sum(init: Value, argument: Value, end: Value) -> bool:
    """Whether all that a loop does with what it carries from zero is one dot an iteration, directly in its body."""
    dot = end.defining_op
    return (
        isinstance(dot, tt.Dot)
        and is_zero(init)
        and dot.c is argument
        and list(argument.users) == [dot]
        and dot.block is argument.defining_block
        and dot.a is not argument
        and dot.b is not argument
    )


def cleared_if_idle(low: Lowering, init: Value, bounds: list[Value]) -> Tile:
    """The tile of such an accumulator; zero where the loop over the bounds is empty."""
    type = cast(TensorType, init.type)
    tile = low.e.scratch.tile(type.shape, type.element)
    low.flush()
    clear_when(low, condition(low, "sge", bounds[0], bounds[1]), init, tile)
    return tile


def continued(low: Lowering, carried: Value, target: Tile | None) -> Value | bool:
    """Whether the dot on a carried accumulator adds to what `target` holds. Where it writes elsewhere, or (None) cannot
    ask, the accumulator is cleared for the first iteration.
    """
    written, zeros = low.first_sums[carried]
    tile = low.e.tiles[carried]
    if target is tile:
        return written
    clear_when(low, condition(low, "eq", written, low.e.emitter.integer(0, I1)), zeros, tile)
    return True


def clear_when(low: Lowering, when: Value, zero: Value, tile: Tile) -> None:
    """Fill a tile with zeros under a condition."""
    low.flush()
    sides = [Block(), Block()]
    with low.e.emitter.inside(sides[0]):
        low.add(Fill(zero, tile, low.e.emitter.loc, defines=False))
        low.flush()
        low.e.emitter.insert(scf.Yield([]))
    with low.e.emitter.inside(sides[1]):
        low.e.emitter.insert(scf.Yield([]))
    low.e.emitter.effect(scf.If, [when], [], {}, [Region([side]) for side in sides])


def condition(low: Lowering, predicate: str, a: Value, b: Value) -> Value:
    """A comparison of two scalars."""
    wrap = low.e.arithmetic.wrap
    return low.e.arithmetic.scalar(compare(low.e, predicate, wrap(a), wrap(b), 1))
