"""Which copies of blocks to global memory an earlier one of the program may meet.

Level: ttg. Takes a function in which descriptors of the launch are stored to; changes nothing. An engine writes blocks
in any order, so a copy to elements that an earlier one may still write must wait for it. Blocks of any sizes are apart
where their indices in one tensor are, in the same iteration of a loop or in each later one. Iterations that stand for
programs (`take-turns`) are in no order anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from mltriton.analysis.affine.polynomials import Polynomial
from mltriton.analysis.aliasing import may_alias, through_other_parameter
from mltriton.dialects import scf, tt, ttng
from mltriton.ir.constants import splat_of
from mltriton.ir.nesting import is_defined_inside
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.types import TensorDescType
from mltriton.records import NamedTuple


class Started(NamedTuple):
    """A copy that has been started, and the loops that have gone on to a later iteration since."""

    store: tt.DescriptorStore
    later: frozenset[Operation]


State = frozenset[Started]


def stores_that_wait(function: tt.Func) -> set[tt.DescriptorStore]:
    """The stores that may write what a store of the program, started before, has not written yet: for all of those
    copies must be waited in front of them. Updates of one kind need no order among themselves.
    """
    waiting = set[tt.DescriptorStore]()
    _follow(function.body.block, frozenset(), waiting)
    return waiting


def _follow(block: Block, state: State, waiting: set[tt.DescriptorStore]) -> State:
    """What may be under way behind a block, by what may be in front of it."""
    for op in block.ops:
        if isinstance(op, tt.DescriptorStore):
            state = _at_store(op, state, waiting)
        elif isinstance(op, scf.For | scf.While):
            state = _around(op, state, waiting)
        elif op.regions:
            inside = [_follow(region.block, state, waiting) for region in op.regions if region.blocks]
            state = state.union(*inside)
    return state


def _at_store(op: tt.DescriptorStore, state: State, waiting: set[tt.DescriptorStore]) -> State:
    if isinstance(op, tt.DescriptorReduce) or not isinstance(op.desc.defining_op, ttng.TensorMap):
        return state
    if op in waiting or any(_may_meet(started, op) for started in state):
        waiting.add(op)
        state = frozenset()
    return state | {Started(op, frozenset())}


def _around(loop: scf.For | scf.While, state: State, waiting: set[tt.DescriptorStore]) -> State:
    again = not (isinstance(loop, scf.For) and isinstance(loop.upper.defining_op, ttng.GridSize))
    while True:
        behind = state
        for region in loop.regions:
            behind = _follow(region.block, behind, waiting)
        grown = state.union(Started(store, later | {loop}) for store, later in behind) if again else state
        if grown == state:
            return state | behind
        state = grown


def _may_meet(started: Started, op: tt.DescriptorStore) -> bool:
    """Whether a copy may write elements of one that was started before. One array for two parameters is the launch's
    to find (`ttng.tensor_map`'s `apart`).
    """
    first = started.store
    if not may_alias(first, op) or through_other_parameter(first, op):
        return False
    if not _are_of_one_tensor(first.desc, op.desc):
        return True
    before, now = (cast(TensorDescType, desc.type).block.shape for desc in (first.desc, op.desc))
    return not any(
        _are_apart(Polynomial.of(a), Polynomial.of(b), extents, started.later)
        for a, b, *extents in zip(first.indices, op.indices, before, now, strict=True)
    )


def _are_of_one_tensor(first: Value, second: Value) -> bool:
    """Whether two descriptors of the launch describe the same elements by the same indices, in blocks of any size."""
    one, other = cast(ttng.TensorMap, first.defining_op), cast(ttng.TensorMap, second.defining_op)
    return (one.base, [*one.shape], [*one.strides]) == (other.base, [*other.shape], [*other.strides])


def _are_apart(first: Polynomial, second: Polynomial, extents: Sequence[int], later: Iterable[Operation]) -> bool:
    """Whether ranges of a dimension, of such extents, have nothing in common, of which the second one is accessed in
    the same iteration, or in a later one of one loop.
    """
    loops = list(later)
    if not loops:
        distance = (second - first).number
        return distance is not None and (distance >= extents[0] or -distance >= extents[1])
    if len(loops) > 1 or not isinstance(loops[0], scf.For):
        return False
    loop = loops[0]
    step, factor = splat_of(loop.step), first.terms.get((loop.counter,), 0)
    moved = Polynomial({(loop.counter,): factor})
    distance, fixed = (second - first).number, [*(first - moved).values, *(second - moved).values]
    if distance is None or not isinstance(step, int) or any(is_defined_inside(value, loop) for value in fixed):
        return False
    nearest = factor * step + distance  # Later iterations are further away.
    return nearest >= extents[0] if factor * step > 0 else -nearest >= extents[1] and factor != 0
