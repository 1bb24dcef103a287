"""Values that many steps lead to and that are needed again later: computed once, into a tile.

Level: warp. A virtual value is evaluated wherever it is needed. In a chain of steps with a loop each (a
bitonic sort, whose every stage reduces what the one before it made) every loop would repeat all steps before it. Scales
that many elements of a dot's operand share would be gathered for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from mltriton.dialects import tt
from mltriton.ir.operation import Value
from mltriton.ir.types import shape_of
from mltriton.passes.intrinsic.tile_loops.footprints import Footprint

REPEATED = 16  # elements that one stands for, from which on it is worth a place in memory
MANY = 64  # values on the way to what a member reads: more than most formulas have


def needed_again(
    footprint: Footprint, is_recomputed: Callable[[Value], bool], reads: Callable[[Value], Footprint]
) -> list[Value]:
    """The blocks that what is read is made of by many steps and that others, not made of them alone, need too.

    Only the last of each chain: what they are made of is not evaluated again then. `is_recomputed`: a block is computed
    wherever it is needed; `reads`: what that reads.
    """
    if len(footprint.visited) <= MANY:
        return []
    visited = {value for value, _ in footprint.visited}
    found = [value for value in visited if is_recomputed(value) and _leaves(value, visited)]
    costly = [value for value in found if len(reads(value).visited) > MANY // 2]
    return sorted(costly, key=_number)


def repeated_parts(
    value: Value, reads: Callable[[Value], Footprint], contiguous_dim: Callable[[Value], int]
) -> list[Value]:
    """The blocks of which each element stands for many of `value`, and that are loaded with a stride: scales of groups.

    `value` is packed with its lanes along the last dimension.
    """
    visited = {found for found, _ in reads(value).visited}
    repeated = {op.source for found in visited if isinstance(op := found.defining_op, tt.Broadcast)}
    least = prod(shape_of(value.type)) // REPEATED
    small = [part for part in repeated if prod(shape_of(part.type)) <= least and shape_of(part.type)[-1] > 1]
    loaded = [part for part in small if part.defining_op is not None and reads(part).loads]
    return sorted([part for part in loaded if contiguous_dim(part) != len(shape_of(part.type)) - 1], key=_number)


def _leaves(value: Value, visited: set[Value]) -> bool:
    """Whether something else than what was visited uses a value, and something visited, too."""
    results = [result in visited for user in value.users for result in _results(user)]
    return any(results) and not all(results)


def _results(user: object) -> Iterator[Value]:
    yield from getattr(user, "results", ())


def _number(value: Value) -> int:
    block = value.defining_block
    op = value.defining_op
    assert op is not None
    return block.position(op)
